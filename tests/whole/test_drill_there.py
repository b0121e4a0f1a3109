"""Drills of copies on a host, and of what comes from one: damage there is read again there, and who is away is not accused."""

import os
import shutil

import pytest

from tests.whole.damage import NAMES, fill, rot
from tests.whole.house import House, facts, wait_until
from tests.whole.sshd import Link, Sshd, link, sshd

__all__ = ["link", "sshd"]


def test_samples_and_all_of_it_come_back_from_a_host(house: House, sshd: Sshd) -> None:
    fill(house.source)
    house.job(target=sshd.url(house.target), pipe=sshd.pipe, drill={"files": 1000})
    assert house.run().outcome == "done"
    before = facts(house.target / "points")
    for more in ((), ("--whole",)):
        drilled = house.call("drill", "photos", *more)
        assert (drilled.code, drilled.outcome) == (0, "done"), drilled
        assert drilled["drill"]["files"] == 2 * len(NAMES) + 1
    assert facts(house.target / "points") == before
    rot(house.point() / "1")
    bad = house.call("drill", "photos")
    assert (bad.code, bad.outcome) == (1, "failed"), bad
    assert "the copy is damaged in point" in bad["why"]
    assert house.run().outcome == "done"
    assert facts(house.point()) == facts(house.source)
    assert house.call("drill", "photos").outcome == "done"
    assert not (house.state / "drill" / "poolferry-drill-photos").exists()


def state(house: House) -> str:
    (job,) = house.call("status", "photos")["jobs"]
    return str(job["state"])


@pytest.mark.slow
def test_a_host_that_does_not_answer_puts_the_drill_off(house: House, sshd: Sshd) -> None:
    fill(house.source)
    house.job(target=sshd.url(house.target), pipe=sshd.pipe)
    assert house.run().outcome == "done"
    house.job(target=sshd.url(house.target), pipe=sshd.pipe, drill={"every": "7d"})
    sshd.stop()
    off = house.call("drill", "photos")
    assert (off.code, off.outcome, state(house)) == (75, "waiting", "up"), off
    assert " cannot be reached: the host did not answer" in off["why"]
    assert "sshd" in off["hint"]
    sshd.start()
    run = house.run()
    assert (run.outcome, run["drill"]["outcome"]) == ("nothing-to-do", "done"), "what was put off is still owed"


@pytest.mark.slow
def test_a_line_that_breaks_in_the_middle_puts_it_off(house: House, sshd: Sshd, link: Link) -> None:
    house.write("large", os.urandom(150 << 20))
    house.job(target=str(house.target), pipe=sshd.pipe)
    assert house.run().outcome == "done"
    house.job(target=sshd.url(house.target), pipe=sshd.pipe)
    assert house.run().outcome == "nothing-to-do", "the copy is known at this address, too"
    begun, before = house.start_call("drill", "photos"), link.moved
    wait_until(lambda: link.moved > before + (8 << 20))
    link.cut()
    off = house.ended(begun)
    assert (off.code, off.outcome, state(house)) == (75, "waiting", "up"), off
    assert not (house.state / "drill" / "poolferry-drill-photos").exists()


@pytest.mark.slow
def test_damage_that_came_back_counts_though_the_host_is_gone_then(house: House, sshd: Sshd) -> None:
    """Nobody can say whether it is the copy or the way back; that it is no good is sure."""
    fill(house.source)
    house.job(target=sshd.url(house.target), pipe=sshd.pipe, drill={"files": 1000})
    assert house.run().outcome == "done"
    rot(house.point() / "1")
    folder = house.folder / "bin"
    folder.mkdir()
    ending = folder / "rsync"
    server = sshd.pid
    ending.write_text(
        f'#!/bin/sh\n{shutil.which("rsync")} "$@" || exit\nfor last do :; done\n'
        f"case $last in */tree/) pkill -P {server}; kill {server};; esac\n"
    )
    ending.chmod(0o755)
    house.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
    bad = house.call("drill", "photos")
    assert (bad.code, bad.outcome, state(house)) == (1, "failed", "failing"), bad
    assert any("1: rotten" in line for line in bad["drill"]["differences"]), bad


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.sample(1)
def test_a_source_that_does_not_answer_is_not_needed(house: House, sshd: Sshd, whole: bool) -> None:
    fill(house.source)
    house.job(source=sshd.url(house.source), pipe=sshd.pipe, drill={"files": 1000})
    assert house.run().outcome == "done"
    sshd.stop()
    drilled = house.call("drill", "photos", *(["--whole"] if whole else []))
    assert (drilled.code, drilled.outcome) == (0, "done"), drilled
    assert drilled["drill"]["files"] == 2 * len(NAMES) + 1
