"""poolferry: copies data between pools, and verifies that it arrived.

interfaces   text in, text out: command line, daemon, status page
runner       one run, from owed to done, told on one page
engines      one folder per way of copying: survey, plan, confirm, explain
targets, verify, config, schedule, history, notices   one room each for places, bytes, TOML, the clockwork, SQLite, messages
process      the only door to programs
planners, domain   decisions and words, without effects
"""

__version__ = "0.1.0"
