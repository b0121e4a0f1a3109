"""Restore tests in the history: the evidence that data could be restored, or could not."""

from datetime import datetime

from orchestrator.domain.drill_result import Checked, Drilled, DrillRecord
from orchestrator.domain.run import Outcome
from orchestrator.history.codec import listed, tail, unlisted
from orchestrator.history.database import Door, Row

_OUTPUT = 64 << 10


class Drills:
    """Records of restore tests. Every method raises HistoryError."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def of(self, job: str, *, limit: int = 50) -> tuple[DrillRecord, ...]:
        """Return a job's restore tests, the newest first."""
        return tuple(map(_record, self._door.rows("drills_of_job", job=job, limit=limit)))

    def of_run(self, run: int) -> DrillRecord | None:
        """Return the restore test of a run; None when the run was none, or was cut off."""
        row = self._door.first("drill_of_run", run=run)
        return _record(row) if row else None

    def keep(self, run: int, job: str, drilled: Drilled, now: datetime) -> None:
        """Record a restore test that has ended."""
        checked = drilled.checked
        self._door.change(
            "keep_drill", run=run, job=job, place=drilled.place, point=drilled.point, now=now, outcome=drilled.outcome,
            why=drilled.why, whole=drilled.whole, proves=drilled.proves, seed=drilled.seed, files=drilled.files,
            bytes=drilled.bytes, of_files=drilled.of_files, of_bytes=drilled.of_bytes, restore_s=drilled.restore_s,
            differences=listed(drilled.differences), check_argv=listed(checked.argv) if checked else None,
            check_exit=checked.exit if checked else None, check_output=tail(checked.output, _OUTPUT) if checked else None,
        )  # fmt: skip


def _record(row: Row) -> DrillRecord:
    checked = None
    if row["check_argv"] is not None:
        checked = Checked(argv=unlisted(row["check_argv"]), exit=row["check_exit"], output=row["check_output"] or "")
    plain = {name: row[name] for name in _PLAIN}
    drilled = Drilled(
        **plain, outcome=Outcome(row["outcome"]), whole=bool(row["whole"]), proves=bool(row["proves"]),
        differences=unlisted(row["differences"]), checked=checked,
    )  # fmt: skip
    return DrillRecord(run=row["run"], job=row["job"], at=row["drilled_at"], drilled=drilled)


_PLAIN = ("place", "point", "why", "seed", "files", "bytes", "of_files", "of_bytes", "restore_s")
