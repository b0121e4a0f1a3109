"""Age of what was never read again, the share that was read within its promise, and when all of it will have been read."""

from collections.abc import Sequence
from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import Bytes, Seconds

USUAL_LIMIT = Seconds(90 * 86400.0)  # where a job promises nothing
PACE_SPAN = Seconds(90 * 86400.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointAge:
    """A point as far as reading goes. `written_at`, `read_at` None: not known, never; `bytes` None: not known."""

    written_at: datetime | None
    read_at: datetime | None
    bytes: int | None


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


def judge_reading(points: Sequence[PointAge], *, limit: Seconds, now: datetime, read: Bytes) -> ReadStatus:
    """Return what was read again of a place. `read`: bytes within the last `PACE_SPAN`."""
    sizes = [each.bytes for each in points]
    known = [size for size in sizes if size is not None]
    by_bytes = len(known) == len(points) and sum(known) > 0
    weights = known if by_bytes else [1] * len(points)
    fresh = [each.read_at is not None and (now - each.read_at).total_seconds() <= limit for each in points]
    whole = sum(weights)
    done = sum(weight for weight, well in zip(weights, fresh, strict=True) if well)
    since = [each.read_at or each.written_at for each in points]
    left = whole - done if by_bytes else None
    return ReadStatus(
        points=len(points), never=sum(each.read_at is None for each in points), share=done / whole if whole else 1.0, by_bytes=by_bytes,
        oldest=None if None in since else min((each for each in since if each), default=None),
        forecast=Seconds(0.0) if left == 0 else Seconds(left / (read / PACE_SPAN)) if left and read > 0 else None,
    )  # fmt: skip
