"""The contract between engines and the runner: small protocols, of which an engine implements those that it can.

`engine.py` is what all have; `ask.py` says whether one has more.
"""
