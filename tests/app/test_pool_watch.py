"""A job that watches a pool, from the command to status: with a zpool that answers what real ones were recorded to say."""

import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.app.read_status import survey_reading
from orchestrator.app.scrubbed_copies import note_unwatched_scrub
from orchestrator.app.settings import Settings
from orchestrator.history.store import open_history
from orchestrator.process.executor import Reader
from tests.engines.pool.builders import sample
from tests.ferry import Ferry
from tests.history.records import begin, reading

JOB = 'engine = "pool"\nsource = "tank"\n{more}[pool]\naccept = ["old-scrub"]\n'
ZPOOL = """#!/bin/sh
part() {{ sed -n "/^=$1\\$/,/^=/{{/^=/!p}}" "$(cat {folder}/which)"; }}
case "$*" in
version) sed -n 2p "$(cat {folder}/which)";;
"list -Hp -o "*) part list;;
"list -HpPv "*) part vdevs;;
"list -H -o health "*) part list | cut -f 6;;
"status "*) part status;;
"get "*) part settings;;
"send "*) read -r _;;
*) echo "$0 $*" >> {folder}/changed;;
esac
"""
Answers = Callable[[str], dict[str, str]]


@pytest.fixture
def pool(tmp_path: Path) -> Answers:
    """The PATH of a machine whose pool is as one that was recorded."""
    folder = tmp_path / "machine"
    folder.mkdir()
    for name in ("zpool", "zfs"):
        (folder / name).write_text(ZPOOL.format(folder=folder))
        (folder / name).chmod(0o755)

    def answers(name: str) -> dict[str, str]:
        (folder / name).write_bytes(sample(name))
        (folder / "which").write_text(str(folder / name))
        return {"PATH": f"{folder}:{os.environ['PATH']}"}

    return answers


def declare(ferry: Ferry, head: str = "", options: str = "") -> None:
    """The job "watch", beside one that copies."""
    ferry.job()
    (ferry.config / "jobs" / "watch.toml").write_text(JOB.format(more=head) + options)


def stands(ferry: Ferry) -> tuple[int, str]:
    """Return how `status` ends, and the job's state."""
    ended = ferry.run("status", "watch", "--json")
    (job,) = ended.value["jobs"]
    return ended.code, job["state"]


@pytest.mark.parametrize("version", ["2.1", "2.3"])
def test_a_pool_that_breaks_and_is_mended(ferry: Ferry, pool: Answers, version: str) -> None:
    declare(ferry, 'late-after = "2h"\n')
    well = ferry.run("run", "watch", **pool(f"sound-{version}"))
    assert (well.code, "nothing-to-do: tank is sound, 6% full" in well.out) == (0, True), well
    assert stands(ferry) == (0, "up")
    broken = pool(f"unavail-{version}")
    told = ferry.run("run", "watch", **broken)
    assert told.code == 1
    first, hint, *_ = told.out.splitlines()
    assert "in mirror-0 of tank is UNAVAIL" in first
    assert "  what to do: plug it in and `zpool online tank " in hint
    assert stands(ferry) == (4, "failing")
    planned = ferry.run("plan", "watch", **broken)
    assert (planned.code, planned.out.startswith("watch: failed: ")) == (1, True), planned
    assert ferry.run("run", "watch", **pool(f"sound-{version}")).code == 0
    assert stands(ferry) == (0, "up")


def test_check_says_what_it_does(ferry: Ferry, pool: Answers) -> None:
    declare(ferry, 'late-after = "2h"\n')
    told = ferry.run("check", "--system", **pool("sound-2.3")).out
    assert "watch: pool watches the pool tank, only by hand, late after 2 h" in told
    assert "ok  pool tank: tank is sound, 6% full" in told


def test_advice_is_a_warning_of_a_run_that_went_well(ferry: Ferry, pool: Answers) -> None:
    declare(ferry)
    told = ferry.run("run", "watch", "--json", **pool("advice-2.3")).value
    assert (told["outcome"], len(told["warnings"])) == ("nothing-to-do", 4)
    assert any(line.endswith("`zfs inherit sync tank/photos`") for line in told["warnings"])
    assert "[keep]" not in ferry.run("show", "watch").out


def test_there_is_nothing_to_verify_and_that_is_no_failure(ferry: Ferry, pool: Answers) -> None:
    declare(ferry)
    machine = pool("sound-2.3")
    assert ferry.run("run", "watch", "photos", **machine).code == 0
    named = ferry.run("verify", "watch", **machine)
    assert (named.code, "copies nothing, so there is nothing to verify" in named.err) == (2, True), named
    assert ferry.run("verify", **machine).code == 0
    assert stands(ferry) == (0, "up")


def test_a_scrub_waits_for_a_send_and_then_begins(ferry: Ferry, pool: Answers, tmp_path: Path) -> None:
    declare(ferry, options='scrub-every = "30d"\n')
    machine = pool("never-2.3")
    send = [f"{tmp_path}/machine/zfs", "send", "tank/photos@a"]
    with subprocess.Popen(send, env={**os.environ, **machine}, stdin=subprocess.PIPE):  # it ends with its input
        ended = ferry.run("run", "watch", **machine)
    assert ended.code == 75, ended
    assert "at work: zfs send of tank/photos" in ended.out
    told = ferry.run("run", "watch", "--json", **machine).value
    assert (tmp_path / "machine" / "changed").read_text().endswith("zpool scrub tank\n")
    assert told["outcome"] == "failed", told  # nothing scrubs here, and the look after it says so
    assert "expected: a scrub of tank is running; found: no scan" in told["why"]


@pytest.mark.parametrize(
    "section", ["[keep]\ndaily = 3\n", "[snapshots]\ndaily = 3\n", '[verify]\nevery = "7d"\n', "[guard]\n"]
)
def test_sections_that_mean_nothing_here_are_mistakes(ferry: Ferry, section: str) -> None:
    declare(ferry, options=section)
    told = ferry.run("check")
    assert (told.code, "means nothing to the engine pool" in told.err) == (2, True), told


@pytest.mark.parametrize(("version", "ago", "read"), [("2.1", 1, 2), ("2.3", 1, 2), ("2.3", 0, 0)])
def test_a_clean_scrub_reads_the_copies_of_datasets_on_its_pool(
    ferry: Ferry, pool: Answers, version: str, ago: int, read: int
) -> None:
    """All that was there when it began counts, once; and nothing that another reading found bad."""
    declare(ferry)
    (ferry.config / "jobs" / "guests.toml").write_text(
        'engine = "zfs"\nsource = "ssd/guests"\ntarget = "guests-copies"\n'
    )
    with (ferry.config / "targets.toml").open("a") as targets:
        targets.write('[place.guests-copies]\ndataset = "tank/copies"\n')
    began = (
        datetime.fromtimestamp(1795200385, UTC) if version == "2.3" else datetime(2026, 11, 20, 18, 48, 7, tzinfo=UTC)
    )
    made = began - timedelta(days=ago)
    with open_history(str(ferry.state / "history.sqlite")) as history:
        run = begin(history, "guests")
        for name in ("a", "b", "bad"):
            history.point_made(
                "guests", "guests-copies", name, run, entries=1, bytes=None, taken=made, now=made + timedelta(hours=1)
            )
        history.verified(
            "guests", "guests-copies", "bad", reading=reading(rotten=1), now=made - timedelta(hours=1), scope="whole"
        )
        history.point_made(
            "guests", "guests-copies", "later", run, entries=1, bytes=None, taken=made, now=began + timedelta(hours=2)
        )
    for _ in range(2):
        assert ferry.run("run", "watch", **pool(f"sound-{version}")).code == 0
    settings = Settings(config=str(ferry.config), state=str(ferry.state))
    (found,) = survey_reading(settings, began + timedelta(days=1))
    assert (found.job, found.status.points, found.status.points - found.status.never) == ("guests", 4, read + 1)
    points = {point["point"]: point["verified"] for point in ferry.run("points", "guests", "--json").value["points"]}
    assert sum(told is not None and told >= f"{began:%Y-%m-%dT%H:%M}" for told in points.values()) == read
    with settings.views() as views:
        counts = views.monthly.records(["guests"], began - timedelta(days=3), began + timedelta(days=3)).counts[
            "guests"
        ]
    assert counts["readings"] == bool(read) + 1, "it is one reading, and the bad one"


def test_a_pool_that_nobody_watches_is_looked_at_after_a_run(
    ferry: Ferry, pool: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that a job watches is left to that job."""
    monkeypatch.setenv("PATH", pool("sound-2.3")["PATH"])
    ferry.job()
    (ferry.config / "jobs" / "guests.toml").write_text('engine = "zfs"\nsource = "ssd/guests"\ntarget = "copies"\n')
    with (ferry.config / "targets.toml").open("a") as targets:
        targets.write('[place.copies]\ndataset = "tank/copies"\n')
    settings = Settings(config=str(ferry.config), state=str(ferry.state))
    known, now, made = settings.configuration(), datetime(2026, 11, 30, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)
    with open_history(str(ferry.state / "history.sqlite")) as history:
        run = begin(history, "guests")
        history.point_made("guests", "copies", "a", run, entries=1, bytes=None, taken=made, now=made)
        note_unwatched_scrub(history, known.job("guests"), known.jobs, Reader(log=lambda _: None), now)
        (point,) = history.views.points("guests")
        assert point.whole_at is not None
        (ferry.config / "jobs" / "watch.toml").write_text(JOB.format(more=""))
        watched = settings.configuration().jobs
        note_unwatched_scrub(history, known.job("guests"), watched, Reader(log=refuse), now)


def refuse(line: str) -> None:
    """Fail at a program."""
    raise AssertionError(line)
