"""A history with a row in each table, as runs, disks and the clock write it; and the same without the constraints of its tables."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import date
from pathlib import Path

from orchestrator.domain.act import ActVerb
from orchestrator.domain.drill import DrillResult, UserCheckResult
from orchestrator.domain.due import DueRun, ScheduleAnchor
from orchestrator.domain.kit import KitContents
from orchestrator.domain.notice import Message, NoticeType
from orchestrator.domain.point import Finding, Verdict
from orchestrator.domain.problem import ProblemType
from orchestrator.domain.rotation import DiskRecord, DiskState
from orchestrator.domain.run import Outcome
from orchestrator.history.notification_queue import NotifiedRecord
from orchestrator.history.outbox import OutboxHistory
from orchestrator.history.store import History, open_history
from orchestrator.history.views import HistoryReader
from tests.history.records import EVIDENCE, NOON, begin, finish, later, reading, report

JOB, PLACE, POINT = "photos", "backup", "2026-03-29T100000Z"
KIT = KitContents(content='{"format": 1, "source": "tank/photos"}', layout="tank", recovery="# Recovery", guids="")


def populate(path: Path, job: str = JOB, place: str = PLACE) -> None:
    """Write a history with a row in each table."""
    with open_history(str(path)) as history:
        _runs(history, job, place)
        _clock(history, job)
        _notices(history, job, place)
        _disks(history)
        history.outbox.join("a-centre", "b1", above=7, incarnation=2, first={"run": 3}, back=True)
        history.outbox.sending("b2", 9)
        history.kits.keep(job, KIT, NOON)
        act = history.acts.asked(ActVerb.RUN, job, "", "root (uid 0)", NOON)
        history.acts.begun(act, 1)
        history.acts.ended(act, well=True, said="done", now=later(hours=1))
        history.rebuilds.keep("tank", top_guid=7, lost=["tank/a"], kits={job: KIT.content}, now=NOON)


def _runs(history: History, job: str, place: str) -> None:
    run = finish(history, Outcome.DONE, job, now=NOON)
    history.attempt_begun(run, 1, NOON)
    history.planned(run, 1, json.dumps({"summary": "a plan"}))
    step = history.step_begun(
        run, 1, 0, action="copy", why="new", worker="", commands=("rsync a b",), expected=3, now=NOON
    )
    history.step_ended(step, now=NOON, moved=3, confirmed=True, exits=(0, None), last_output=("done",), error=None)
    history.attempt_ended(run, 1, NOON, "cut", EVIDENCE)
    history.said(run, NOON, "warning", "a file was left out")
    history.hook_called(run, "after", ("/hook",), 0, 1.5, "fine", NOON)
    history.point_made(job, place, POINT, run, entries=3, bytes=30, taken=NOON, now=NOON)
    history.point_current(job, place, POINT, run, NOON)
    history.point_verified(job, place, POINT, run, NOON)
    found = Finding(path=b"a", verdict=Verdict.ROTTEN, detail="other")
    history.verified(job, place, POINT, reading=reading(found), now=NOON, scope="whole")
    history.mended(job, place, POINT, NOON)
    history.remember(job, "guard", '{"files": 3}')
    history.problems.open(job, place, ProblemType.DAMAGED, POINT, why="rot", paths=["a"], count=1, now=NOON)
    failed = begin(history, job, now=later(hours=1))
    history.ended(failed, report(failed, job, Outcome.FAILED, points=(POINT,), warnings=("w",)), later(hours=1))
    history.drills.keep(run, job, _drill(place), NOON)
    going_on = begin(history, job, now=later(hours=2))
    history.attempt_begun(going_on, 1, later(hours=2))
    history.step_begun(
        going_on, 1, 0, action="copy", why="new", worker="", commands=("rsync a b",), expected=3, now=later(hours=2)
    )


def _drill(place: str) -> DrillResult:
    return DrillResult(
        place=place, point=POINT, outcome=Outcome.DONE, why="", whole=False, self_test=True, seed=7, files=1, bytes=3, of_files=2,
        of_bytes=9, restore_s=0.5, differences=("a",), checked=UserCheckResult(argv=("check",), exit=0, output="fine"),
    )  # fmt: skip


def _clock(history: History, job: str) -> None:
    due = DueRun(
        job=job, scheduled_at=NOON, newest=NOON, slots=1, why="missed", noted=NOON, after_run=0, tries=1, tried=1, not_before=NOON,
        told="",
    )  # fmt: skip
    history.due_runs.write(due_runs=[due], anchors=[ScheduleAnchor(job=job, at=NOON, schedule="daily", run=0)])
    history.due_runs.begin_beat(boot="b", pid=1, now=NOON)
    history.due_runs.pause("resting", now=NOON, until=later(days=1), why="holiday")


def _notices(history: History, job: str, place: str) -> None:
    told = NotifiedRecord(
        job=job, target=place, begun_at=NOON, notified_at=NOON, causes=("late",), well_since=NOON, earlier=(NOON,)
    )
    history.notifications.keep_told("mail", told)
    message = Message(kind=NoticeType.TROUBLE, about=job, made_at=NOON, subject="late", body="It is late.", facts="{}")
    number = history.notifications.queue("mail", message)
    history.notifications.failed(number, "refused", later(hours=1))
    history.notifications.keep_digest("mail", date(2026, 3, 29))


def _disks(history: History) -> None:
    disks = history.disks
    red = DiskRecord(
        disk="u",
        name="red",
        set="offsite",
        identity="u-1",
        content="ext4",
        size=9,
        serial="s",
        model="m",
        wwn="w",
        generation=1,
        written=1,
        enrolled=NOON,
        standing=DiskState.ACTIVE,
    )  # fmt: skip
    disks.keep(red)
    visit = disks.begin_visit("u", NOON)
    disks.visit_ended(visit, jobs=("photos",), outcome="done", why="", released=NOON, safe=True)
    disks.visit_health(visit, "")
    disks.is_at("u", "the bank", note="box 3", now=NOON)
    disks.snooze("u", until=later(days=3), note="holiday", now=NOON)


@contextmanager
def loosened(path: Path) -> Iterator[sqlite3.Connection]:
    """Yield the history in memory, without constraints: a damaged file obeys none."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        with closing(sqlite3.connect(path)) as source:
            _copy_loosely(source, made)
        yield made


def _copy_loosely(source: sqlite3.Connection, made: sqlite3.Connection) -> None:
    found = "SELECT name, sql FROM sqlite_schema WHERE type = ? AND name NOT LIKE 'sqlite_%'"
    for name, text in source.execute(found, ("table",)).fetchall():
        # BLOB: a column that takes all values as they are.
        plain = re.sub(r"NOT NULL|AUTOINCREMENT", "", text)
        free = re.sub(r"\b(ANY|TEXT|REAL)\b|(?<!id )\bINTEGER\b", "BLOB", plain)
        made.execute(free.replace("STRICT, WITHOUT", "WITHOUT").replace("STRICT", ""))
        for row in source.execute(f"SELECT * FROM {name}"):  # noqa: S608 - the schema's own names
            made.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
    for _, text in source.execute(found, ("index",)).fetchall():
        made.execute(text)


def readers(reader: HistoryReader, job: str = JOB) -> dict[str, Callable[[], object]]:
    """Return all that reads a history, by name."""
    due, disks, notices = reader.due_runs, reader.disks, reader.notifications
    outbox = OutboxHistory(reader._database)
    return {
        "runs": lambda: reader.runs(None, 9), "runs of a job": lambda: reader.runs(job, 9),
        "runs_before": lambda: reader.runs_before(99, None, 9), "runs_before of a job": lambda: reader.runs_before(99, job, 9), "run": lambda: reader.run(1),
        "has_run_before": lambda: reader.has_run_before(99, None), "has_run_before of a job": lambda: reader.has_run_before(99, job),
        "open_step": lambda: reader.open_step(3), "read_totals": lambda: reader.read_totals({job: NOON}, NOON),
        "bytes_read_between": lambda: reader.bytes_read_between(NOON, later(days=1)),
        "acts.of": lambda: reader.acts.of(1), "acts.newest": lambda: reader.acts.newest(9),
        "acts.newest of one": lambda: reader.acts.newest(9, subject=job), "acts.between": lambda: reader.acts.between(NOON, later(days=1)),
        "monthly.records": lambda: reader.monthly.records([job], NOON, later(days=1)),
        "totals": reader.totals, "points": lambda: reader.points(None), "points of a job": lambda: reader.points(job),
        "point_counts": lambda: reader.point_counts(job), "point_counts_of_jobs": lambda: reader.point_counts_of_jobs([job]),
        "findings": lambda: reader.findings(1), "memory": lambda: reader.memory(job),
        "memory_of_jobs": lambda: reader.memory_of_jobs([job]),
        "fact": lambda: reader.fact(job, "guard", json.loads), "facts_below": lambda: reader.facts_below(job, "gu", json.loads),
        "facts_of_jobs": lambda: reader.facts_of_jobs("guard"), "health_facts": lambda: reader.health_facts(job, latest=NOON),
        "health_facts_of_jobs": lambda: reader.health_facts_of_jobs({job: None}, limit=9, latest=NOON),
        "due_runs.version": due.version, "due_runs.due": due.due, "due_runs.anchors": due.anchors, "due_runs.pauses": due.pauses,
        "due_runs.last_beat": due.last_beat, "due_runs.past": lambda: due.past([job], due.due()),
        "due_runs.going_on": lambda: due.going_on(lambda *_: True), "disks.known": disks.known,
        "disks.named": lambda: disks.named("red"), "disks.visits": lambda: disks.visits("u", 9),
        "disks.being_visited": disks.being_visited, "disks.last_visits": disks.last_visits, "disks.last_healths": disks.last_healths,
        "disks.whereabouts": lambda: disks.whereabouts("u", 9), "disks.places": disks.places, "disks.snoozes": disks.snoozes,
        "notifications.told": lambda: notices.told("mail"), "notifications.due": lambda: notices.due(NOON),
        "notifications.queued": notices.queued, "notifications.messages": lambda: notices.messages(9),
        "notifications.last": lambda: notices.last("mail", job, NoticeType.TROUBLE),
        "notifications.digest": lambda: notices.digest("mail"), "problems.open_of": lambda: reader.problems.open_of(job),
        "problems.of": lambda: reader.problems.of(job), "rebuilds.of": lambda: reader.rebuilds.of("tank"),
        "drills.of": lambda: reader.drills.of(job), "drills.of_run": lambda: reader.drills.of_run(1),
        "kits.of": lambda: reader.kits.of(job),
        "outbox.mark": outbox.mark, "outbox.count": outbox.count, "outbox.page": outbox.page, "outbox.begins": outbox.begins,
        "outbox.births": lambda: outbox.births("run"),
    }  # fmt: skip
