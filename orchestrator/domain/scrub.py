"""A pool's newest scrub: which points it read, though its time is by the clock of whoever began it."""

import json
from datetime import datetime, timedelta

from orchestrator.domain.age import is_over
from orchestrator.domain.answers import parse_instant, parse_json
from orchestrator.domain.fast_dataclass import dataclass

LOOKED = "scrub looked for on "  # before the name of a place: a small fact of a job, the time of its last look
_SOME_TIME = timedelta(days=1)  # between two looks at a pool that nobody watches


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolScrub:
    """The newest scrub of a pool. `began`, `at`: by the clock of its machine, `at` when it was looked at.

    `clean`: it read the whole pool, has ended, and no data is known to be damaged.
    """

    began: datetime
    at: datetime
    clean: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubSighting:
    """The first look at which a scrub was seen, by our clock. `began`: as its pool says it, which names the scrub.

    `ahead`: by how much the pool's machine was ahead of ours then; None: remembered by an earlier version.
    """

    began: datetime
    seen: datetime
    ahead: timedelta | None = None

    def text(self) -> str:
        """Return the sighting as text to remember."""
        ahead = [] if self.ahead is None else [self.ahead.total_seconds()]
        return json.dumps([self.began.isoformat(), self.seen.isoformat(), *ahead])


def parse_sighting(text: str) -> ScrubSighting:
    """Parse what `text` made. Raises: an error of NOT_READ."""
    began, seen, *more = parse_json(text)
    ahead = timedelta(seconds=float(more[0])) if more else None
    return ScrubSighting(began=parse_instant(began), seen=parse_instant(seen), ahead=ahead)


def see_scrub(scrub: PoolScrub, before: ScrubSighting | None, now: datetime) -> ScrubSighting:
    """Return the sighting of a scrub that is looked at `now`. `before`: that of the last look."""
    known = before is not None and before.began == scrub.began
    if before is not None and known and before.ahead is not None:
        return before
    ahead = max(scrub.at - now, timedelta())
    return ScrubSighting(began=scrub.began, seen=before.seen if before is not None and known else now, ahead=ahead)


def covered_until(sighting: ScrubSighting) -> datetime:
    """Return the instant, by our clock, up to which what had come to the pool was there when the scrub began.

    Why not the scrub's own word: it may have begun on a machine whose clock was ahead, and would cover what came after it. It
    did begin before it was first seen, and a machine that was ahead of us at the first look was ahead then. Why not a later look's:
    each would say it a little otherwise, and one scrub would count as several readings.
    """
    return min(sighting.began - (sighting.ahead or timedelta()), sighting.seen)


def is_look_due(looked: str | None, now: datetime) -> bool:
    """Return True when a pool that nobody watches is looked at again. `looked`: the last time, as remembered; None: never."""
    try:
        return is_over(parse_instant(looked) if looked else None, _SOME_TIME, now)
    except ValueError:
        return True
