"""The only package that uses APScheduler and cronsim: schedules as instants, and timers that only wake the daemon."""
