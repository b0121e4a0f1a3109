"""The daemon: check what is due, start due runs as processes of their own, and make sure that they end.

loop             the story, from start to end          wakeup      wakes the loop: timers, signals, runs that end
sd_notify        what the service manager is told      notifier    notices and numbers, beside the loop
metrics_server   the answer to GET /metrics

What it shares with the clock without a daemon lies in app: one look, its beats, the last good configuration, a run as a process.
"""
