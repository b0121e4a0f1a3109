"""The daemon: check for due runs, start them as processes of their own, and make sure that they end.

loop             the main loop, from start to end   wakeup      wakes the loop: timers, signals, runs that end
sd_notify        reports to the service manager     notifier    notices and metrics, beside the loop
metrics_server   the answer to GET /metrics        control_socket   acts that the status page asks for

The parts shared with `run --owed` lie in app: one clock check, heartbeats, the last good configuration, a run as a process.
"""
