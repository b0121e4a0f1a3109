"""The daemon: looks what is owed, begins what may begin, as processes of their own, and sees to it that they end.

loop       the story, from start to end          looking    one look: facts, decision, what is written
running    one run as a child process            keeping    the last good configuration
presence   beats, and when nobody looked         bell       wakes the loop: timers, signals, runs that end
systemd    what the service manager is told      awake      keeps the machine from sleeping under a run
telling    notices and numbers, beside the loop  by_timer   the same clock without a daemon: one look, called by a timer
"""
