"""The part of the copies that a turn reads, so that all are read again within what [verify] promises; and when that will not hold. Pure.

Each turn reads its part of the whole, the oldest first, so a promise of 90 days costs a little each night, and not all of it at once.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import accumulate

from orchestrator.domain.age import is_misdated, is_over
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import VerifyRules
from orchestrator.domain.units import Bytes

TURN = timedelta(hours=20)  # between two turns: one a day, though a run begins a little sooner than the day before
_DAY = timedelta(days=1)
_MARGIN = 1.25  # a night is missed now and then


@dataclass(frozen=True, slots=True, kw_only=True)
class AgedData:
    """One point or dataset. `since`: when it was last read as a whole, or made; None: neither is known, so it is as old as can be."""

    size: Bytes
    since: datetime | None
    suspect: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineForecast:
    """The outlook of a promise. `breaks`: when the first byte will be older; None: none will. `needed`: bytes a day that keep it.

    `overdue`: bytes that are older already.
    """

    breaks: datetime | None
    needed: Bytes
    overdue: Bytes


def is_turn(last: datetime | None, now: datetime) -> bool:
    """Return True when copies are to be read again. `last`: when the last turn began."""
    return is_over(last, TURN, now)


def decide_budget(
    items: Sequence[AgedData], rules: VerifyRules, *, last: datetime | None, now: datetime, at_once: bool = False
) -> Bytes:
    """Return how many bytes a turn reads. `at_once`: a person asks, so `per_day` is no limit.

    What is overdue, or suspect, is read at once; of the rest its even part of the time since the last turn.
    """
    if rules.read_all_within is None:
        return Bytes(0)
    limit = timedelta(seconds=rules.read_all_within)
    rested = _DAY if last is None or is_misdated(last, now) else max(min(now - last, limit), timedelta(0))
    even = sum(each.size for each in items) * (rested / limit) * _MARGIN
    pressing = sum(each.size for each in items if each.suspect or is_over(each.since, limit, now))
    wanted = max(even, pressing)
    if rules.per_day is not None and not at_once:
        wanted = min(wanted, rules.per_day * (min(rested, _DAY) / _DAY))
    return Bytes(math.ceil(wanted))


def forecast_deadline(items: Iterable[AgedData], limit: timedelta, *, pace: float, now: datetime) -> DeadlineForecast:
    """Return what becomes of a promise where the oldest is read first. `pace`: bytes a day."""
    ages = sorted((_since(each, now, limit), each.size) for each in items)
    overdue = sum(size for since, size in ages if now - since >= limit)
    breaks, needed = now if overdue else None, float(overdue)
    for (since, _), read in zip(ages, accumulate(size for _, size in ages), strict=True):
        left = (since + limit - now) / _DAY
        if left > 0:
            needed = max(needed, read / left)
            breaks = breaks or (since + limit if read > pace * left else None)
    return DeadlineForecast(breaks=breaks, needed=Bytes(math.ceil(needed)), overdue=Bytes(overdue))


def _since(item: AgedData, now: datetime, limit: timedelta) -> datetime:
    """Return since when an item counts as unread; one of which that is not known counts as overdue."""
    return now - limit if item.since is None or is_misdated(item.since, now) else min(item.since, now)
