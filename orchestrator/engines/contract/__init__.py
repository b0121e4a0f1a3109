"""The contract between engines and the runner: small protocols, of which an engine implements those that it can.

`engine.py` holds the core of every engine and `implements`, which finds out whether an engine has a protocol.
"""
