"""Records of the clock: due runs, anchors, heartbeats, pauses, and the past runs that its decisions need."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from orchestrator.domain.due import Anchor, Beat, JobPast, Owed, Past, Pause
from orchestrator.domain.run import Outcome
from orchestrator.history.database import Door, Row


class Owing:
    """A read view of the clock's records. Every method raises HistoryError."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def version(self) -> int:
        """Return a number that changes when another connection writes; our own writes do not change it."""
        row = self._door.first("version")
        return int(row["data_version"]) if row else 0

    def owed(self) -> dict[str, Owed]:
        """Return the due runs, by job."""
        return {row["job"]: _owed(row) for row in self._door.rows("owed")}

    def anchors(self) -> dict[str, Anchor]:
        """Return the instants up to which scheduled times are handled, by job."""
        rows = self._door.rows("anchors")
        return {
            row["job"]: Anchor(job=row["job"], at=row["at_at"], schedule=row["schedule"], run=row["run"])
            for row in rows
        }

    def pauses(self) -> dict[str, Pause]:
        """Return the pauses, by job, including expired ones."""
        return {
            row["job"]: Pause(job=row["job"], since=row["since_at"], until=row["until_at"], why=row["why"])
            for row in self._door.rows("pauses")
        }

    def last_beat(self) -> Beat | None:
        """Return the last heartbeat of the last daemon, or of this one; None when there is none."""
        row = self._door.first("last_beat")
        if row is None:
            return None
        seen = {"begun": row["begun_at"], "seen": row["seen_at"], "orderly": bool(row["orderly"])}
        return Beat(boot=row["boot"], pid=row["pid"], **seen)

    def past(self, jobs: Iterable[str], owed: dict[str, Owed]) -> dict[str, JobPast]:
        """Return what is known of the runs of each job, at one moment."""
        with self._door.glance():
            return {job: self._past(job, owed.get(job)) for job in jobs}

    def _past(self, job: str, owed: Owed | None) -> JobPast:
        last = _past(self._door.first("last_run", job=job))
        if last is None:
            return JobPast()
        ended = last if last.outcome else _past(self._door.first("last_ended_run", job=job))
        well = ended if ended is None or ended.well else _past(self._door.first("last_well", job=job))
        since: Sequence[Row] = self._door.rows("runs_since", job=job, run=owed.after_run) if owed else ()
        found = tuple(run for row in since if (run := _past(row)))
        return JobPast(last=last, last_ended=ended, last_well=well, since=found)

    def going_on(self, alive: Callable[[int, int, str], bool]) -> tuple[str, ...]:
        """Return the jobs with something running now, started by anyone."""
        rows = self._door.rows("going_on")
        return tuple(row["job"] for row in rows if alive(row["pid"], row["process_started"], row["boot"]))


class OwingBook(Owing):
    """A write view of the clock's records."""

    def write(self, *, owed: Iterable[Owed] = (), over: Iterable[str] = (), anchors: Iterable[Anchor] = ()) -> None:
        """Write all changes or none: an anchor must never be stored without its due run."""
        with self._door.together():
            for job in over:
                self._door.change("owe_no_more", job=job)
            for row in owed:
                self._door.change(
                    "owe", job=row.job, slot=row.slot, newest=row.newest, slots=row.slots, why=row.why, noted=row.noted,
                    after_run=row.after_run, tries=row.tries, tried=row.tried, not_before=row.not_before, told=row.told,
                )  # fmt: skip
            for anchor in anchors:
                self._door.change("anchor", job=anchor.job, at=anchor.at, schedule=anchor.schedule, run=anchor.run)

    def try_at_once(self) -> None:
        """Clear the wait before the next try: a machine, or a daemon, has just started."""
        self._door.change("try_at_once")

    def forget(self, jobs: Iterable[str]) -> None:
        """Forget jobs that are no longer declared; declared again they are new."""
        with self._door.together():
            for job in jobs:
                self._door.change("owe_no_more", job=job)
                self._door.change("forget_anchor", job=job)

    def begin_beat(self, *, boot: str, pid: int, now: datetime) -> int:
        """Record the start of a daemon; return the number for its heartbeats."""
        with self._door.together():
            beat = self._door.add("begin_beat", boot=boot, pid=pid, now=now)
            self._door.change("forget_beats", beat=beat)
        return beat

    def beat(self, beat: int, now: datetime, *, orderly: bool = False) -> None:
        """Record that the daemon still lives; `orderly`: it ends now."""
        self._door.change("beat", beat=beat, now=now, orderly=orderly)

    def pause(self, job: str, *, now: datetime, until: datetime | None, why: str) -> None:
        """Pause the job from now on."""
        self._door.change("pause", job=job, now=now, until=until, why=why)

    def resume(self, job: str) -> bool:
        """Resume the job; return False when it was not paused."""
        return self._door.change("resume", job=job) > 0


def _owed(row: Row) -> Owed:
    return Owed(
        job=row["job"], slot=row["slot_at"], newest=row["newest_at"], slots=row["slots"], why=row["why"], noted=row["noted_at"],
        after_run=row["after_run"], tries=row["tries"], tried=row["tried"], not_before=row["not_before_at"], told=row["told"],
    )  # fmt: skip


def _past(row: Row | None) -> Past | None:
    if row is None:
        return None
    return Past(
        id=row["id"], begun=row["begun_at"], begun_why=row["begun_why"], ended=row["ended_at"],
        outcome=Outcome(row["outcome"]) if row["outcome"] else None, why=row["why"] or "",
    )  # fmt: skip
