"""A pool's newest scrub: which points it read, though its time is by the clock of whoever began it."""

import json
from datetime import datetime, timedelta

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
    """The first look at which a scrub was seen, by our clock. `began`: as its pool says it, which names the scrub."""

    began: datetime
    seen: datetime

    def text(self) -> str:
        """Return the sighting as text to remember."""
        return json.dumps([self.began.isoformat(), self.seen.isoformat()])


def parse_sighting(text: str) -> ScrubSighting:
    """Parse what `text` made. Raises: an error of NOT_READ."""
    began, seen = parse_json(text)
    return ScrubSighting(began=parse_instant(began), seen=parse_instant(seen))


def see_scrub(scrub: PoolScrub, before: ScrubSighting | None, now: datetime) -> ScrubSighting:
    """Return the sighting of a scrub that is looked at `now`. `before`: that of the last look."""
    return before if before is not None and before.began == scrub.began else ScrubSighting(began=scrub.began, seen=now)


def covered_until(scrub: PoolScrub, sighting: ScrubSighting, now: datetime) -> datetime:
    """Return the instant, by our clock, up to which what had come to the pool was there when the scrub began.

    Why not the scrub's own word: it may have begun on a machine whose clock was ahead, and would cover what came after it. It
    did begin before it was first seen, and a machine that is ahead of us now was ahead then.
    """
    ahead = max(scrub.at - now, timedelta())
    return min(scrub.began - ahead, sighting.seen)


def is_look_due(looked: str | None, now: datetime) -> bool:
    """Return True when a pool that nobody watches is looked at again. `looked`: the last time, as remembered; None: never."""
    try:
        return looked is None or not timedelta() <= now - parse_instant(looked) < _SOME_TIME
    except ValueError:
        return True
