"""Watched pools, as their runs found them: fill over time, the day on which a pool would be full, and advice."""

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.history.values import RunRecord
from orchestrator.views.status import JobStatus

_FILL = re.compile(r"\b(\d{1,3})% full\b")  # as a run of the engine pool says it of a sound pool
_SCAN = re.compile(r"% full; (.+)")
_ENOUGH_DAYS = 14  # a trend of fewer days is none
_FAR = 365 * 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedPool:
    """One pool. `fill`: its used share by day, oldest first; `full`: the day on which it would be full, by the trend of these.

    `scan`: its newest scrub or resilver, as text; `advice`: of the newest run.
    """

    status: JobStatus
    fill: tuple[tuple[date, float], ...]
    full: date | None
    scan: str
    advice: tuple[str, ...]


def watched_pool(status: JobStatus, runs: Sequence[RunRecord], now: datetime) -> WatchedPool:
    """Return what the runs of a job, newest first, found of its pool."""
    fill = {each.begun_at.astimezone().date(): share for each in reversed(runs) if (share := _share(each)) is not None}
    ended = next((each for each in runs if each.outcome is not None), None)
    scan = next((_scan(said, each, now) for each in runs if (said := scan_said(each.why or ""))), "")
    days = tuple(sorted(fill.items()))
    return WatchedPool(
        status=status, fill=days, full=day_when_full(days), scan=scan, advice=ended.warnings if ended else ()
    )


def _scan(told: str, run: RunRecord, now: datetime) -> str:
    """Return what a run said of a scrub; what is old is dated, as its ages are of that day."""
    return told if now - run.begun_at < timedelta(days=1) else f"on {run.begun_at.astimezone():%Y-%m-%d}: {told}"


def _share(run: RunRecord) -> float | None:
    return fill_said(run.why or "")


def fill_said(why: str) -> float | None:
    """Return the used share of a pool that a look's result says, from 0 to 1; None: it says none."""
    found = _FILL.search(why)
    return int(found[1]) / 100 if found else None


def scan_said(why: str) -> str:
    """Return the newest scrub or resilver that a look's result says; empty: it says none."""
    found = _SCAN.search(why)
    return found[1] if found else ""


def day_when_full(fill: Sequence[tuple[date, float]]) -> date | None:
    """Return the day on which the line through the newest 90 days reaches all of a pool; None: it does not grow, or not soon."""
    recent = [each for each in fill if each[0] > fill[-1][0] - timedelta(days=90)]
    if len(recent) < 2 or (recent[-1][0] - recent[0][0]).days < _ENOUGH_DAYS:
        return None
    xs = [(day - recent[0][0]).days for day, _ in recent]
    ys = [share for _, share in recent]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / sum(
        (x - middle_x) ** 2 for x in xs
    )
    if slope <= 0:
        return None
    days = (1 - middle_y) / slope - (xs[-1] - middle_x)
    return recent[-1][0] + timedelta(days=round(max(days, 0))) if days < _FAR else None
