"""Test when each job runs next, as `status` tells it in a narrow column."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from datetime import time as clock
from pathlib import Path

import pytest

from orchestrator.app.next_run import find_next_runs
from orchestrator.domain.due import DueRun, ScheduleAnchor
from orchestrator.domain.job import Job, TimeWindow
from orchestrator.domain.run import Outcome
from orchestrator.history.store import History, open_history
from orchestrator.views.status import NextRun
from tests.history.records import begin, finish
from tests.planners.two_years import job

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)  # a Friday, 13:00 in Berlin
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An hour before UTC in winter."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


def coming(history: History, *jobs: Job, now: datetime = NOW, running: tuple[str, ...] = ()) -> dict[str, NextRun]:
    """Return what comes next."""
    return dict(find_next_runs(jobs, history.views, now=now, running=running).jobs)


def words(history: History, *jobs: Job, now: datetime = NOW) -> list[str]:
    return [each.words for each in coming(history, *jobs, now=now).values()]


@pytest.mark.parametrize(
    ("schedule", "shown"),
    [
        (None, "manual"),
        ("daily 23:30", "today 23:30"),
        ("daily 02:30", "Sat 02:30"),
        ("cron 30 2 * * thu", "Thu 02:30"),
        ("cron 30 2 * * fri", "2026-11-27"),
        ("cron 0 0 24 12 *", "2026-12-24"),
        ("on attach", "with the next disk"),
    ],
)
def test_the_next_run_in_few_words(history: History, schedule: str | None, shown: str) -> None:
    assert words(history, job("a", schedule)) == [shown]


def test_many_jobs_are_not_compared_with_each_other(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs 2 µs each time, and 200 jobs make 20,000 pairs."""
    jobs = [job(f"job{number}", "daily 23:30" if number % 2 else None) for number in range(6)]
    compared = list[object]()

    def told(pair: object) -> bool:
        compared.append(pair)
        return False

    monkeypatch.setattr(Job, "__eq__", lambda self, other: told((self, other)))
    assert words(history, *jobs).count("manual") == 3
    assert compared == []


def test_a_period_counts_from_the_last_run(history: History) -> None:
    every = job("a", "every 7200")
    finish(history, Outcome.DONE, "a", now=NOW - HOUR)
    found = coming(history, every)["a"]
    assert (found.words, found.at) == ("today 14:00", NOW + HOUR)


def test_what_was_missed_is_owed_though_nobody_wrote_it_down(history: History) -> None:
    nightly = job("a", "daily 02:30")
    history.due_runs.write(anchors=[ScheduleAnchor(job="a", at=NOW - 2 * DAY, schedule="daily 02:30", run=0)])
    scheduled_at = datetime(2026, 11, 19, 1, 30, tzinfo=UTC)
    assert coming(history, nightly)["a"] == NextRun(at=None, due=scheduled_at, words="due since Thu 02:30")
    assert history.due_runs.due() == {}
    at_one = datetime(2026, 11, 19, 12, tzinfo=UTC)
    assert words(history, nightly, now=at_one) == ["due since 02:30"]
    assert coming(history, nightly, running=("a",))["a"].words == "Sat 02:30"


def test_a_window_moves_it_and_a_pause_holds_it(history: History) -> None:
    begins = TimeWindow(begin=clock(22), end=clock(6))
    windowed = replace(job("a", "daily 14:00"), window=begins)
    assert words(history, windowed) == ["today 22:00"]
    history.due_runs.pause("a", now=NOW, until=NOW + 3 * DAY, why="")
    assert words(history, windowed, job("b", "daily 02:30")) == ["Mon 22:00", "Sat 02:30"]
    history.due_runs.pause("b", now=NOW, until=NOW + HOUR, why="")
    assert words(history, job("b", "daily 02:30"), job("c", "daily 02:30")) == ["Sat 02:30", "Sat 02:30"]
    assert coming(history, windowed, now=NOW + 4 * DAY)["a"].words == "today 22:00"  # the pause is over
    history.due_runs.pause("a", now=NOW, until=None, why="")
    assert words(history, windowed) == ["when resumed"]


def test_a_chain_names_what_it_waits_for(history: History) -> None:
    first, long = job("mail-store", "daily 02:30"), job("a-name-that-fills-columns", "daily 02:30")
    chained = [replace(job(name, None), after=after) for name, after in (
        ("x", ("mail-store",)), ("y", (long.name,)), ("z", (long.name, "mail-store")),
    )]  # fmt: skip
    assert words(history, first, long, *chained)[2:] == ["after mail-store", "after another", "after 2 others"]


def test_nobody_keeps_the_times(history: History) -> None:
    nightly = job("a", "daily 02:30")

    def nobody(now: datetime) -> str:
        return find_next_runs((nightly,), history.views, now=now).nobody

    assert find_next_runs((job("b", None),), history.views, now=NOW).nobody == ""
    assert nobody(NOW).startswith("no daemon has ever run here: ")
    beat = history.due_runs.begin_beat(boot="x", pid=1, now=NOW)
    assert nobody(NOW + timedelta(minutes=10)) == ""
    assert nobody(NOW + timedelta(minutes=12)) == (
        "the daemon was last seen 12 min ago (it says every 5 min that it is there): `poolferry daemon` keeps these times, "
        "or cron or a timer calls `poolferry run`"
    )
    history.due_runs.beat(beat, NOW, orderly=True)
    assert nobody(NOW + timedelta(minutes=50)) == ""  # a timer calls each quarter of an hour
    assert nobody(NOW + 2 * HOUR).startswith("the daemon was ended 2 h ago: `poolferry daemon` keeps")


def test_a_running_job_owes_nothing(history: History) -> None:
    every = job("a", "every 3600")
    history.due_runs.write(
        due_runs=[DueRun(job="a", scheduled_at=NOW - HOUR, newest=NOW - HOUR, slots=1, why="x", noted=NOW, after_run=0)]
    )
    begin(history, "a", now=NOW - timedelta(minutes=5), why="x")
    assert coming(history, every)["a"].words == "due since 12:00"
    assert coming(history, every, running=("a",))["a"].words == "today 13:55"
