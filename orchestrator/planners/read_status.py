"""Age of what was never read again, the share that was read within its promise, and when all of it will have been read."""

from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.point import ReadTotals
from orchestrator.domain.units import Bytes, Seconds

USUAL_LIMIT = Seconds(90 * 86400.0)  # where a job promises nothing
PACE_SPAN = Seconds(90 * 86400.0)
PROMISE_PACE_DAYS = 14  # the pace by which a promise is judged is that of so many days


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStatus:
    """State of reading at a place. `oldest`: since when its oldest byte was not read; None: not known, or there is no point.

    `share`: of bytes, or of points where their bytes are not known, read within the limit, 0 to 1; `forecast`: until all of it is
    read once more at the present pace; None: at this pace never.
    """

    points: int
    never: int
    oldest: datetime | None
    share: float
    by_bytes: bool
    forecast: Seconds | None


def judge_reading(totals: ReadTotals, *, read: Bytes) -> ReadStatus:
    """Return what was read again of a place. `read`: bytes within the last `PACE_SPAN`."""
    by_bytes = totals.sized == totals.points and totals.bytes > 0
    whole, done = (totals.bytes, totals.fresh_bytes) if by_bytes else (totals.points, totals.fresh)
    left = whole - done if by_bytes else None
    return ReadStatus(
        points=totals.points, never=totals.points - totals.read, share=done / whole if whole else 1.0, by_bytes=by_bytes,
        oldest=None if totals.undated else totals.oldest,
        forecast=Seconds(0.0) if left == 0 else Seconds(left / (read / PACE_SPAN)) if left and read > 0 else None,
    )  # fmt: skip
