"""Reading of copies as rows of a page."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Seconds, show_count, show_duration, show_size
from orchestrator.planners.read_deadline import DeadlineForecast
from orchestrator.planners.read_status import PACE_SPAN, ReadStatus
from orchestrator.views.format import format_ago, format_iso, format_table

_FAR_S = 10 * 365 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRow:
    """One job at one place. `share`: read within the limit, 0 to 1."""

    job: str
    place: str
    oldest: str
    never: str
    share: float
    share_words: str
    limit: str
    forecast: str
    kind: str


def read_row(
    job: str,
    place: str,
    status: ReadStatus,
    *,
    limit: Seconds,
    promised: bool,
    now: datetime,
    promise: DeadlineForecast | None = None,
) -> ReadRow:
    """Return one job at one place as a row. `promise`: what becomes of `read-all-within`, where the job has it."""
    of = "bytes" if status.by_bytes else "points"
    return ReadRow(
        job=job, place=place, oldest=format_ago(status.oldest, now=now) if status.oldest else "not known",
        never=f"{status.never} of {show_count(status.points, 'point')} never read" if status.never else "", share=status.share,
        share_words=f"{status.share:.0%} of the {of}", limit=show_duration(limit) + ("" if promised else ", as the job promises none"),
        forecast=_promise_words(promise, now) if promise else _forecast(status, now),
        kind="good" if status.share >= 0.999 else "near" if status.share >= 0.5 or not promised else "bad",
    )  # fmt: skip


def reading_value(row: ReadRow, status: ReadStatus, promise: DeadlineForecast | None, limit: Seconds) -> dict[str, Any]:
    """Render one job at one place for programs."""
    told = None if promise is None else {
        "breaks": format_iso(promise.breaks), "needed_bytes_a_day": promise.needed, "overdue_bytes": promise.overdue,
    }  # fmt: skip
    return {
        "job": row.job, "place": row.place, "points": status.points, "never_read": status.never, "oldest": format_iso(status.oldest), "share": status.share,
        "share_of": "bytes" if status.by_bytes else "points", "limit_s": limit, "forecast": row.forecast, "promise": told,
    }  # fmt: skip


def reading_lines(rows: Sequence[ReadRow]) -> list[str]:
    """Render the reading of all copies as a table."""
    if not rows:
        return ["no copy is there yet that could be read again"]
    head = ("JOB", "PLACE", "OLDEST UNREAD BYTE", "READ WITHIN THE LIMIT", "LIMIT", "FORECAST")
    cells = [(each.job, each.place, each.oldest, each.share_words, each.limit, each.forecast) for each in rows]
    return ["  ".join(row) for row in format_table(head, cells)]


def _promise_words(promise: DeadlineForecast, now: datetime) -> str:
    needed = f"{show_size(promise.needed)} a day are needed"
    if promise.overdue:
        return f"broken: {show_size(promise.overdue)} were not read within it; {needed}"
    if promise.breaks is None:
        return f"kept at this pace; {needed}"
    return f"at this pace it breaks on {promise.breaks.astimezone(now.tzinfo):%Y-%m-%d}; {needed}"


def _forecast(status: ReadStatus, now: datetime) -> str:
    left, pace = status.forecast, show_duration(PACE_SPAN)
    if status.share >= 1:
        return "all of it was read within the limit"
    if not status.by_bytes:
        return "not known: the size of some points was not recorded"
    if left is None or left > _FAR_S:
        return f"never, at the pace of the last {pace}"
    return f"the rest by about {(now + timedelta(seconds=left)).astimezone():%Y-%m-%d}, at the pace of the last {pace}"
