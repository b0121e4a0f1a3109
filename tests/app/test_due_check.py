"""One look: what is written, what goes on elsewhere, and what is tried again though history knows nothing of it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from orchestrator import compose
from orchestrator.app.due_check import (
    DueCheckResult,
    JobHistoryCache,
    check_due,
    next_scheduled_times,
    retry_unrecorded,
)
from orchestrator.domain.due import DueRun, JobHistory, PastRun
from orchestrator.domain.run import Outcome
from orchestrator.history.store import History, open_history
from orchestrator.schedule.triggers import ZonedCalendar
from tests.history.records import begin, finish
from tests.planners.two_years import job

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
CALENDAR = ZonedCalendar(ZoneInfo("Europe/Berlin"))
A, B = job("a", "every 3600"), job("b", "every 3600")


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


def seen(history: History, *, parallel: int = 1, abandoned: tuple[str, ...] = (), write: bool = True) -> DueCheckResult:
    book = history.due_runs
    return check_due(
        (A, B), book, JobHistoryCache(book), now=NOW, calendar=CALENDAR, parallel=parallel, abandoned=abandoned, book=book if write else None,
    )  # fmt: skip


def begun_by_us(history: History, name: str) -> None:
    """A run that goes on, as this very process lives."""
    who = compose.process_identity()
    begin(history, name, now=NOW, pid=who.pid, process_started=who.started, boot=who.boot)


def test_what_is_owed_is_written_down_or_only_told(history: History) -> None:
    only_told = seen(history, parallel=2, write=False)
    assert [due_run.job for due_run in only_told.turn.begin] == ["a", "b"]
    assert history.due_runs.due() == {}
    written = seen(history, parallel=2)
    assert {due_run.job for due_run in written.fresh} == {"a", "b"}
    assert history.due_runs.due() == written.due
    assert seen(history, parallel=2).fresh == ()


def test_a_run_that_somebody_else_began_counts(history: History) -> None:
    begun_by_us(history, "a")
    assert seen(history).turn.begin == ()
    assert [due_run.job for due_run in seen(history, parallel=2).turn.begin] == ["b"]


def test_a_run_that_cannot_be_killed_holds_up_its_own_place_alone(history: History) -> None:
    begun_by_us(history, "a")
    assert [due_run.job for due_run in seen(history, abandoned=("a",)).turn.begin] == ["b"]


def test_the_past_is_read_again_when_somebody_has_written(history: History, tmp_path: Path) -> None:
    memory = JobHistoryCache(history.due_runs)
    assert memory.past(("a",), {})["a"] == JobHistory()
    with open_history(str(tmp_path / "history.sqlite")) as other:
        finish(other, Outcome.DONE, "a", now=NOW)
    assert memory.past(("a",), {})["a"].last_well is not None


def test_a_try_of_which_history_knows_nothing_is_one_all_the_same() -> None:
    due_run = DueRun(job="a", scheduled_at=NOW, newest=NOW, slots=1, why="as expected", noted=NOW, after_run=0)
    again = retry_unrecorded(due_run, JobHistory(), "ended with 9", NOW)
    assert again is not None
    assert (again.tries, again.not_before, again.told) == (1, NOW + timedelta(minutes=1), "it ended with 9")
    run = PastRun(id=1, begun=NOW, begun_why="as expected", ended=NOW, outcome=Outcome.FAILED, why="")
    assert retry_unrecorded(due_run, JobHistory(since=(run,)), "ended with 1", NOW) is None


def test_the_next_runs_follow_the_schedule() -> None:
    last = PastRun(id=1, begun=NOW - timedelta(minutes=50), begun_why="", ended=NOW, outcome=Outcome.DONE, why="")
    hourly = next_scheduled_times(A, JobHistory(last=last), CALENDAR, NOW, 2)
    assert hourly == (NOW + timedelta(minutes=10), NOW + timedelta(minutes=70))
    assert next_scheduled_times(A, None, CALENDAR, NOW, 1) == (NOW,)
    assert next_scheduled_times(job("c", None), None, CALENDAR, NOW, 3) == ()
    assert next_scheduled_times(job("c", "on attach"), None, CALENDAR, NOW, 3) == ()
    nightly = next_scheduled_times(job("c", "daily 02:30"), None, CALENDAR, NOW, 3)
    assert [scheduled_at.hour for scheduled_at in nightly] == [1, 1, 1]
