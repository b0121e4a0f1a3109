"""Writes to the history: each method returns once the data is on the disk.

A run that finds nothing to do costs two transactions: `begin`; then, inside one `together`, `attempt_begun`,
`point_current`, `attempt_ended` and `ended`.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Self, TypeVar

from orchestrator.domain.age import is_over
from orchestrator.domain.answers import parse_instant
from orchestrator.domain.errors import Evidence
from orchestrator.domain.names import POINT_NAME, parse_point_name
from orchestrator.domain.point import Verdict, VerificationResult, count_words
from orchestrator.domain.problem import REMOVING, ProblemType, find_half_written
from orchestrator.domain.run import RunReport, RunType
from orchestrator.history.database import (
    Database,
    connect_writer,
    decode_list,
    encode_evidence,
    encode_list,
    tail_of_output,
)
from orchestrator.history.failures import not_there
from orchestrator.history.packed_text import pack

if TYPE_CHECKING:
    from orchestrator.history.acts import ActHistory
    from orchestrator.history.disks import DiskHistoryWriter
    from orchestrator.history.drills import DrillHistory
    from orchestrator.history.due_runs import DueRunWriter
    from orchestrator.history.kits import KitHistory
    from orchestrator.history.notification_queue import NotificationQueue
    from orchestrator.history.outbox import OutboxHistory
    from orchestrator.history.problems import ProblemHistory
    from orchestrator.history.rebuilds import RebuildHistory
    from orchestrator.history.renames import JobRenames
    from orchestrator.history.views import HistoryReader

_Value = TypeVar("_Value")
WHOLE = "whole"  # the scope of a reading of a whole point; any other value names a part
MOST_FINDINGS = 1000  # per reading; the rest is only counted
_CHECKED, _CHECK_EVERY = "history checked", timedelta(days=7)  # a small fact of no job
MOST_THINNED = 2000  # runs at once: 0.1 s
MOST_OUTPUT = 64 * 1024  # bytes of a hook's output, as the contract of hooks says


def open_history(path: str, *, wait_s: float = 30.0) -> "History":
    """Open the history at `path`, created or migrated if needed; `wait_s` for other processes. Raises: HistoryError."""
    return History(Database(connect_writer(os.path.abspath(path), wait_s), os.path.abspath(path)), wait_s)


class History:
    """Recorder of runs, points and findings. Use as a context manager; threads may share it.

    Every method raises HistoryError. `now` is an aware instant.
    """

    def __init__(self, database: Database, wait_s: float) -> None:
        self._database = database
        self._wait_s = wait_s

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @property
    def views(self) -> "HistoryReader":
        """Return the views on this same connection: do not close them. Imported late: few runs read the past."""
        from orchestrator.history.views import HistoryReader

        return HistoryReader(self._database)

    @property
    def due_runs(self) -> "DueRunWriter":
        """Return the clock's records on this same connection."""
        from orchestrator.history.due_runs import DueRunWriter

        return DueRunWriter(self._database)

    @property
    def kits(self) -> "KitHistory":
        """Return the recovery kits on this same connection."""
        from orchestrator.history.kits import KitHistory

        return KitHistory(self._database)

    @property
    def acts(self) -> "ActHistory":
        """Return the acts that were asked for, on this same connection."""
        from orchestrator.history.acts import ActHistory

        return ActHistory(self._database)

    @property
    def problems(self) -> "ProblemHistory":
        """Return the problems of copies on this same connection."""
        from orchestrator.history.problems import ProblemHistory

        return ProblemHistory(self._database)

    @property
    def rebuilds(self) -> "RebuildHistory":
        """Return the pool rebuilds on this same connection."""
        from orchestrator.history.rebuilds import RebuildHistory

        return RebuildHistory(self._database)

    @property
    def outbox(self) -> "OutboxHistory":
        """Return what the centre of a fleet is still to be told, on this same connection."""
        from orchestrator.history.outbox import OutboxHistory

        return OutboxHistory(self._database)

    @property
    def renames(self) -> "JobRenames":
        """Return the renames of jobs on this same connection."""
        from orchestrator.history.renames import JobRenames

        return JobRenames(self._database)

    @property
    def drills(self) -> "DrillHistory":
        """Return the restore tests on this same connection."""
        from orchestrator.history.drills import DrillHistory

        return DrillHistory(self._database)

    @property
    def notifications(self) -> "NotificationQueue":
        """Return the notices on this same connection."""
        from orchestrator.history.notification_queue import NotificationQueue

        return NotificationQueue(self._database)

    @property
    def disks(self) -> "DiskHistoryWriter":
        """Return the removable disks on this same connection."""
        from orchestrator.history.disks import DiskHistoryWriter

        return DiskHistoryWriter(self._database)

    def together(self) -> AbstractContextManager[None]:
        """Record all inside as one transaction: all of it or nothing, with one wait for the disk."""
        return self._database.together()

    def afterwards(self, show: Callable[[], None]) -> None:
        """Call `show` once no transaction of this thread is open: no other process waits for a terminal."""
        self._database.afterwards(show)

    # Runs

    def begin(
        self,
        *,
        job: str,
        engine: str,
        source: str,
        target: str,
        now: datetime,
        pid: int,
        process_started: int,
        boot: str,
        host: str,
        why: str,
        kind: RunType = RunType.RUN,
    ) -> int:
        """Record the start of a run and return its number; from now on room is kept for its end."""
        self._database.keep_reserve()
        who = {"pid": pid, "process_started": process_started, "boot": boot, "host": host}
        return self._database.add(
            "begin_run", job=job, engine=engine, source=source, target=target, now=now, why=why, kind=kind, **who
        )

    def heal(self, alive: Callable[[int, int, str], bool], now: datetime) -> tuple[int, ...]:
        """Mark runs without an end whose process is gone as `interrupted`; return their numbers.

        `alive` receives the pid, the process's start time and the boot in which it ran.
        """
        gone = {
            row["id"]: row["job"]
            for row in self._database.rows("open_runs")
            if not alive(row["pid"], row["process_started"], row["boot"])
        }
        if not gone:
            return ()
        self._database.check(whole=False)  # the last end was not clean
        with self.together():  # another process may heal at the same time
            for job in set(gone.values()):
                for half in find_half_written(job, self.memory(job)):
                    self.point_incomplete(job, half.place, half.point)
            return tuple(run for run in gone if self._database.change("heal_run", run=run, now=now))

    def open_runs(self) -> frozenset[int]:
        """Return the numbers of the runs that have no end yet."""
        return frozenset(row["id"] for row in self._database.rows("open_runs"))

    def runs_elsewhere(self, job: str, alive: Callable[[int, int, str], bool], *, own: int) -> bool:
        """Return True when a run of the job goes on, or waits, in a process that is not `own`. `alive`: as of `heal`."""
        return any(
            row["pid"] != own and alive(row["pid"], row["process_started"], row["boot"])
            for row in self._database.rows("processes_of_job", job=job)
        )

    def ended(self, run: int, report: RunReport, now: datetime) -> None:
        """Record the end of a run; its steps are recorded already."""
        self._known(
            f"run {run}",
            self._database.change(
                "end_run",
                run=run,
                now=now,
                outcome=report.outcome,
                why=report.why,
                hint=report.hint,
                moved_bytes=report.moved_bytes,
                took_s=report.took_s,
                resumed=report.resumed,
                attempts=report.attempts,
                points=encode_list(report.points),
                warnings=encode_list(report.warnings),
                evidence=encode_list(report.evidence),
            ),
        )

    def placed(self, run: int, target: str) -> None:
        """Record where a run copies to, known since its disk was attached."""
        self._known(f"run {run}", self._database.change("place_run", run=run, target=target))

    def fold_waits(self, report: RunReport) -> None:
        """Keep only the first of several waiting runs in a row. Why: a disk may be away for months."""
        self._database.change("fold_waits", job=report.job, run=report.run, why=report.why)

    def attempt_begun(self, run: int, number: int, now: datetime) -> None:
        """Record the start of an attempt; the first number is 1."""
        self._database.change("begin_attempt", run=run, number=number, now=now)

    def attempt_ended(self, run: int, number: int, now: datetime, why: str | None, evidence: Evidence | None) -> None:
        """Record the end of an attempt; `why` None: it ended well."""
        held = encode_evidence(evidence)
        touched = self._database.change("end_attempt", run=run, number=number, now=now, why=why, evidence=held)
        self._known(f"attempt {number} of run {run}", touched)

    def planned(self, run: int, attempt: int, plan_json: str) -> None:
        """Record the plan of an attempt."""
        touched = self._database.change("keep_plan", run=run, number=attempt, plan=pack(plan_json))
        self._known(f"attempt {attempt} of run {run}", touched)

    def refused(self, run: int, attempt: int, refusal_json: str) -> None:
        """Record the refusal of an attempt."""
        touched = self._database.change("keep_refusal", run=run, number=attempt, refusal=refusal_json)
        self._known(f"attempt {attempt} of run {run}", touched)

    def step_begun(
        self,
        run: int,
        attempt: int,
        index: int,
        *,
        action: str,
        why: str,
        worker: str,
        commands: Sequence[str],
        expected: int | None,
        now: datetime,
    ) -> int:
        """Record the start of a step; return its number. `commands`: its lines as a person would paste them."""
        about = {
            "does": action,
            "why": why,
            "lane": worker,
            "commands": pack(encode_list(commands)),
            "expected": expected,
        }
        return self._database.add("begin_step", run=run, attempt=attempt, number=index, now=now, **about)

    def step_ended(
        self,
        step: int,
        *,
        now: datetime,
        moved: int | None,
        confirmed: bool,
        exits: Sequence[int | None],
        last_output: Sequence[str],
        error: str | None,
    ) -> None:
        """Record the end of a step. `moved` None: unknown."""
        words = {"exits": encode_list(exits), "last_words": encode_list(last_output), "error": error}
        self._known(
            f"step {step}",
            self._database.change("end_step", step=step, now=now, moved=moved, confirmed=confirmed, **words),
        )

    def step_confirmed(self, step: int) -> None:
        """Record that an ended step's expected effect is verified."""
        self._known(f"step {step}", self._database.change("prove_step", step=step))

    def said(self, run: int, now: datetime, level: str, text: str) -> None:
        """Record a message of the run."""
        self._database.add("say", run=run, now=now, level=level, text=text)

    def hook_called(
        self,
        run: int,
        event: str,
        argv: Sequence[str],
        exit: int | None,  # noqa: A002 - the word of the field
        took_s: float,
        output: str | bytes,
        now: datetime,
    ) -> None:
        """Record a hook call with the end of its output. `exit` None: poolferry ended it, or it never began."""
        about = {"event": event, "argv": encode_list(argv), "exit": exit, "took_s": took_s}
        self._database.add("call_hook", run=run, now=now, output=tail_of_output(output, MOST_OUTPUT), **about)

    # Points

    def point_made(
        self,
        job: str,
        place: str,
        name: str,
        run: int,
        *,
        entries: int | None,
        bytes: int | None,  # noqa: A002 - the word of the field
        taken: datetime | None,
        now: datetime,
    ) -> None:
        """Record a new point; `taken`: when the source was in this state; None: a survey will find out."""
        held = {"run": run, "entries": entries, "bytes": bytes, "taken": taken}
        self._database.change("make_point", job=job, place=place, name=name, now=now, **held)

    def point_current(self, job: str, place: str, name: str, run: int, now: datetime, *, whole: bool = False) -> None:
        """Record that a survey found the point still as new as the source. `whole`: in every part of the copy, by identity."""
        with self.together():
            self._know(job, place, name, now)
            self._database.change("confirm_point", job=job, place=place, name=name, run=run, now=now)
            if whole:
                self._database.change("prove_current_point", job=job, place=place, name=name, run=run, now=now)

    def point_verified(self, job: str, place: str, point: str, run: int, now: datetime) -> None:
        """Record that the step that made the point was verified."""
        with self.together():
            self._know(job, place, point, now)
            self._database.change("prove_point", job=job, place=place, name=point, run=run, now=now)

    def point_gone(self, job: str, place: str, name: str, now: datetime) -> None:
        """Record that the point was removed; what was wrong with it is over."""
        with self.together():
            self._database.change("lose_point", job=job, place=place, name=name, now=now)
            kinds = (ProblemType.DAMAGED, ProblemType.MANIFEST, ProblemType.LEFT_OUT)
            self.problems.end(job, place, kinds, name, by="the point is gone", now=now)

    def point_incomplete(self, job: str, place: str, name: str) -> None:
        """Record that parts of a point are missing at the place: it is no verified copy, and not as new as the source."""
        self._database.change("doubt_point", job=job, place=place, name=name)

    def points_seen(
        self, job: str, place: str, points: Mapping[str, datetime | None], now: datetime, *, lost: bool = False
    ) -> None:
        """Record exactly these points at the place, by name with when each was taken: add unknown ones, remove vanished ones.

        `lost`: what vanished is a loss, unless a removal of ours that was cut began with it: a problem until the points are back
        or a person accepts it. Writes nothing when the history knows them all. A listing that failed must not be passed as an
        empty one.
        """
        known = self._names_there(job, place)
        new = [name for name, taken in points.items() if name not in known or (taken and not known[name])]
        if new or known.keys() != points.keys():
            with self.together():
                for name in sorted(new):
                    self._know(job, place, name, now, taken=points[name])
                vanished = sorted(known.keys() - points.keys())
                if lost:
                    self._lost(job, place, vanished, now)
                for name in vanished:
                    self.point_gone(job, place, name, now)
        if new:
            self._found_again(job, place, points, now)

    def point_names(self, job: str, place: str) -> set[str]:
        """Return the names of the points that history knows at a place."""
        return set(self._names_there(job, place))

    def was_named(self, job: str, place: str, name: str) -> bool:
        """Return True when the place holds, or once held, a point of that name."""
        return self._database.first("point_id", job=job, place=place, name=name) is not None

    def made_elsewhere(self, job: str, place: str, name: str) -> bool:
        """Return True when runs of ours made points at a place, and not that one."""
        return self._database.first("made_elsewhere", job=job, place=place, name=name) is not None

    def _names_there(self, job: str, place: str) -> dict[str, bool]:
        """Return the points at a place, by name with whether it is known when each was taken."""
        rows = self._database.rows("names_there", job=job, place=place)
        return {str(row["name"]): not row["undated"] for row in rows}

    def removing(self, job: str, place: str, names: Sequence[str]) -> None:
        """Record before a removal which points it removes: if it is cut, they are no loss."""
        self.remember(job, REMOVING + place, json.dumps(sorted(names)))

    def _lost(self, job: str, place: str, vanished: Sequence[str], now: datetime) -> None:
        ours = self.fact(job, REMOVING + place, decode_list) or ()
        gone = [name for name in vanished if name not in ours]
        if gone:
            before = [each for each in self.problems.open_of(job, place) if each.kind is ProblemType.POINTS_GONE]
            names = sorted({*gone, *(path for each in before for path in each.paths)})
            self.problems.open(
                job, place, ProblemType.POINTS_GONE, "", why="they vanished", paths=names, count=len(names), now=now
            )

    def _found_again(self, job: str, place: str, points: Mapping[str, datetime | None], now: datetime) -> None:
        for each in self.problems.open_of(job, place):
            if each.kind is not ProblemType.POINTS_GONE:
                continue
            still = [name for name in each.paths if name not in points]
            if not still and each.count <= len(each.paths):
                self.problems.end(job, place, (each.kind,), "", by="the points are back", now=now)
            elif len(still) < len(each.paths):
                left = each.count - len(each.paths) + len(still)
                self.problems.open(job, place, each.kind, "", why=each.why, paths=still, count=left, now=now)

    def verified(
        self, job: str, place: str, point: str, *, reading: VerificationResult, now: datetime, scope: str,
        forged: bool = False,
    ) -> None:  # fmt: skip
        """Record that the point was read again, all of it if `scope` is WHOLE.

        Any difference from the manifest makes it unsound, and is a problem; only a good reading of the whole ends that.
        `forged`: the manifest itself is what is wrong.
        """
        kept = reading.findings[:MOST_FINDINGS]
        left_out = sum(count for _, count in reading.counts) - len(kept)
        with self.together():
            number = self._know(job, place, point, now)
            self._database.change("judge_point", point=number, sound=reading.sound, whole=scope == WHOLE, now=now)
            row = self._database.add(
                "keep_reading",
                point=number,
                now=now,
                scope=scope,
                entries=reading.entries,
                files_read=reading.files_read,
                bytes_read=reading.bytes_read,
                took_s=reading.took_s,
                sound=reading.sound,
                counts=json.dumps(reading.counts),
                left_out=max(left_out, 0),
            )
            for index, found in enumerate(kept):
                path = found.path.decode("utf-8", "surrogateescape")
                about = {"path": path, "verdict": found.verdict, "detail": found.detail}
                self._database.change("keep_finding", reading=row, number=index, **about)
            self._judge_problems(job, place, point, reading, now, whole=scope == WHOLE, forged=forged)

    def place_read(self, job: str, place: str, *, began: datetime, counted: bool) -> int:
        """Record that all points of a place that were there at `began` were read and are sound; return for how many that is new.

        `counted`: as one reading; else the caller records it with one of the points. What another reading found bad stays so.
        """
        with self.together():
            fresh = self._database.rows("points_not_read", job=job, place=place, began=began)
            for row in fresh:
                self._database.change("point_read", point=row["id"], began=began)
            if fresh and counted:
                size = sum(row["bytes"] or 0 for row in fresh)
                self._database.add(
                    "keep_reading", point=fresh[-1]["id"], now=began, scope=WHOLE, entries=len(fresh), files_read=0, bytes_read=size,
                    took_s=0.0, sound=True, counts=json.dumps(()), left_out=0,
                )  # fmt: skip
        return len(fresh)

    def _judge_problems(
        self, job: str, place: str, point: str, reading: VerificationResult, now: datetime, *, whole: bool, forged: bool
    ) -> None:
        """Open or end the problems of a point that was read."""
        kind = ProblemType.MANIFEST if forged else ProblemType.DAMAGED
        if reading.sound:
            if whole:
                kinds = (ProblemType.DAMAGED, ProblemType.MANIFEST)
                self.problems.end(job, place, kinds, point, by="all of it was read, and is sound", now=now)
            return
        bad = [found for found in reading.findings if found.verdict is not Verdict.UNPROVED]
        count = sum(number for verdict, number in reading.counts if verdict is not Verdict.UNPROVED)
        why = ", ".join(count_words(verdict, number) for verdict, number in reading.counts if number)
        paths = {found.path.decode("utf-8", "surrogateescape") for found in bad}
        if not whole:  # a part tells nothing of what else is damaged
            for each in self.problems.open_of(job, place):
                if (each.kind, each.point) == (kind, point):
                    more = len(paths - set(each.paths))
                    paths, count, why = paths | set(each.paths), each.count + more, each.why
        if forged:
            why = bad[0].detail if bad else why
        self.problems.open(job, place, kind, point, why=why, paths=sorted(paths), count=max(count, len(paths)), now=now)

    def mended(self, job: str, place: str, point: str, now: datetime) -> None:
        """Record that all that a whole reading found damaged in the point was mended and read again."""
        with self.together():
            self._database.change("mend_point", job=job, place=place, name=point)
            self.problems.end(job, place, (ProblemType.DAMAGED,), point, by="it was mended, and read again", now=now)

    def _know(self, job: str, place: str, name: str, now: datetime, *, taken: datetime | None = None) -> int:
        """Return the row of an existing point, created if it is new to us; its name may give its time."""
        taken = taken or (parse_point_name(name) if POINT_NAME.fullmatch(name) else None)
        self._database.change("know_point", job=job, place=place, name=name, taken=taken, now=now)
        row = self._database.first("point_id", job=job, place=place, name=name)
        return int(row["id"]) if row else 0

    def thin(self, before: datetime) -> None:
        """Remove steps, messages and hook calls of the runs that ended before; the runs' own lines stay.

        At most MOST_THINNED runs each time, the oldest first: a history of many years is thinned over some nights.
        """
        row = self._database.first("last_to_thin", before=before, most=MOST_THINNED)
        if row is None or row["last"] is None:
            return
        with self.together():
            for what in ("thin_attempts", "thin_events", "thin_hooks"):
                self._database.change(what, last=row["last"])

    # Memory

    def remember(self, job: str, key: str, value: str) -> None:
        """Store a small fact; one that is stored already costs nothing."""
        if self.recall(job, key) != value:
            self._database.change("remember", job=job, key=key, value=value)

    def memory(self, job: str) -> dict[str, str]:
        """Return all small facts of a job, without the imports of a history view."""
        return {str(row["key"]): str(row["value"]) for row in self._database.rows("memory", jobs=json.dumps([job]))}

    def recall(self, job: str, key: str) -> str | None:
        """Return the fact stored under this key; None when there is none."""
        row = self._database.first("recall", job=job, key=key)
        return None if row is None else str(row["value"])

    def fact(self, job: str, key: str, parse: Callable[[str], _Value]) -> _Value | None:
        """Return the fact stored under this key as a value; None when there is none. Raises: HistoryError for a damaged one."""
        return self._database.value("recall", lambda row: parse(row["value"]), job=job, key=key)

    def newest_whole_reading(self, job: str, place: str) -> datetime | None:
        """Return when a point at the place was last read as a whole; None: none of those there ever was."""
        return self._database.value("newest_whole_reading", lambda row: row["whole_at"], job=job, place=place)

    def check_when_due(self, now: datetime) -> None:
        """Look through the whole file when that was not done for a week. Raises: HistoryError when it is damaged."""
        last = self.fact("", _CHECKED, parse_instant)
        if is_over(last, _CHECK_EVERY, now):
            self._database.check(whole=True)
            self.remember("", _CHECKED, now.isoformat())

    @property
    def size(self) -> int:
        """Return the size of the history's file in bytes."""
        return os.path.getsize(self._database.path)

    def backup_to(self, path: str) -> None:
        """Write a consistent backup of the history to `path`, completely or not at all, unsynced; others may record meanwhile."""
        from orchestrator.history.database import backup

        backup(self._database.path, path, self._wait_s)

    def _known(self, what: str, touched: int) -> None:
        """Check that a record was changed. Raises: HistoryError if its owner is not in the history."""
        if not touched:
            raise not_there(path=self._database.path, what=what)
