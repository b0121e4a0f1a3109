"""Records of the clock: due runs, anchors, heartbeats, pauses, and the past runs that its decisions need."""

from collections.abc import Callable, Iterable
from datetime import datetime

from orchestrator.domain.due import DueRun, Heartbeat, JobHistory, JobPause, PastRun, ScheduleAnchor
from orchestrator.domain.run import Outcome
from orchestrator.history.columns import needed
from orchestrator.history.database import Database, Row


class DueRunHistory:
    """A read view of the clock's records. Every method raises HistoryError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def version(self) -> int:
        """Return a number that changes when another connection writes; our own writes do not change it."""
        row = self._database.first("version")
        return int(row["data_version"]) if row else 0

    def due(self) -> dict[str, DueRun]:
        """Return the due runs, by job."""
        return {due.job: due for due in self._database.values("owed", _due_run)}

    def anchors(self) -> dict[str, ScheduleAnchor]:
        """Return the instants up to which scheduled times are handled, by job."""
        return {anchor.job: anchor for anchor in self._database.values("anchors", _anchor)}

    def pauses(self) -> dict[str, JobPause]:
        """Return the pauses, by job, including expired ones."""
        return {pause.job: pause for pause in self._database.values("pauses", _pause)}

    def last_beat(self) -> Heartbeat | None:
        """Return the last heartbeat of the last daemon, or of this one; None when there is none."""
        return self._database.value("last_beat", _heartbeat)

    def past(self, jobs: Iterable[str], due_runs: dict[str, DueRun]) -> dict[str, JobHistory]:
        """Return the known runs of each job, at one moment, each statement once for all."""
        names, ask = list(jobs), self._database.by_job
        with self._database.glance():
            last = ask("last_run", _past, names)
            ended = last | ask(
                "last_ended_run", _past, [name for name in names if last[name] and not last[name][0].outcome]
            )
            well = ended | ask("last_well", _past, [name for name in names if ended[name] and not ended[name][0].well])
            since = ask(
                "runs_since",
                _past,
                {name: due_runs[name].after_run for name in names if last[name] and name in due_runs},
            )
        return {
            name: JobHistory(
                last=next(iter(last[name]), None), last_ended=next(iter(ended[name]), None), last_well=next(iter(well[name]), None),
                since=tuple(sorted(since.get(name, ()), key=lambda run: run.id)),
            )
            for name in names
        }  # fmt: skip

    def going_on(self, alive: Callable[[int, int, str], bool]) -> tuple[str, ...]:
        """Return the jobs with something running now, started by anyone."""
        rows = self._database.rows("going_on")
        return tuple(row["job"] for row in rows if alive(row["pid"], row["process_started"], row["boot"]))


class DueRunWriter(DueRunHistory):
    """A write view of the clock's records."""

    def write(
        self, *, due_runs: Iterable[DueRun] = (), over: Iterable[str] = (), anchors: Iterable[ScheduleAnchor] = ()
    ) -> None:
        """Write all changes or none: an anchor must never be stored without its due run."""
        with self._database.together():
            for job in over:
                self._database.change("owe_no_more", job=job)
            for row in due_runs:
                self._database.change(
                    "owe", job=row.job, slot=row.scheduled_at, newest=row.newest, slots=row.slots, why=row.why, noted=row.noted,
                    after_run=row.after_run, tries=row.tries, tried=row.tried, not_before=row.not_before, told=row.told,
                )  # fmt: skip
            for anchor in anchors:
                self._database.change("anchor", job=anchor.job, at=anchor.at, schedule=anchor.schedule, run=anchor.run)

    def try_at_once(self) -> None:
        """Clear the wait before the next try: a machine, or a daemon, has just started."""
        self._database.change("try_at_once")

    def forget(self, jobs: Iterable[str]) -> None:
        """Forget jobs that are no longer declared; declared again they are new."""
        with self._database.together():
            for job in jobs:
                self._database.change("owe_no_more", job=job)
                self._database.change("forget_anchor", job=job)

    def begin_beat(self, *, boot: str, pid: int, now: datetime) -> int:
        """Record the start of a daemon; return the number for its heartbeats."""
        with self._database.together():
            beat = self._database.add("begin_beat", boot=boot, pid=pid, now=now)
            self._database.change("forget_beats", beat=beat)
        return beat

    def beat(self, beat: int, now: datetime, *, orderly: bool = False) -> None:
        """Record that the daemon is still alive; `orderly`: it ends now."""
        self._database.change("beat", beat=beat, now=now, orderly=orderly)

    def pause(self, job: str, *, now: datetime, until: datetime | None, why: str) -> None:
        """Pause the job from now on."""
        self._database.change("pause", job=job, now=now, until=until, why=why)

    def resume(self, job: str) -> bool:
        """Resume the job; return False when it was not paused."""
        return self._database.change("resume", job=job) > 0


def _due_run(row: Row) -> DueRun:
    needed(row, "why")
    return DueRun(
        job=row["job"], scheduled_at=row["slot_at"], newest=row["newest_at"], slots=row["slots"], why=row["why"], noted=row["noted_at"],
        after_run=row["after_run"], tries=row["tries"], tried=row["tried"], not_before=row["not_before_at"], told=row["told"],
    )  # fmt: skip


def _anchor(row: Row) -> ScheduleAnchor:
    needed(row, "run")
    return ScheduleAnchor(job=row["job"], at=row["at_at"], schedule=row["schedule"], run=row["run"])


def _pause(row: Row) -> JobPause:
    needed(row, "why")
    return JobPause(job=row["job"], since=row["since_at"], until=row["until_at"], why=row["why"])


def _heartbeat(row: Row) -> Heartbeat:
    needed(row, "begun_at")
    return Heartbeat(
        boot=row["boot"], pid=row["pid"], begun=row["begun_at"], seen=row["seen_at"], orderly=bool(row["orderly"])
    )


def _past(row: Row) -> PastRun:
    needed(row, "begun_at")
    if row["outcome"] is not None:
        needed(row, "ended_at")
    return PastRun(
        id=row["id"], begun=row["begun_at"], begun_why=row["begun_why"], ended=row["ended_at"],
        outcome=None if row["outcome"] is None else Outcome(row["outcome"]), why=row["why"] or "",
    )  # fmt: skip
