"""History views: for status, history, show, points, and for decisions on due runs."""

import json
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Self

from orchestrator.domain.point import Finding, Verdict
from orchestrator.domain.run import Outcome, RunType
from orchestrator.history.database import Database, Row, connect_reader, decode_evidence, decode_exits, decode_list
from orchestrator.history.values import (
    AttemptRecord,
    ConfirmedCopy,
    EventRecord,
    HealthFacts,
    HookRecord,
    PointCounts,
    PointRecord,
    RunDetails,
    RunRecord,
    RunTotals,
    StepRecord,
    VerificationRecord,
)

if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.history.disks import DiskHistory
    from orchestrator.history.drills import DrillHistory
    from orchestrator.history.due_runs import DueRunHistory
    from orchestrator.history.kits import KitHistory
    from orchestrator.history.notification_queue import NotificationQueue
    from orchestrator.history.problems import ProblemHistory
    from orchestrator.history.rebuilds import RebuildHistory


def open_reader(path: str, *, wait_s: float = 10.0) -> "HistoryReader":
    """Open a read view of the history at `path`; it changes nothing and needs no write permission.

    A missing file counts as an empty history. Raises: HistoryError.
    """
    return HistoryReader(Database(connect_reader(path, wait_s), path))


# Columns of steps that were named before today's fields.
_COLUMNS = {"proved": "confirmed", "does": "action", "lane": "worker"}


class HistoryReader:
    """Reader of the history. Use as a context manager. Every method raises HistoryError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @property
    def due_runs(self) -> "DueRunHistory":
        """Return the clock's records on this same connection."""
        from orchestrator.history.due_runs import DueRunHistory

        return DueRunHistory(self._database)

    def glance(self) -> AbstractContextManager[None]:
        """Open one read transaction: all reads inside see the same moment. A commit waits meanwhile: be brief."""
        moment: AbstractContextManager[None] = self._database.glance()
        return moment

    @property
    def notifications(self) -> "NotificationQueue":
        """Return the notices on this same connection, for reading."""
        from orchestrator.history.notification_queue import NotificationQueue

        return NotificationQueue(self._database)

    @property
    def disks(self) -> "DiskHistory":
        """Return the removable disks on this same connection, for reading."""
        from orchestrator.history.disks import DiskHistory

        return DiskHistory(self._database)

    def runs(self, job: str | None, limit: int) -> tuple[RunRecord, ...]:
        """Return the newest runs first, of one job or of all."""
        if job is None:
            return tuple(map(_run, self._database.rows("runs", limit=limit)))
        return tuple(map(_run, self._database.rows("runs_of_job", job=job, limit=limit)))

    def run(self, run: int) -> RunDetails | None:
        """Return one run with all that is known of it; None when no run has that number."""
        with self._database.glance():
            row = self._database.first("run", run=run)
            if row is None:
                return None
            steps = self._database.rows("steps_of_run", run=run)
            return RunDetails(
                run=_run(row),
                attempts=tuple(_attempt(found, steps) for found in self._database.rows("attempts_of_run", run=run)),
                events=tuple(_event(found) for found in self._database.rows("events_of_run", run=run)),
                hooks=tuple(_hook(found) for found in self._database.rows("hooks_of_run", run=run)),
            )

    def totals(self) -> tuple[RunTotals, ...]:
        """Return the totals of all runs, by job and outcome."""
        return tuple(RunTotals(**row) for row in self._database.rows("totals"))

    def points(self, job: str | None) -> tuple[PointRecord, ...]:
        """Return the existing restore points, by job, place and name."""
        if job is None:
            return tuple(map(_point, self._database.rows("points_there")))
        return tuple(map(_point, self._database.rows("points_there_of_job", job=job)))

    def point_counts(self, job: str) -> PointCounts:
        """Return the counts of a job's restore points, without reading each of them."""
        row = self._database.rows("point_counts", job=job)[0]
        return PointCounts(**row)

    def findings(self, reading: int) -> tuple[Finding, ...]:
        """Return the stored findings of one reading."""
        return tuple(map(_finding, self._database.rows("findings", reading=reading)))

    @property
    def problems(self) -> "ProblemHistory":
        """Return the problems of copies, for reading."""
        from orchestrator.history.problems import ProblemHistory

        return ProblemHistory(self._database)

    @property
    def rebuilds(self) -> "RebuildHistory":
        """Return the pool rebuilds, for reading."""
        from orchestrator.history.rebuilds import RebuildHistory

        return RebuildHistory(self._database)

    @property
    def drills(self) -> "DrillHistory":
        """Return the restore tests, for reading."""
        from orchestrator.history.drills import DrillHistory

        return DrillHistory(self._database)

    @property
    def kits(self) -> "KitHistory":
        """Return the recovery kits, for reading."""
        from orchestrator.history.kits import KitHistory

        return KitHistory(self._database)

    def memory(self, job: str) -> dict[str, str]:
        """Return the small facts that runs of a job stored for later runs."""
        return {str(row["key"]): str(row["value"]) for row in self._database.rows("memory", job=job)}

    def facts_of_jobs(self, key: str) -> dict[str, str]:
        """Return one small fact of all jobs, by job; without those that have none."""
        return {str(row["job"]): str(row["value"]) for row in self._database.rows("facts_of_jobs", key=key)}

    def health_facts(
        self, job: str, *, limit: int = 10, at: tuple[str, str] | None = None, latest: "datetime | None" = None
    ) -> HealthFacts:
        """Return the facts of a job's health, at one moment; `limit`: number of its past runs.

        `at`: the name of a place and its location: only copies there count, and the first run is the first into it.
        It is searched only where there is no copy. `latest`: an instant of a copy after it, which a wrong clock gave, counts
        only where the place has no other.
        """
        with self._database.glance():
            well = self._database.first("last_well", job=job)
            going_on = self._database.first("open_run_of_job", job=job)
            copies = _copies(self._database.rows("newest_copies", job=job, latest=latest))
            there = tuple(copy for copy in copies if at is None or copy.place == at[0])
            # Where a target was changed, all runs into the former one would be searched.
            first = None if there else self._first_begun(job, at)
            since = well["id"] if well else 0
            badly = self._database.first("badly_since", job=job, run=since)
            failed = self._database.first("last_failed", job=job, run=since) if badly and badly["number"] else None
            return HealthFacts(
                job=job,
                copies=there,
                last=self.runs(job, limit),
                last_well=_run(well) if well else None,
                last_failed=_run(failed) if failed else None,
                failures=badly["number"] if badly else 0,
                going_on=_run(going_on) if going_on else None,
                first_begun=first["begun_at"] if first else None,
                broken=self._database.first("broken_copy", job=job) is not None,
            )

    def _first_begun(self, job: str, at: tuple[str, str] | None) -> Row | None:
        if at is None:
            return self._database.first("first_begun", job=job)
        return self._database.first("first_begun_into", job=job, target=at[1])


def _run(row: Row) -> RunRecord:
    lists = {name: decode_list(row[name]) for name in ("points", "warnings", "evidence")}
    outcome = Outcome(row["outcome"]) if row["outcome"] else None
    kept = {name: value for name, value in row.items() if name != "cure"}
    return RunRecord(
        **{
            **kept,
            "hint": row["cure"],
            **lists,
            "outcome": outcome,
            "kind": RunType(row["kind"]),
            "resumed": _yes(row["resumed"]),
        }
    )


def _attempt(row: Row, steps: list[Row]) -> AttemptRecord:
    own = tuple(_step(step) for step in steps if step["attempt"] == row["number"])
    kept = {name: value for name, value in row.items() if name != "run"}
    return AttemptRecord(**{**kept, "evidence": decode_evidence(row["evidence"]), "steps": own})


def _step(row: Row) -> StepRecord:
    kept = {_COLUMNS.get(name, name): value for name, value in row.items() if name != "run"}
    lists = {"commands": decode_list(row["commands"]), "last_output": decode_list(row["last_words"])}
    kept.pop("last_words")
    return StepRecord(**{**kept, **lists, "exits": decode_exits(row["exits"]), "confirmed": _yes(row["proved"])})


def _event(row: Row) -> EventRecord:
    return EventRecord(said_at=row["said_at"], level=row["level"], text=row["text"])


def _hook(row: Row) -> HookRecord:
    kept = {name: value for name, value in row.items() if name not in ("id", "run")}
    return HookRecord(**{**kept, "argv": decode_list(row["argv"])})


def _point(row: Row) -> PointRecord:
    kept = {name: row[name] for name in PointRecord.__dataclass_fields__ if name not in ("reading", "verified_at")}
    kept["verified_at"] = row["proved_at"]
    return PointRecord(**{**kept, "sound": _yes(row["sound"]), "reading": _reading(row)})


def _reading(row: Row) -> VerificationRecord | None:
    if row["reading"] is None:
        return None
    return VerificationRecord(
        id=row["reading"],
        read_at=row["read_at"],
        scope=row["scope"],
        entries=row["entries_read"],
        files_read=row["files_read"],
        bytes_read=row["bytes_read"],
        took_s=row["took_s"],
        sound=bool(row["reading_sound"]),
        counts=tuple((Verdict(verdict), count) for verdict, count in json.loads(row["counts"])),
        left_out=row["left_out"],
    )


def _finding(row: Row) -> Finding:
    path = row["path"].encode("utf-8", "surrogateescape")
    return Finding(path=path, verdict=Verdict(row["verdict"]), detail=row["detail"])


def _copies(rows: list[Row]) -> tuple[ConfirmedCopy, ...]:
    known = [ConfirmedCopy(**row) for row in rows if row["current_at"] is not None]
    return tuple(sorted(known, key=lambda copy: copy.current_at, reverse=True))


def _yes(value: int | None) -> bool | None:
    return None if value is None else bool(value)
