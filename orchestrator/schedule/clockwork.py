"""Timers on APScheduler: at each scheduled time, and periodically in between, they call `look`, and do nothing else.

Due runs are decided elsewhere, from history, so a missed timer does no harm.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.base import BaseTrigger
from apscheduler.triggers.interval import IntervalTrigger

from orchestrator.domain.due import Calendar
from orchestrator.domain.schedule import Schedule

EVERY_S = 20


class ScheduleTrigger(BaseTrigger):  # type: ignore[misc]
    """A trigger that fires at each scheduled time."""

    def __init__(self, schedule: Schedule, calendar: Calendar) -> None:
        self._schedule = schedule
        self._calendar = calendar

    def get_next_fire_time(self, _: datetime | None, now: datetime) -> datetime | None:
        """Return the first scheduled time from now on. Why not from the last one: a set clock skips times."""
        return self._calendar.next_after(self._schedule, now.astimezone(UTC))


class ScheduleTimers:
    """The timers. `tick` runs in its own thread every 20 s, `look` at each scheduled time; both must be quick."""

    def __init__(self, look: Callable[[], None], tick: Callable[[], None]) -> None:
        self._look = look
        # A late timer still fires, and several late ones fire once: a missed second must not lose a night's run.
        usual = {"coalesce": True, "misfire_grace_time": None, "max_instances": 1}
        self._scheduler = BackgroundScheduler(
            timezone=UTC, job_defaults=usual, executors={"default": ThreadPoolExecutor(1)}, daemon=True
        )
        self._scheduler.add_job(tick, IntervalTrigger(seconds=EVERY_S, timezone=UTC), id="tick")
        self._scheduler.start()

    def ring_at(self, schedules: Iterable[Schedule], calendar: Calendar) -> None:
        """Set the timers that call `look`, only at the times of these schedules."""
        wanted = {f"scheduled {schedule!r}": schedule for schedule in schedules}
        for job in self._scheduler.get_jobs():
            if job.id.startswith("scheduled "):
                job.remove()
        for name, schedule in wanted.items():
            self._scheduler.add_job(self._look, ScheduleTrigger(schedule, calendar), id=name)

    def wake(self) -> None:
        """Compare the timers with the clock. Why: they use a clock that stops while the machine sleeps."""
        self._scheduler.wakeup()

    def stop(self) -> None:
        """Stop all timers."""
        self._scheduler.shutdown(wait=False)
