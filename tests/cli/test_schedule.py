"""schedule, pause, resume: what is promised, in words and as JSON, before any daemon and beside one."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.due import DueRun
from orchestrator.history.store import open_history
from tests.cli.import_samples import imported
from tests.ferry import Ferry

BERLIN = {"TZ": "Europe/Berlin"}


def test_each_schedule_is_told_in_words_with_its_next_runs(ferry: Ferry) -> None:
    ferry.job("a", 'schedule = "30 2 * * mon-fri"\npriority = 5\nstop-at = "06:30"\n')
    ferry.job("b", 'on = "attach"\nmin-interval = "20h"\n')
    ferry.job("c", 'after = ["a", "b"]\nwindow = "22:00-06:00"\n')
    ferry.job("d")
    told = ferry.run("schedule", **BERLIN)
    assert told.code == 0
    lines = told.out.splitlines()
    assert lines[0] == 'a: at "30 2 * * mon-fri", stopped at 06:30, priority 5'
    assert re.fullmatch(r"  next: (\d{4}-\d\d-\d\d 02:30(, |$)){3}", lines[1])
    assert lines[2:5] == [
        "b: when the target is attached, not again within 20 h",
        "c: after a and b, only within 22:00-06:00",
        "d: only by hand",
    ]
    assert lines[5].startswith("no daemon has ever run here: `poolferry daemon` keeps these times")


def test_the_next_runs_are_the_same_instants_in_json(ferry: Ferry) -> None:
    ferry.job("a", 'daily = "02:30"\n')
    ferry.job("b", 'every = "6h"\n')
    value = ferry.run("schedule", "a", "--json", **BERLIN).value
    assert [job["job"] for job in value["jobs"]] == ["a"]
    instants = [datetime.fromisoformat(scheduled_at) for scheduled_at in value["jobs"][0]["next"]]
    now = datetime.now(UTC)
    assert len(instants) == 3
    assert all(now < scheduled_at < now + timedelta(days=4) for scheduled_at in instants)
    assert all(scheduled_at.minute == 30 and scheduled_at.hour in (0, 1) for scheduled_at in instants)
    assert value["daemon"] is None


def test_what_is_owed_is_told_with_why_it_waits(ferry: Ferry) -> None:
    ferry.job("a", 'daily = "02:30"\n')
    now = datetime.now(UTC)
    with open_history(str(ferry.state / "history.sqlite")) as history:
        due_run = DueRun(
            job="a", scheduled_at=now, newest=now, slots=1, why="daily at 02:30; due then", noted=now, after_run=0, tries=2,
            not_before=now + timedelta(minutes=9), told="the disk is away",
        )  # fmt: skip
        history.due_runs.write(due_runs=[due_run])
        history.due_runs.begin_beat(boot="a", pid=1, now=now)
    told = ferry.run("schedule").out
    assert "  due: daily at 02:30; due then\n  waits: tried 2 times: the disk is away; again at " in told
    assert "the daemon was last seen" in told
    (job,) = ferry.run("schedule", "--json").value["jobs"]
    assert (job["owed"]["tries"], job["owed"]["slots"]) == (2, 1)


def test_a_look_writes_nothing(ferry: Ferry) -> None:
    ferry.job("a", 'every = "1m"\n')
    told = ferry.run("schedule")
    assert "begins as soon as the daemon looks" in told.out
    assert not ferry.state.exists()


def test_check_tells_the_next_runs_too(ferry: Ferry) -> None:
    ferry.job("a", 'daily = "02:30"\n')
    ferry.job("b", 'every = "6h"\n')
    first, second, third = ferry.run("check").out.splitlines()
    assert "daily at 02:30" in first
    assert re.fullmatch(r"  next: (\d{4}-\d\d-\d\d 02:30(, |$)){3}", second)
    assert "every 6 h" in third
    assert len(ferry.run("check", "--json").value["jobs"][0]["next"]) == 3


def test_a_rest_is_for_a_while_or_until_it_is_ended(ferry: Ferry) -> None:
    ferry.job("a", 'daily = "02:30"\n')
    told = ferry.run("pause", "a")
    assert told.out == "a: rests until `poolferry resume a`\n"
    assert "  paused\n" in ferry.run("schedule").out
    until = datetime.fromisoformat(ferry.run("pause", "a", "--for", "3d", "--json").value["until"])
    assert timedelta(days=2, hours=23) < until - datetime.now(UTC) <= timedelta(days=3)
    assert ferry.run("resume", "a", "--json").value["resumed"] == ["a"]
    assert ferry.run("schedule", "--json").value["jobs"][0]["paused"] is None


@pytest.mark.parametrize(
    ("arguments", "code"), [(["pause", "a", "--for", "soon"], 2), (["pause", "b"], 2), (["resume"], 2)]
)
def test_wrong_usage_is_told(ferry: Ferry, arguments: list[str], code: int) -> None:
    ferry.job("a", 'daily = "02:30"\n')
    assert ferry.run(*arguments).code == code


def test_a_run_needs_no_clock(ferry: Ferry) -> None:
    ferry.job("a", 'daily = "02:30"\n')
    for command in (["run", "a"], ["--help"]):
        assert not imported(ferry, *command) & {"apscheduler", "cronsim", "zoneinfo", "tzlocal"}
    assert not {"apscheduler", "tzlocal"} & (imported(ferry, "schedule") | imported(ferry, "status"))


def test_a_run_within_its_window_ends_with_it(ferry: Ferry) -> None:
    from datetime import time
    from typing import cast

    import time_machine

    from orchestrator import compose
    from orchestrator.domain.job import Job, TimeWindow

    class Windowed:
        stop_at = None
        window = TimeWindow(begin=time(22), end=time(6))

    at = datetime(2026, 11, 20, 5, 59, 59, 900_000).astimezone()
    with time_machine.travel(at, tick=True):
        stop = compose.make_stop_request(cast(Job, Windowed()))
        assert stop.wait(5)
        assert stop.reason == "its window, 22:00-06:00, ended"
    with time_machine.travel(at.replace(hour=12), tick=True):
        assert not compose.make_stop_request(cast(Job, Windowed())).wait(0.3)
