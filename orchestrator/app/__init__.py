"""Use cases: the requests of commands, timers and the daemon, each implemented once for all of them.

Plain values in, plain values out; nothing is printed, and no command line is parsed here. A subscriber receives what happens
meanwhile.
"""
