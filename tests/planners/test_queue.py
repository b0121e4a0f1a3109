"""Test whose turn it is: one run per place, so many at once, priorities, chains, windows, rests; and why the others wait."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from orchestrator.domain.due import DueRun, JobHistory, JobPause, PastRun
from orchestrator.domain.job import Job, TimeWindow
from orchestrator.domain.run import Outcome
from orchestrator.planners.queue import QueueDecision, RunQueue, decide_queue
from orchestrator.schedule.triggers import ZonedCalendar
from tests.planners.two_years import job

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
CALENDAR = ZonedCalendar(ZoneInfo("Europe/Berlin"))


def due_run(name: str, ago: float = 1, **other: Any) -> DueRun:
    scheduled_at = NOW - ago * HOUR
    return DueRun(
        job=name,
        scheduled_at=scheduled_at,
        newest=scheduled_at,
        slots=1,
        why="",
        noted=scheduled_at,
        after_run=0,
        **other,
    )


def turn(*jobs: Job, owe: list[DueRun] | None = None, **other: Any) -> QueueDecision:
    usual: dict[str, Any] = {"running": {}, "paused": {}, "past": {}, "parallel": 2}
    debts = [due_run(one.name) for one in jobs] if owe is None else owe
    return decide_queue(RunQueue(jobs={one.name: one for one in jobs}, due=debts, **{**usual, **other}), NOW, CALENDAR)


def begin(found: QueueDecision) -> list[str]:
    return [each.job for each in found.begin]


def whys(found: QueueDecision) -> dict[str, str]:
    return {each.due.job: each.why for each in found.waiting}


def test_the_oldest_begin_first_and_only_so_many() -> None:
    jobs = [job(name, "every 60") for name in "abc"]
    found = turn(*jobs, owe=[due_run("a", 1), due_run("b", 3), due_run("c", 2)])
    assert begin(found) == ["b", "c"]
    assert whys(found) == {"a": "2 runs are going on, as many as may at once"}
    assert begin(turn(*jobs, running={"x": "there"})) == ["a"]


def test_nothing_begins_at_a_place_that_somebody_else_uses() -> None:
    jobs = [job(name, "every 60") for name in "ab"]
    found = turn(*jobs, held={jobs[0].target.name: "a visit of disk red goes on"})
    assert (begin(found), whys(found)) == (["b"], {"a": "a visit of disk red goes on"})


def test_a_priority_comes_before_age_and_a_disk_before_a_nightly_run() -> None:
    nightly, disk = job("nightly", "daily 02:30"), job("disk", "on attach")
    first = replace(job("first", "daily 02:30"), priority=1)
    last = replace(job("last", "on attach"), priority=-1)
    found = turn(
        nightly,
        disk,
        first,
        last,
        owe=[due_run("nightly", 9), due_run("disk"), due_run("first"), due_run("last", 99)],
        parallel=4,
    )
    assert begin(found) == ["first", "disk", "nightly", "last"]


def test_one_run_goes_into_a_place() -> None:
    one, two = job("one", "every 60", place="vault"), job("two", "every 60", place="vault")
    found = turn(one, two)
    assert begin(found) == ["one"]
    assert whys(found) == {"two": "one runs into the same place, vault"}
    assert whys(turn(two, running={"one": "vault"})) == {"two": "one runs into the same place, vault"}


def test_a_run_that_waits_for_a_permit_keeps_its_place_and_none_of_those_at_once() -> None:
    one, two, four = job("one", "every 60", place="vault"), job("two", "every 60", place="vault"), job("4", "every 60")
    waits: dict[str, Any] = {"running": {"one": "vault"}, "patient": frozenset({"one"}), "parallel": 1}
    found = turn(one, two, four, **waits)
    assert begin(found) == ["4"]
    assert whys(found) == {
        "one": "its run before this one is going on",
        "two": "one runs into the same place, vault",
    }
    three = replace(job("three", "every 60"), after=("one",))
    assert whys(turn(three, **waits)) == {"three": "waits for one, which is running"}
    assert len(begin(turn(four, job("5", "every 60"), **waits))) == 1, "only so many of the others"


def test_of_forty_jobs_of_one_place_one_waits_for_a_permit() -> None:
    jobs = [job(f"j{number:02}", "every 60", place="nas") for number in range(40)]
    waiting: dict[str, str] = {}
    while found := begin(turn(*jobs, running=waiting, patient=frozenset(waiting))):
        waiting |= dict.fromkeys(found, "nas")
    assert list(waiting) == ["j00"]


def test_one_that_waits_holds_up_none_behind_it() -> None:
    one, two, three = (
        job("one", "every 60", place="vault"),
        job("two", "every 60", place="vault"),
        job("three", "every 60"),
    )
    assert begin(turn(one, two, three)) == ["one", "three"]


def test_a_job_does_not_overtake_itself() -> None:
    assert whys(turn(job("a", "every 60"), running={"a": "a"})) == {"a": "its run before this one is going on"}


def test_a_rest_holds_until_it_is_over() -> None:
    one = job("a", "every 60")
    rest = JobPause(job="a", since=NOW - HOUR, until=NOW + HOUR, why="lent")
    found = turn(one, paused={"a": rest})
    assert whys(found) == {"a": "paused until 2026-11-20 14:00: lent"}
    assert found.waiting[0].until == NOW + HOUR
    assert whys(turn(one, paused={"a": replace(rest, until=None, why="")})) == {"a": "paused"}
    assert begin(turn(one, paused={"a": replace(rest, until=NOW)})) == ["a"]


def test_runs_begin_only_within_their_window() -> None:
    closed = replace(job("a", "every 60"), window=TimeWindow(begin=time(22), end=time(6)))
    found = turn(closed)
    assert whys(found) == {"a": "its window opens at 2026-11-20 22:00"}
    assert found.waiting[0].until == datetime(2026, 11, 20, 21, tzinfo=UTC)
    assert begin(turn(replace(closed, window=TimeWindow(begin=time(12), end=time(14))))) == ["a"]


def test_a_try_that_waited_is_not_repeated_too_soon() -> None:
    tried = due_run("a", tries=2, not_before=NOW + HOUR, told="the disk is away")
    found = turn(job("a", "every 60"), owe=[tried])
    assert whys(found) == {"a": "tried 2 times: the disk is away; again at 2026-11-20 14:00"}
    assert begin(turn(job("a", "every 60"), owe=[replace(tried, not_before=NOW)])) == ["a"]


def ended(outcome: Outcome) -> JobHistory:
    last = PastRun(id=1, begun=NOW, begun_why="", ended=NOW, outcome=outcome, why="no room")
    return JobHistory(last=last, last_ended=last)


def test_a_slot_after_others_waits_until_they_have_ended_well() -> None:
    first, second = job("first", "daily 02:30"), job("second", "daily 03:00", after=("first",))
    only = [due_run("second")]
    assert whys(turn(first, second, owe=only)) == {"second": "waits for first, of which history knows no run"}
    assert whys(turn(first, second, past={"first": ended(Outcome.DONE)})) == {
        "second": "waits for first, which is running"
    }
    resting = JobPause(job="first", since=NOW, until=None, why="")
    found = turn(first, second, past={"first": ended(Outcome.DONE)}, paused={"first": resting})
    assert whys(found) == {"first": "paused", "second": "waits for first, which is due"}
    failed = turn(first, second, owe=only, past={"first": ended(Outcome.FAILED)})
    assert whys(failed) == {"second": "waits for first, whose last run failed: no room"}
    for outcome in (Outcome.DONE, Outcome.NOTHING):
        assert begin(turn(first, second, owe=only, past={"first": ended(outcome)})) == ["second"]


def test_a_chain_without_a_time_begins_when_it_is_owed() -> None:
    after = job("second", None, after=("first",))
    assert begin(turn(job("first", "daily 02:30"), after, owe=[due_run("second")])) == ["second"]


def test_what_is_owed_by_a_job_that_is_gone_is_left_alone() -> None:
    assert turn(owe=[due_run("gone")]) == QueueDecision(begin=(), waiting=())
