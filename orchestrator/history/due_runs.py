"""What the clock remembers: owed runs, anchors, beats, pauses, and as much of the past as it decides by."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from orchestrator.domain.due import Anchor, Beat, JobPast, Owed, Past, Pause
from orchestrator.domain.run import Outcome
from orchestrator.history.database import Door, Row


class Owing:
    """A look at it. Every method raises HistoryError."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def version(self) -> int:
        """Another number as soon as somebody else has written; our own writing does not change it."""
        row = self._door.first("version")
        return int(row["data_version"]) if row else 0

    def owed(self) -> dict[str, Owed]:
        """What is owed, by job."""
        return {row["job"]: _owed(row) for row in self._door.rows("owed")}

    def anchors(self) -> dict[str, Anchor]:
        """Up to where slots have been seen to, by job."""
        rows = self._door.rows("anchors")
        return {
            row["job"]: Anchor(job=row["job"], at=row["at_at"], schedule=row["schedule"], run=row["run"])
            for row in rows
        }

    def pauses(self) -> dict[str, Pause]:
        """Who rests, by job; a pause whose time is over is still told."""
        return {
            row["job"]: Pause(job=row["job"], since=row["since_at"], until=row["until_at"], why=row["why"])
            for row in self._door.rows("pauses")
        }

    def last_beat(self) -> Beat | None:
        """What the last daemon, or this one, wrote down of itself."""
        row = self._door.first("last_beat")
        if row is None:
            return None
        seen = {"begun": row["begun_at"], "seen": row["seen_at"], "orderly": bool(row["orderly"])}
        return Beat(boot=row["boot"], pid=row["pid"], **seen)

    def past(self, jobs: Iterable[str], owed: dict[str, Owed]) -> dict[str, JobPast]:
        """What is known of the runs of each job, at one moment."""
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
        """The jobs of which something goes on now, whoever began it."""
        rows = self._door.rows("going_on")
        return tuple(row["job"] for row in rows if alive(row["pid"], row["process_started"], row["boot"]))


class OwingBook(Owing):
    """The same, to write it."""

    def write(self, *, owed: Iterable[Owed] = (), over: Iterable[str] = (), anchors: Iterable[Anchor] = ()) -> None:
        """All of it or nothing: an anchor may never be written without what it stands for."""
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
        """What waits for its next try need not wait any longer: a machine, or a daemon, has just started."""
        self._door.change("try_at_once")

    def forget(self, jobs: Iterable[str]) -> None:
        """Jobs that are declared no more owe nothing; declared again they are new."""
        with self._door.together():
            for job in jobs:
                self._door.change("owe_no_more", job=job)
                self._door.change("forget_anchor", job=job)

    def begin_beat(self, *, boot: str, pid: int, now: datetime) -> int:
        """A daemon has begun; the number to beat with."""
        with self._door.together():
            beat = self._door.add("begin_beat", boot=boot, pid=pid, now=now)
            self._door.change("forget_beats", beat=beat)
        return beat

    def beat(self, beat: int, now: datetime, *, orderly: bool = False) -> None:
        """The daemon still lives; `orderly`: and ends now."""
        self._door.change("beat", beat=beat, now=now, orderly=orderly)

    def pause(self, job: str, *, now: datetime, until: datetime | None, why: str) -> None:
        """The job rests from now on."""
        self._door.change("pause", job=job, now=now, until=until, why=why)

    def resume(self, job: str) -> bool:
        """The job rests no more; False: it did not."""
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
