"""The only room that knows APScheduler and cronsim: schedules as instants, and timers that only wake."""
