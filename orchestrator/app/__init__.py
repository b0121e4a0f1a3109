"""Use cases: what a command, a timer or a button asks for, told once for all of them.

Plain values in, plain values out; nothing is printed, and no word of a command line is read here. What happens meanwhile is told
to a subscriber.
"""
