"""The report of one month as rows of a printed page."""

from datetime import date
from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.views.schedule import describe_schedule

if TYPE_CHECKING:
    from orchestrator.domain.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthRow:
    """One job in a month. `kind`: of what was promised, "good", "bad" or "calm"; `damage`, `failed`: a reading or a restore test was bad."""

    job: str
    source: str
    promised: str
    kind: str
    kept: str
    runs: str
    verified: str
    damage: bool
    restored: str
    failed: bool


def month_row(
    job: "Job", *, begun: bool, gap: float | None, kept: bool | None, well: int, badly: int, points: int, moved_bytes: int, readings: int,
    read_bytes: int, unsound: int, drills: int, failed_drills: int,
) -> MonthRow:  # fmt: skip
    """Return one job in a month as a row."""
    limit = f"no copy older than {show_duration(job.late_after)}; " if job.late_after else ""
    longest = (
        f"longest time without a good run: {show_duration(gap)}"
        if gap is not None
        else "no run ended well"
        if begun
        else "as far as history goes back"
    )
    word = {True: "kept", False: "not kept", None: "no limit is set" if begun else "no run yet"}[kept]
    failed = f", {show_count(badly, 'run')} failed" if badly else ""
    read = f"{show_count(readings, 'reading')}, {show_size(read_bytes)}" if readings else "none read again"
    tests = show_count(drills, "restore test") if drills else "no restore test"
    return MonthRow(
        job=job.name, source=str(job.tree), promised=f"{limit}{describe_schedule(job)}",
        kind={True: "good", False: "bad", None: "calm"}[kept], kept=f"{word}: {longest}", damage=unsound > 0, failed=failed_drills > 0,
        runs=f"{show_count(well, 'good run')}{failed}; {show_count(points, 'point')} made, {show_size(moved_bytes)} moved",
        verified=read + (f"; {show_count(unsound, 'reading')} found damage" if unsound else ", all sound" if readings else ""),
        restored=tests + (f", {failed_drills} failed" if failed_drills else ", all well" if drills else ""),
    )  # fmt: skip


def months_before(first: date, count: int) -> tuple[date, ...]:
    """Return the months before one, the newest first."""
    numbers = [first.year * 12 + first.month - 2 - back for back in range(count)]
    return tuple(date(number // 12, number % 12 + 1, 1) for number in numbers if number >= 1970 * 12)
