"""Reading of copies as rows of a page."""

from datetime import datetime, timedelta

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Seconds, show_count, show_duration
from orchestrator.planners.read_status import PACE_SPAN, ReadStatus
from orchestrator.views.format import format_ago

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


def read_row(job: str, place: str, status: ReadStatus, *, limit: Seconds, promised: bool, now: datetime) -> ReadRow:
    """Return one job at one place as a row."""
    of = "bytes" if status.by_bytes else "points"
    return ReadRow(
        job=job, place=place, oldest=format_ago(status.oldest, now=now) if status.oldest else "not known",
        never=f"{status.never} of {show_count(status.points, 'point')} never read" if status.never else "", share=status.share,
        share_words=f"{status.share:.0%} of the {of}", limit=show_duration(limit) + ("" if promised else ", as the job promises none"),
        forecast=_forecast(status, now), kind="good" if status.share >= 0.999 else "near" if status.share >= 0.5 or not promised else "bad",
    )  # fmt: skip


def _forecast(status: ReadStatus, now: datetime) -> str:
    left, pace = status.forecast, show_duration(PACE_SPAN)
    if status.share >= 1:
        return "all of it was read within the limit"
    if not status.by_bytes:
        return "not known: the size of some points was not recorded"
    if left is None or left > _FAR_S:
        return f"never, at the pace of the last {pace}"
    return f"the rest by about {(now + timedelta(seconds=left)).astimezone():%Y-%m-%d}, at the pace of the last {pace}"
