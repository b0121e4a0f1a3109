"""Two years of a machine in several zones: each promised run once, none twice, whatever happens to clock and machine."""

from datetime import datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

import pytest

from tests.planners.expected import expected
from tests.planners.two_years import BEGIN, END, Machine, job

MORE = ("America/New_York", "Asia/Kathmandu", "America/Santiago")
# A life takes ten seconds and more: of the zones the usual one, and one whose clocks are set by half an hour.
LIVES = (
    ("Europe/Berlin", False),
    pytest.param("Europe/Berlin", True, marks=pytest.mark.long),
    pytest.param("Australia/Lord_Howe", False, marks=pytest.mark.long),
    ("Australia/Lord_Howe", True),
    *(pytest.param(zone, steps, marks=pytest.mark.long) for zone in MORE for steps in (False, True)),
)
FIXED = {
    "nightly": "30 2 * * *", "first": "0 2 * * *", "thrice": "15 0,1,3 * * *", "weekly": "45 1 * * sun", "monthly": "0 4 1 * *",
}  # fmt: skip
STARRED = {"hourly": "5 */3 * * *", "often": "*/30 1-4 * * *"}
SETTLED = timedelta(days=4)  # what is owed at the very end may still be waiting for its turn


def lived(zone: str, *, steps: bool, seed: int, end: datetime = END) -> Machine:
    """A machine that has lived for two years, or less."""
    clocked = FIXED | STARRED
    jobs = [
        *(job(name, f"cron {fields}", place="one" if name in ("first", "often") else "") for name, fields in clocked.items()),
        job("daily", "daily 02:30"),
        job("period", "every 21600"),
        job("second", None, after=("nightly",)),
        job("later", "daily 03:00", after=("nightly",)),
    ]  # fmt: skip
    machine = Machine(jobs=tuple(jobs), zone=ZoneInfo(zone), chance=Random(f"{zone} {seed}"), steps=steps, end=end)
    machine.live()
    return machine


def spans(machine: Machine, name: str) -> list[tuple[datetime, datetime]]:
    """Return what was served of a job, as (first slot, last slot), by the clock and by hand; what is owed at the end too."""
    found = [(due_run.scheduled_at, due_run.newest) for due_run, _ in machine.concluded if due_run.job == name]
    found += [(after + timedelta(microseconds=1), until) for job_, after, until in machine.by_hand if job_ == name]
    return sorted(
        found + [(due_run.scheduled_at, due_run.newest) for due_run in machine.due.values() if due_run.job == name]
    )


def counted(machine: Machine, name: str, fields: str, zone: str) -> tuple[list[datetime], list[datetime]]:
    """Slots that nobody served, and slots that were served more than once."""
    held, at = spans(machine, name), 0
    never, twice = [], []
    for scheduled_at in expected(fields, ZoneInfo(zone), BEGIN, min(END, machine.highest) - SETTLED):
        while at < len(held) and held[at][1] < scheduled_at:
            at += 1
        times = sum(begin <= scheduled_at <= end for begin, end in held[at : at + 3])
        never += [scheduled_at] if times == 0 else []
        twice += [scheduled_at] if times > 1 else []
    return never, twice


@pytest.mark.parametrize(("zone", "steps"), LIVES)
@pytest.mark.sample(1)
def test_each_promised_run_once_and_none_twice(zone: str, steps: bool) -> None:
    machine = lived(zone, steps=steps, seed=1)
    exact = FIXED | {"daily": "30 2 * * *", "later": "0 3 * * *"} | ({} if steps else STARRED)
    for name, fields in exact.items():
        assert counted(machine, name, fields, zone) == ([], []), name
        assert sum(due_run.job == name for due_run, _ in machine.concluded) > 20, name
    assert_no_run_is_for_nothing(machine, set(exact))
    assert_others_keep_going(machine)


def assert_no_run_is_for_nothing(machine: Machine, names: set[str]) -> None:
    """Of all tries for one slot only the last one ended well: no slot is run for again once it is served."""
    ends = {run.id: run for runs in machine.runs.values() for run in runs}
    done: set[tuple[str, datetime]] = set()
    for due_run, run in machine.begun:
        key = (due_run.job, due_run.newest)
        assert key not in done, key
        if due_run.job in names and ends[run.id].well:
            done.add(key)


def assert_others_keep_going(machine: Machine) -> None:
    """A job that counts from its own runs neither stops nor storms: it begins again in time, and never early."""
    period = [run for run in machine.runs["period"] if run.begun_why != "by hand"]
    assert len(period) > 1500
    well_before: datetime | None = None
    early = 0
    for run in machine.runs["period"]:
        if run.begun_why != "by hand" and well_before is not None:
            early += well_before <= run.begun < well_before + timedelta(hours=6)
        well_before = run.begun if run.well else None
    assert early <= (40 if machine.steps else 0)
    second = sum(run.well for run in machine.runs["second"])
    nightly = sum(run.well for run in machine.runs["nightly"])
    assert 0.7 * nightly < second < 1.3 * nightly


def test_what_was_missed_says_why() -> None:
    machine = lived("Europe/Berlin", steps=True, seed=2, end=BEGIN + timedelta(days=120))
    told = {due_run.why.partition(" from ")[0] for due_run, _ in machine.concluded if due_run.why.startswith("late: ")}
    assert told >= {
        "late: the machine was off",
        "late: the machine slept",
        "late: the daemon was not running",
        "late: the clock was set forth",
    }


def test_the_same_seed_is_the_same_life() -> None:
    first, again = (lived("Asia/Kathmandu", steps=True, seed=3, end=BEGIN + timedelta(days=60)) for _ in range(2))
    assert first.runs == again.runs
