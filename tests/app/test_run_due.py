"""The clock without a daemon: `run --due`, called again and again, keeps the same promises."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.due import ScheduleAnchor
from orchestrator.history.store import open_history
from tests.daemon.daemon_world import daemon, promise, runs
from tests.ferry import Ferry

pytestmark = pytest.mark.slow


def missed(ferry: Ferry, job: str = "photos", schedule: str = "daily 02:30", days: int = 3) -> None:
    """As if slots of the last days had been seen last then."""
    with open_history(str(ferry.state / "history.sqlite")) as history:
        at = datetime.now(UTC) - timedelta(days=days)
        history.due_runs.write(anchors=[ScheduleAnchor(job=job, at=at, schedule=schedule, run=0)])
        history.due_runs.begin_beat(boot="another", pid=1, now=at)


def test_what_is_owed_runs_once(ferry: Ferry) -> None:
    ferry.job(more='daily = "02:30"\n')
    first = ferry.run("run", "--due")
    assert (first.code, first.out, runs(ferry)) == (0, "", [])
    missed(ferry)
    told = ferry.run("run", "--due")
    assert told.code == 0
    assert told.out.startswith("photos: done: ")
    (run,) = runs(ferry)
    assert run["requested"].startswith("late: the ")
    assert "and 2 more until" in run["requested"]
    assert ferry.run("run", "--due", "--json").value["runs"] == []
    assert promise(ferry)["due"] is None
    assert promise(ferry)["next"]


def test_runs_of_one_call_follow_each_other_as_they_are_owed(ferry: Ferry) -> None:
    ferry.job("first", 'daily = "02:30"\n')
    ferry.job("second", 'after = ["first"]\n')
    ferry.run("run", "--due")
    missed(ferry, "first")
    told = ferry.run("run", "--due", "--json").value
    assert [(run["job"], run["outcome"]) for run in told["runs"]] == [("first", "done"), ("second", "done")]


def test_what_has_to_wait_stays_owed(ferry: Ferry) -> None:
    ferry.job(more='daily = "02:30"\n[hooks]\nbefore = [["/bin/sh", "-c", "exit 75"]]\n')
    ferry.run("run", "--due")
    missed(ferry)
    assert ferry.run("run", "--due").code == 75
    assert ferry.run("run", "--due").code == 0  # its next try is in a minute
    assert len(runs(ferry)) == 1
    assert promise(ferry)["due"]["tries"] == 1


def test_only_the_jobs_that_are_named_begin(ferry: Ferry) -> None:
    for name in ("one", "two"):
        ferry.job(name, 'every = "1h"\n')
    assert [run["job"] for run in ferry.run("run", "--due", "two", "--json").value["runs"]] == ["two"]
    assert promise(ferry, "one")["due"]


def test_beside_a_daemon_it_leaves_everything_to_it(ferry: Ferry) -> None:
    ferry.job(more='daily = "02:30"\n')
    with daemon(ferry) as clock:
        clock.says("read ")
        told = ferry.run("run", "--due")
        assert told.code == 75
        assert f"another daemon, process {clock.process.pid}" in told.err
        clock.end()


def test_without_a_job_and_without_owed_it_is_wrong_usage(ferry: Ferry) -> None:
    ferry.job()
    assert ferry.run("run").code == 2
