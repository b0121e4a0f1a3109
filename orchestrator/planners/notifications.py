"""Notice decisions: what a channel sends about a job's copy, from the current state and earlier notices.

* A problem (a state that the channel subscribes to, and that does not end by itself) is sent once, when it begins.
* The same cause is sent once: other numbers in the reason make no new cause, nor does a failing copy that becomes late. A new
  cause within the same problem is sent too, up to four in all.
* While the problem lasts it is sent again after 1 day, then after 3, then every 7.
* Its end is sent when a verified copy is there again. Waiting is no end.
* A recurring problem (the third within 7 days) has ended only after 2 days without it.
* A paused job sends nothing, unless the channel subscribes to paused; its problem continues when it is resumed.
"""

import re
from collections.abc import Collection
from datetime import date, datetime, time, timedelta

from orchestrator.domain.age import is_over
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.notice import NoticeType
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import Seconds
from orchestrator.planners.health import JobState

REMINDERS = (timedelta(days=1), timedelta(days=3), timedelta(days=7))
RECENT = timedelta(days=7)
STEADY = timedelta(days=2)
_OFTEN = 2  # earlier problems within RECENT, from which on it is recurring
_CAUSES = 4
# A nightly check does not run at the same second each night.
_SLACK = timedelta(hours=2)
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyStatus:
    """Current state of a job's copy at a place. `run`: the newest run that ended; `hint`: its hint.

    `called`: the subject instead of the copy, such as "disk red"; the job is then one of those that use it. `whole`: it is a
    whole set of disks.
    """

    job: str
    target: str
    state: JobState
    why: str
    cause: str
    passing: str = ""
    hint: str = ""
    run: int | None = None
    called: str = ""
    whole: bool = False

    @property
    def name(self) -> str:
        """Return the name for people."""
        return self.called or self.job


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A reported problem that has not ended. `unsteady`: it recurs, so it ends late; `well_since`: no problem since then."""

    begun_at: datetime
    notified_at: datetime
    reminders: int = 0
    causes: tuple[str, ...] = ()
    unsteady: bool = False
    well_since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelMemory:
    """Earlier notices of a channel about a copy. `earlier`: when its last problems began, within the last 7 days."""

    trouble: Trouble | None = None
    earlier: tuple[datetime, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One notice to send. `since`: when the problem was first reported; `times`: how often in 7 days, with this one."""

    kind: NoticeType
    seen: CopyStatus
    since: datetime
    times: int = 1


def trouble_cause(state: JobState, last: Outcome | None, why: str) -> str:
    """Return the key by which two problems are the same: how the last run failed, without numbers; else the state."""
    if last in (Outcome.FAILED, Outcome.REFUSED):
        return _NUMBER.sub("0", f"{last}: {why}")[:500]
    return str(state)


def decide_notice(
    seen: CopyStatus, memory: ChannelMemory, *, states: Collection[str], now: datetime
) -> tuple[ChannelMemory, Notice | None]:
    """Decide what to remember from now on, and which notice to send, if any. The rules are in the module's docstring."""
    if seen.state is JobState.PAUSED and JobState.PAUSED not in states:
        return memory, None
    bad = seen.state in states and not seen.passing
    trouble = _in_time(memory.trouble, now)
    if trouble is None:
        return _begins(seen, memory, now) if bad else (memory, None)
    if seen.state is JobState.UP:
        return _well(seen, memory, trouble, now)
    return _goes_on(seen, memory, replace(trouble, well_since=None), bad=bad, now=now)


def _in_time(trouble: Trouble | None, now: datetime) -> Trouble | None:
    """Return the problem without instants after now: one wrong clock must not prevent notices for years."""
    if trouble is None or max(trouble.notified_at, trouble.begun_at, trouble.well_since or now) <= now:
        return trouble
    well = trouble.well_since and min(trouble.well_since, now)
    return replace(
        trouble, begun_at=min(trouble.begun_at, now), notified_at=min(trouble.notified_at, now), well_since=well
    )


def _recent(memory: ChannelMemory, now: datetime) -> tuple[datetime, ...]:
    return tuple(begun for begun in memory.earlier if abs(now - begun) <= RECENT)


def _begins(seen: CopyStatus, memory: ChannelMemory, now: datetime) -> tuple[ChannelMemory, Notice]:
    earlier = _recent(memory, now)
    trouble = Trouble(begun_at=now, notified_at=now, causes=(seen.cause,), unsteady=len(earlier) >= _OFTEN)
    notice = Notice(kind=NoticeType.TROUBLE, seen=seen, since=now, times=len(earlier) + 1)
    return ChannelMemory(trouble=trouble, earlier=earlier), notice


def _well(
    seen: CopyStatus, memory: ChannelMemory, trouble: Trouble, now: datetime
) -> tuple[ChannelMemory, Notice | None]:
    earlier = _recent(memory, now)
    since = trouble.well_since or now
    if trouble.unsteady and now - since < STEADY:
        return replace(memory, trouble=replace(trouble, well_since=since)), None
    ended = Notice(kind=NoticeType.RECOVERY, seen=seen, since=trouble.begun_at, times=len(earlier) + 1)
    return ChannelMemory(trouble=None, earlier=(*earlier, trouble.begun_at)), ended


def _goes_on(
    seen: CopyStatus, memory: ChannelMemory, trouble: Trouble, *, bad: bool, now: datetime
) -> tuple[ChannelMemory, Notice | None]:
    times = len(_recent(memory, now)) + 1
    if bad and seen.cause not in trouble.causes and len(trouble.causes) < _CAUSES:
        told = replace(trouble, notified_at=now, causes=(*trouble.causes, seen.cause))
        notice = Notice(kind=NoticeType.TROUBLE, seen=seen, since=trouble.begun_at, times=times)
        return replace(memory, trouble=told), notice
    if now - trouble.notified_at >= REMINDERS[min(trouble.reminders, len(REMINDERS) - 1)] - _SLACK:
        told = replace(trouble, notified_at=now, reminders=trouble.reminders + 1)
        notice = Notice(kind=NoticeType.REMINDER, seen=seen, since=trouble.begun_at, times=times)
        return replace(memory, trouble=told), notice
    return replace(memory, trouble=trouble), None


def digest_day(local: datetime, weekday: int, at: time) -> date:
    """Return the newest day whose digest is due at this local time. `weekday`: 0 is Monday."""
    today = local.date()
    back = (today.weekday() - weekday) % 7
    return today - timedelta(days=7 if back == 0 and local.time() < at else back)


def is_digest_due(day: date, last: date | None) -> bool:
    """Return True when the digest of this day is due; `last`: the last one sent, None: counting begins now."""
    return last is not None and last < day


def is_last_believable(day: date, last: date | None) -> bool:
    """Return True when `last` is plausible; a day far ahead was recorded by a wrong clock."""
    return last is not None and last <= day + timedelta(days=7)


def is_ping_due(last: datetime | None, every: Seconds, now: datetime) -> bool:
    """Return True when the ping is due; a ping recorded after now came from a wrong clock."""
    return is_over(last, every, now)


WAITS = (60, 300, 900, 1800, 3600)  # seconds after the first, second … failure of a channel
GIVE_UP = timedelta(days=7)


def next_delivery(tries: int, made: datetime, now: datetime) -> datetime | None:
    """Return when to retry an undelivered message after so many tries; None when it is given up."""
    if now - made > GIVE_UP:
        return None
    return now + timedelta(seconds=WAITS[min(max(tries, 1), len(WAITS)) - 1])
