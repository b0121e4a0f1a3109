"""History views: for status, history, show, points, and for decisions on due runs."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar

from orchestrator.domain.fast_dataclass import fields
from orchestrator.domain.point import Finding, ReadTotals, Verdict
from orchestrator.domain.run import Outcome, RunType
from orchestrator.history.columns import needed, to_microseconds
from orchestrator.history.database import (
    Database,
    Row,
    connect_reader,
    decode_evidence,
    decode_exits,
    decode_list,
    parse_stored,
)
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

_Value = TypeVar("_Value")
if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.history.acts import ActHistory
    from orchestrator.history.disks import DiskHistory
    from orchestrator.history.drills import DrillHistory
    from orchestrator.history.due_runs import DueRunHistory
    from orchestrator.history.kits import KitHistory
    from orchestrator.history.monthly import MonthlyHistory
    from orchestrator.history.notification_queue import NotificationQueue
    from orchestrator.history.problems import ProblemHistory
    from orchestrator.history.rebuilds import RebuildHistory


def open_reader(path: str, *, wait_s: float = 10.0) -> "HistoryReader":
    """Open a read view of the history at `path`; it changes nothing and needs no write permission.

    A missing file counts as an empty history. Raises: HistoryError.
    """
    return HistoryReader(Database(connect_reader(path, wait_s), path))


_POINT_COLUMNS = tuple(each.name for each in fields(PointRecord) if each.name not in ("reading", "verified_at"))
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
            return self._database.values("runs", _run, limit=limit)
        return self._database.values("runs_of_job", _run, job=job, limit=limit)

    def runs_before(self, before: int, job: str | None, limit: int) -> tuple[RunRecord, ...]:
        """Return the newest runs with a smaller number first, of one job or of all: the next page of a list."""
        if job is None:
            return self._database.values("runs_before", _run, before=before, limit=limit)
        return self._database.values("runs_of_job_before", _run, before=before, job=job, limit=limit)

    def has_run_before(self, before: int, job: str | None) -> bool:
        """Return True when a run with a smaller number is known, of one job one that ended well, or any of any: no restore or verification."""
        if job is None:
            return self._database.first("any_run_before", before=before) is not None
        return self._database.first("run_of_job_before", before=before, job=job) is not None

    def run(self, run: int) -> RunDetails | None:
        """Return one run with all that is known of it; None when no run has that number."""
        with self._database.glance():
            found = self._database.value("run", _run, run=run)
            if found is None:
                return None
            steps = self._database.values("steps_of_run", _step, run=run)
            return RunDetails(
                run=found,
                attempts=self._database.values("attempts_of_run", partial(_attempt, steps=steps), run=run),
                events=self._database.values("events_of_run", _event, run=run),
                hooks=self._database.values("hooks_of_run", _hook, run=run),
            )

    def open_step(self, run: int) -> StepRecord | None:
        """Return the newest step of a run that has not ended; None between two steps."""
        return self._database.value("open_step_of_run", _step, run=run)

    def totals(self) -> tuple[RunTotals, ...]:
        """Return the totals of all runs, by job and outcome."""
        return self._database.values("totals", _totals)

    def points(self, job: str | None) -> tuple[PointRecord, ...]:
        """Return the existing restore points, by job, place and name."""
        if job is None:
            return self._database.values("points_there", _point)
        return self._database.values("points_there_of_job", _point, job=job)

    def point_counts(self, job: str) -> PointCounts:
        """Return the counts of a job's restore points, without reading each of them."""
        return self.point_counts_of_jobs((job,))[job]

    def point_counts_of_jobs(self, jobs: Collection[str]) -> dict[str, PointCounts]:
        """Return the counts of the restore points of many jobs by job."""
        return {job: found for job, (found,) in self._database.by_job("point_counts", _counts, jobs).items()}

    def findings(self, reading: int) -> tuple[Finding, ...]:
        """Return the stored findings of one reading."""
        return self._database.values("findings", _finding, reading=reading)

    @property
    def acts(self) -> "ActHistory":
        """Return the acts that were asked for, for reading."""
        from orchestrator.history.acts import ActHistory

        return ActHistory(self._database)

    @property
    def monthly(self) -> "MonthlyHistory":
        """Return the counts of spans of time."""
        from orchestrator.history.monthly import MonthlyHistory

        return MonthlyHistory(self._database)

    def read_totals(
        self, since: "Mapping[str, datetime]", latest: "datetime"
    ) -> "dict[str, list[tuple[str, ReadTotals]]]":
        """Return the totals of each place that holds points of a job, by job. `since`: by job, from when on a reading counts.

        `latest`: what is dated later was dated by a wrong clock, and counts for nothing.
        """
        asked = {job: to_microseconds(at) for job, at in since.items()}
        return self._database.by_job("read_totals", _totals_of_place, asked, latest=latest)

    def bytes_read_between(self, first: "datetime", last: "datetime") -> dict[tuple[str, str], int]:
        """Return the bytes that were read again in a span of time, by job and place."""
        found: dict[tuple[str, str], int] = {}
        rows = self._database.rows("readings_between", first=first, last=last)
        with self._database.understood("readings_between"):
            for row in rows:
                key = (str(row["job"]), str(row["place"]))
                found[key] = found.get(key, 0) + int(row["bytes_read"])
        return found

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
        return self.memory_of_jobs((job,))[job]

    def memory_of_jobs(self, jobs: Collection[str]) -> dict[str, dict[str, str]]:
        """Return the small facts of many jobs by job."""
        found = self._database.by_job("memory", lambda row: (str(row["key"]), str(row["value"])), jobs)
        return {job: dict(facts) for job, facts in found.items()}

    def fact(self, job: str, key: str, parse: Callable[[str], _Value]) -> _Value | None:
        """Return one small fact of a job as a value; None when there is none."""
        return self._database.value("recall", lambda row: parse(row["value"]), job=job, key=key)

    def facts_below(self, job: str, start: str, parse: Callable[[str], _Value]) -> dict[str, _Value]:
        """Return the small facts of a job whose keys begin so, as values by the rest of the key."""
        told = {key: value for key, value in self.memory(job).items() if key.startswith(start)}
        with self._database.understood(start):
            return {key.removeprefix(start): parse(value) for key, value in told.items()}

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
        return self.health_facts_of_jobs({job: at}, limit=limit, latest=latest)[job]

    def health_facts_of_jobs(
        self, jobs: "Mapping[str, tuple[str, str] | None]", *, limit: int, latest: "datetime | None" = None
    ) -> dict[str, HealthFacts]:
        """Return the facts of the health of many jobs by job, each statement once for all. `jobs`: `at` of each job."""
        ask, names = self._database.by_job, list(jobs)
        with self._database.glance():
            well = ask("last_well", _run, names)
            going_on = ask("open_runs_of_jobs", _run, names)
            copies = ask("newest_copies", _copy, names, latest=latest)
            last = ask("newest_of_jobs", _run, names, limit=limit)
            broken = ask("broken_copies", lambda row: row["job"], names)
            badly = ask(
                "badly_since", lambda row: row["number"], {job: runs[0].id if runs else 0 for job, runs in well.items()}
            )
            failing = {job: runs[0].id if (runs := well[job]) else 0 for job, counts in badly.items() if any(counts)}
            failed = ask("last_failed", _run, failing)
            return {
                job: HealthFacts(
                    job=job,
                    copies=(
                        there := tuple(copy for copy in _newest_first(copies[job]) if at is None or copy.place == at[0])
                    ),
                    last=tuple(sorted(last[job], key=lambda run: -run.id)),
                    last_well=next(iter(well[job]), None),
                    last_failed=next(iter(failed.get(job, ())), None),
                    failures=sum(badly[job]),
                    going_on=next(reversed(going_on[job]), None),
                    # Where a target was changed, all runs into the former one would be searched.
                    first_begun=None if there else self._first_begun(job, at),
                    broken=bool(broken[job]),
                )
                for job, at in jobs.items()
            }

    def _first_begun(self, job: str, at: tuple[str, str] | None) -> "datetime | None":
        into = {"target": at[1]} if at else {}
        first = self._database.first("first_begun_into" if at else "first_begun", job=job, **into)
        return first["begun_at"] if first else None


def _totals(row: Row) -> RunTotals:
    needed(row, "outcome", "moved_bytes", "took_s")
    return RunTotals(**row)


def _totals_of_place(row: Row) -> tuple[str, ReadTotals]:
    return row["place"], ReadTotals(
        points=row["number"], read=row["reads"], undated=row["number"] - row["dated"], oldest=row["oldest_at"], sized=row["sized"],
        bytes=row["bytes"], fresh=row["fresh"], fresh_bytes=row["fresh_bytes"],
    )  # fmt: skip


def _run(row: Row) -> RunRecord:
    needed(row, "begun_at")
    lists = {name: decode_list(row[name]) for name in ("points", "warnings", "evidence")}
    outcome = None if row["outcome"] is None else Outcome(row["outcome"])
    if outcome is not None:
        needed(row, "ended_at", "why")
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


def _attempt(row: Row, steps: Sequence[StepRecord]) -> AttemptRecord:
    from orchestrator.history.packed_text import unpack  # 0.5 ms, and `status` reads no plan and no step

    needed(row, "begun_at", "run")
    row["plan"] = None if row["plan"] is None else unpack(row["plan"])
    for name in ("plan", "refusal"):
        if row[name] is not None and not isinstance(parse_stored(row[name]), dict):
            raise ValueError(f"{name} is none")
    own = tuple(step for step in steps if step.attempt == row["number"])
    kept = {name: value for name, value in row.items() if name != "run"}
    return AttemptRecord(**{**kept, "evidence": decode_evidence(row["evidence"]), "steps": own})


def _step(row: Row) -> StepRecord:
    from orchestrator.history.packed_text import unpack

    needed(row, "begun_at", "why", "run")
    kept = {_COLUMNS.get(name, name): value for name, value in row.items() if name != "run"}
    lists = {"commands": decode_list(unpack(row["commands"])), "last_output": decode_list(row["last_words"])}
    kept.pop("last_words")
    return StepRecord(**{**kept, **lists, "exits": decode_exits(row["exits"]), "confirmed": _yes(row["proved"])})


def _event(row: Row) -> EventRecord:
    return EventRecord(said_at=row["said_at"], level=row["level"], text=row["text"])


def _hook(row: Row) -> HookRecord:
    needed(row, "took_s")
    kept = {name: value for name, value in row.items() if name not in ("id", "run")}
    return HookRecord(**{**kept, "argv": decode_list(row["argv"])})


def _point(row: Row) -> PointRecord:
    kept = {name: row[name] for name in _POINT_COLUMNS}
    kept["verified_at"] = row["proved_at"]
    return PointRecord(**{**kept, "sound": _yes(row["sound"]), "reading": _reading(row)})


def _reading(row: Row) -> VerificationRecord | None:
    if row["reading"] is None:
        return None
    needed(row, "read_at", "scope", "entries_read", "files_read", "bytes_read", "took_s", "reading_sound", "left_out")
    return VerificationRecord(
        id=row["reading"],
        read_at=row["read_at"],
        scope=row["scope"],
        entries=row["entries_read"],
        files_read=row["files_read"],
        bytes_read=row["bytes_read"],
        took_s=row["took_s"],
        sound=bool(row["reading_sound"]),
        counts=decode_counts(row["counts"]),
        left_out=row["left_out"],
    )


def _finding(row: Row) -> Finding:
    path = row["path"].encode("utf-8", "surrogateescape")
    return Finding(path=path, verdict=Verdict(row["verdict"]), detail=row["detail"])


def decode_counts(text: str) -> tuple[tuple[Verdict, int], ...]:
    """Return the stored number of findings of each kind. Raises: ValueError · TypeError."""
    found = tuple((Verdict(verdict), count) for verdict, count in parse_stored(text))
    if not all(type(count) is int for _, count in found):
        raise ValueError("counts without numbers")
    return found


def _counts(row: Row) -> PointCounts:
    return PointCounts(**{name: value for name, value in row.items() if name != "job"})


def _copy(row: Row) -> ConfirmedCopy | None:
    if row["current_at"] is None:
        return None
    return ConfirmedCopy(place=row["place"], name=row["name"], current_at=row["current_at"])


def _newest_first(found: Iterable[ConfirmedCopy | None]) -> tuple[ConfirmedCopy, ...]:
    known = [copy for copy in found if copy is not None]
    return tuple(sorted(known, key=lambda copy: copy.current_at, reverse=True))


def _yes(value: int | None) -> bool | None:
    return None if value is None else bool(value)
