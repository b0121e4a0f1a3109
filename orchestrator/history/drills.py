"""Restore tests in the history: the evidence that data could be restored, or could not."""

from collections.abc import Collection
from datetime import datetime

from orchestrator.domain.drill import DrillRecord, DrillResult, UserCheckResult
from orchestrator.domain.run import Outcome
from orchestrator.history.columns import needed
from orchestrator.history.database import Database, Row, decode_list, encode_list, tail_of_output

_OUTPUT = 64 << 10


class DrillHistory:
    """Records of restore tests. Every method raises HistoryError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, job: str, *, limit: int = 50) -> tuple[DrillRecord, ...]:
        """Return a job's restore tests, the newest first."""
        return self.of_jobs((job,), limit=limit)[job]

    def of_jobs(self, jobs: Collection[str], *, limit: int) -> dict[str, tuple[DrillRecord, ...]]:
        """Return the restore tests of many jobs by job, the newest first."""
        found = self._database.by_job("newest_drills", _record, jobs, limit=limit)
        return {job: tuple(sorted(drills, key=lambda each: -each.run)) for job, drills in found.items()}

    def of_run(self, run: int) -> DrillRecord | None:
        """Return the restore test of a run; None when the run was none, or was interrupted."""
        return self._database.value("drill_of_run", _record, run=run)

    def keep(self, run: int, job: str, drilled: DrillResult, now: datetime) -> None:
        """Record a restore test that has ended."""
        checked = drilled.checked
        self._database.change(
            "keep_drill", run=run, job=job, place=drilled.place, point=drilled.point, now=now, outcome=drilled.outcome,
            why=drilled.why, whole=drilled.whole, self_test=drilled.self_test, seed=drilled.seed, files=drilled.files,
            bytes=drilled.bytes, of_files=drilled.of_files, of_bytes=drilled.of_bytes, restore_s=drilled.restore_s,
            differences=encode_list(drilled.differences), check_argv=encode_list(checked.argv) if checked else None,
            check_exit=checked.exit if checked else None, check_output=tail_of_output(checked.output, _OUTPUT) if checked else None,
        )  # fmt: skip


def _record(row: Row) -> DrillRecord:
    needed(row, "run", "why", "bytes")
    checked = None
    if row["check_argv"] is not None:
        checked = UserCheckResult(
            argv=decode_list(row["check_argv"]), exit=row["check_exit"], output=row["check_output"] or ""
        )
    plain = {name: row[name] for name in _PLAIN}
    drilled = DrillResult(
        **plain, outcome=Outcome(row["outcome"]), whole=bool(row["whole"]), self_test=bool(row["proves"]),
        differences=decode_list(row["differences"]), checked=checked,
    )  # fmt: skip
    return DrillRecord(run=row["run"], job=row["job"], at=row["drilled_at"], drilled=drilled)


_PLAIN = ("place", "point", "why", "seed", "files", "bytes", "of_files", "of_bytes", "restore_s")
