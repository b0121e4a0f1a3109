"""Test what the clock remembers: owed runs, anchors, beats and rests come back as they were, and the past as it is decided by."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.due import DueRun, Heartbeat, JobHistory, JobPause, ScheduleAnchor
from orchestrator.domain.errors import HistoryError
from orchestrator.domain.run import Outcome, RunType
from orchestrator.history.store import History, open_history
from orchestrator.history.views import open_reader
from tests.history.records import NOON, ODD, begin, finish, later

OWED = DueRun(
    job="photos", scheduled_at=NOON, newest=later(hours=2), slots=3, why=f"late {ODD}", noted=later(hours=3), after_run=7, tries=2,
    tried=9, not_before=later(hours=4), told=ODD,
)  # fmt: skip
ANCHOR = ScheduleAnchor(job="photos", at=NOON, schedule="daily 02:30", run=7)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "history.sqlite")


@pytest.fixture
def history(path: str) -> Iterator[History]:
    with open_history(path) as opened:
        yield opened


def test_what_is_owed_comes_back_as_it_was(history: History, path: str) -> None:
    history.due_runs.write(due_runs=[OWED, replace(OWED, job="mail", not_before=None)], anchors=[ANCHOR])
    with open_reader(path) as views:
        assert views.due_runs.due() == {"photos": OWED, "mail": replace(OWED, job="mail", not_before=None)}
        assert views.due_runs.anchors() == {"photos": ANCHOR}
    history.due_runs.write(due_runs=[replace(OWED, slots=4)], over=["mail"], anchors=[replace(ANCHOR, run=8)])
    assert history.due_runs.due() == {"photos": replace(OWED, slots=4)}
    assert history.due_runs.anchors() == {"photos": replace(ANCHOR, run=8)}


def test_an_anchor_is_never_written_without_what_it_stands_for(history: History) -> None:
    broken = replace(OWED, why=None)  # type: ignore[arg-type]
    with pytest.raises(HistoryError):
        history.due_runs.write(due_runs=[OWED, broken], anchors=[ANCHOR])
    assert history.due_runs.due() == {}
    assert history.due_runs.anchors() == {}


def test_a_new_start_tries_at_once(history: History) -> None:
    history.due_runs.write(due_runs=[OWED])
    history.due_runs.try_at_once()
    assert history.due_runs.due() == {"photos": replace(OWED, not_before=None)}


def test_a_job_that_is_forgotten_owes_nothing_and_is_new(history: History) -> None:
    history.due_runs.write(due_runs=[OWED], anchors=[ANCHOR])
    history.due_runs.forget(["photos", "never there"])
    assert (history.due_runs.due(), history.due_runs.anchors()) == ({}, {})


def test_beats_tell_when_a_daemon_lived_last(history: History) -> None:
    assert history.due_runs.last_beat() is None
    first = history.due_runs.begin_beat(boot="a", pid=5, now=NOON)
    assert history.due_runs.last_beat() == Heartbeat(boot="a", pid=5, begun=NOON, seen=NOON, orderly=False)
    history.due_runs.beat(first, later(hours=1), orderly=True)
    assert history.due_runs.last_beat() == Heartbeat(boot="a", pid=5, begun=NOON, seen=later(hours=1), orderly=True)
    for number in range(60):
        history.due_runs.begin_beat(boot="b", pid=number, now=later(hours=2))
    assert history._database.first("version")
    assert len(history._database._connection.execute("SELECT id FROM beats").fetchall()) <= 21


def test_rests_come_and_go(history: History) -> None:
    history.due_runs.pause("photos", now=NOON, until=later(days=1), why=ODD)
    history.due_runs.pause("mail", now=NOON, until=None, why="")
    assert history.due_runs.pauses() == {
        "mail": JobPause(job="mail", since=NOON, until=None, why=""),
        "photos": JobPause(job="photos", since=NOON, until=later(days=1), why=ODD),
    }
    history.due_runs.pause("photos", now=later(hours=1), until=None, why="longer")
    assert history.due_runs.pauses()["photos"] == JobPause(job="photos", since=NOON, until=None, why="longer")
    assert history.due_runs.resume("photos")
    assert not history.due_runs.resume("photos")


def test_the_past_is_the_newest_runs_and_those_since(history: History) -> None:
    done = finish(history, Outcome.DONE, now=NOON)
    finish(history, Outcome.DONE, now=later(hours=1), kind=RunType.VERIFY)
    failed = finish(history, Outcome.FAILED, now=later(hours=2))
    finish(history, Outcome.DONE, "mail", now=later(hours=3))
    going = begin(history, now=later(hours=4), why="by hand")
    past = history.due_runs.past(["photos", "new"], {"photos": replace(OWED, after_run=done)})
    assert past["new"] == JobHistory()
    known = past["photos"]
    assert known.last is not None
    assert (known.last.id, known.last.outcome, known.last.begun_why) == (going, None, "by hand")
    assert known.last_ended is not None
    assert (known.last_ended.id, known.last_ended.ended) == (failed, later(hours=2))
    assert known.last_well is not None
    assert (known.last_well.id, known.last_well.well) == (done, True)
    assert [run.id for run in known.since] == [failed, going]


def test_only_a_living_process_goes_on(history: History) -> None:
    begin(history, pid=1)
    begin(history, "mail", pid=2)
    finish(history, Outcome.DONE, "web", pid=1)
    assert history.due_runs.going_on(lambda pid, _, __: pid == 1) == ("photos",)


def test_the_version_changes_with_what_others_write(history: History, path: str) -> None:
    before = history.due_runs.version()
    history.due_runs.write(due_runs=[OWED])
    assert history.due_runs.version() == before
    with open_history(path) as other:
        finish(other, Outcome.DONE)
    assert history.due_runs.version() != before
