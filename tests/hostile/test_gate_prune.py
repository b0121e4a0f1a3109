"""The machine of a gate prunes the points that a key added to a folder, by its own rules; neither a sender nor a cut leads it astray."""

import fcntl
import os
import re
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.names import point_name
from orchestrator.history.arrivals import read_arrivals
from tests.hostile.adding_gate import first_point, script
from tests.whole.house import House, Ran, facts, kill, trees_equal, wait_until
from tests.whole.sshd import Sshd, sshd

pytestmark = [pytest.mark.slow, pytest.mark.namespace]
__all__ = ["sshd"]
DAY = timedelta(days=1)
PAGE = (Path(__file__).parents[2] / "jobs/guarantees.md").read_text()


def prunes(house: House, **rules: Any) -> None:
    """Declare a job that prunes the gate's folder."""
    more = "".join(f"{key.replace('_', '-')} = {value!r}\n".replace("'", '"') for key, value in rules.items())
    text = f'engine = "prune"\nsource = "{house.target}"\n[keep]\ndaily = 1\n[prune]\n{more or "last = 2"}\n'
    house.write(house.config / "jobs/in.toml", text)


def came(house: House, *days: float, dated: bool = True) -> None:
    """Let the points have come so many days ago, in the order in which they came, as the ledger has it, and be `dated` so."""
    folder, now = house.state / "arrivals", datetime.now(UTC)
    lines = [(path, line.split("\t")) for path in sorted(folder.iterdir()) for line in path.read_text().splitlines()]
    there = set(house.points())
    lines = [each for each in lines if each[1][1].partition(".")[0] in there]
    lines.sort(key=lambda each: int(each[1][3]))
    assert len(lines) == len(days), lines
    for path in folder.iterdir():
        path.unlink()
    for (path, (_, mark, series, order, *_)), ago in zip(lines, days, strict=True):
        old, _, number = mark.partition(".")
        at, name = now - ago * DAY, old
        if (
            dated
            and ago
            and (house.target / f"points/{old}.manifest.gz").stat().st_size
            and old != (name := point_name(at))
        ):
            house.redate(old, name)
        with path.open("a") as file:
            # As an earlier version wrote it, without a sum.
            file.write("\t".join([at.isoformat(timespec="seconds"), f"{name}.{number}", series, order]) + "\n")


def more_points(house: House, count: int) -> None:
    for number in range(count):
        house.write("new", f"file {number}")
        assert (ended := house.run()).outcome == "done", ended


def refused(house: House, *guards: str) -> Ran:
    """Require that the pruning refuses, for these reasons, and that the command it names accepts them."""
    ended = house.run("in")
    assert ended.outcome == "refused", ended
    (words,) = re.findall(r"poolferry run in ((?:--allow [a-z-]+ ?)+)", ended["hint"])
    assert words.split()[1::2] == list(guards), ended
    return ended


def test_points_go_by_when_they_came_and_the_sender_goes_on(house: House, sshd: Sshd) -> None:
    folder = first_point(house, sshd)
    more_points(house, 3)
    prunes(house, last=1)
    assert house.run("in").outcome == "nothing-to-do"  # none is old enough
    came(house, 90, 80, 70, 0)
    names = house.points()
    before = facts(house.point())
    planned = house.call("plan", "in")
    assert all(f"{folder}@{name}" in str(planned.value) for name in names[:3]), planned
    assert house.points() == names
    checked = house.call("check", "--system")
    assert "4 points" in str(checked.value), checked
    assert (ended := house.run("in")).outcome == "done", ended
    assert house.points() == names[3:]
    assert sorted(path.name for path in (folder / "points").iterdir()) == [names[3], f"{names[3]}.manifest.gz"]
    assert not (folder / ".poolferry/trash").exists()
    assert facts(house.point()) == before
    assert house.run("in").outcome == "nothing-to-do"
    assert (same := house.run()).outcome == "nothing-to-do", same
    more_points(house, 1)
    assert trees_equal(house.source, house.point())
    status = house.call("status")
    assert status.code == 0, status  # that points went there is no loss of the sender's
    house.write(folder / "points/keep", "")
    for name in house.points():
        (folder / "points" / name).rename(house.folder / name)
    house.run()
    assert "vanished" in str(house.call("status").value)  # but the newest never goes by rules


def test_what_looks_wrong_prunes_nothing_before_a_person_looked(house: House, sshd: Sshd) -> None:
    house.write("disk", os.urandom(3 << 20))
    folder = first_point(house, sshd)
    more_points(house, 1)
    prunes(house, last=1)
    house.run("in")
    house.write("disk", os.urandom(3 << 20))
    more_points(house, 1)
    came(house, 90, 80, 1)
    names = house.points()
    assert "100% of" in refused(house, "max-changed")["why"]
    assert house.points() == names
    assert (status := house.call("status")).code == 4, status
    ended = house.run("in", "--allow", "max-changed")
    assert (ended.outcome, house.points()) == ("done", names[2:]), ended

    assert script(sshd, "prepare.sh", str(folder), "photos", "1", "work").returncode == 0
    assert script(sshd, "store.sh", f"{folder}/.poolferry/manifest.gz", stdin=b"x").returncode == 0
    assert script(sshd, "publish.sh", str(folder), "2099-01-01T000000Z", ".poolferry/manifest.gz").returncode == 0
    more_points(house, 1)
    came(house, 50, 45, 0, dated=False)  # its name is the last one, and it is not the last that came
    refused(house, "dated-ahead", "max-changed")
    came(house, 50, 60, 0, dated=False)  # a clock that was set back in between: what came later seems older
    refused(house, "clock", "dated-ahead", "max-changed")
    came(house, 50, 20, 20, dated=False)
    guards = ("dated-ahead", "max-changed", "silent-after")
    prunes(house, last=1, never_younger_than="10d")
    refused(house, *guards)
    ended = house.run("in", *(word for guard in guards for word in ("--allow", guard)))
    assert (ended.outcome, len(house.points())) == ("done", 1), ended
    assert not (folder / "points/2099-01-01T000000Z").exists()


def filled(house: House, count: int, files: int) -> list[str]:
    """Points that came by another way, with many files in deep folders and links that lead out."""
    names = [f"2026-0{number}-01T000000Z" for number in range(1, count + 1)]
    for name in names:
        for number in range(files):
            house.write(house.target / "points" / name / f"{'d/' * (number % 40)}{number % 97}/{number}", name)
        (house.target / "points" / name / "out").symlink_to(house.source)
        (house.target / "points" / f"{name}.manifest.gz").write_bytes(b"")
    return names


@pytest.mark.long
def test_a_removal_that_is_killed_goes_on(house: House, sshd: Sshd) -> None:
    folder = first_point(house, sshd)
    source = facts(house.source)
    names = filled(house, 4, 3000)
    prunes(house, last=1)
    assert house.run("in").outcome == "nothing-to-do"  # it is the first that sees them
    more_points(house, 1)
    came(house, 95, 90, 80, 70, 60, 0)
    run = house.start("in")
    trash = folder / ".poolferry/trash"
    wait_until(trash.exists)
    wait_until(lambda: sum(map(len, (found for _, _, found in os.walk(trash)))) < 11_000, pause=0.001)
    kill(run.pid)
    run.communicate(timeout=30)
    assert any(trash.iterdir()), "the kill comes too late to prove anything"
    assert not set(names) & set(house.points())
    before = facts(folder / "points")
    assert (ended := house.run("in")).outcome == "done", ended
    assert not trash.exists()
    assert len(house.points()) == 1
    kept = facts(folder / "points")
    assert kept == {path: each for path, each in before.items() if path in kept}
    assert facts(house.source) == source | {
        key: each for key, each in facts(house.source).items() if key in (b"", b"/new")
    }
    assert house.run("in").outcome == "nothing-to-do"


def test_nothing_goes_while_the_gate_writes_there(house: House, sshd: Sshd) -> None:
    folder = first_point(house, sshd)
    more_points(house, 1)
    prunes(house, last=1)
    came(house, 90, 0)
    names = house.points()
    with (folder / ".poolferry/adding").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)  # as a copy holds it that comes in
        run = house.start("in")
        time.sleep(3)
        assert run.poll() is None
        assert house.points() == names
    assert (ended := house.ended(run)).outcome == "done", ended
    assert house.points() == names[1:]


def test_a_name_that_comes_again_counts_from_then(house: House, sshd: Sshd) -> None:
    """A sender that makes a point anew with the name of one that is gone makes it no older."""
    folder = first_point(house, sshd)
    (name,) = house.points()
    came(house, 90)
    for path in (folder / "points").iterdir():
        path.rename(house.folder / path.name)
    assert script(sshd, "prepare.sh", str(folder), "photos", "1", "work").returncode == 0
    assert script(sshd, "store.sh", f"{folder}/.poolferry/manifest.gz", stdin=b"x").returncode == 0
    assert script(sshd, "publish.sh", str(folder), name, ".poolferry/manifest.gz").returncode == 0
    mark = f"{name}.{(folder / 'points' / name).stat().st_ino}"
    at = read_arrivals(str(house.state))[(str(folder), mark)]
    assert datetime.now(UTC) - at < timedelta(hours=1)


def test_the_job_of_the_page_is_the_one_that_the_set_up_prints(house: House, sshd: Sshd) -> None:
    first_point(house, sshd)
    (text,) = re.findall('```toml\n(engine = "prune"\nsource = "/backup/laptop"\n.*?)```', PAGE, re.DOTALL)
    house.write(house.config / "jobs/laptop-in.toml", text.replace("/backup/laptop", str(house.target)))
    assert (checked := house.call("check")).code == 0, checked
    assert house.run("laptop-in").outcome == "nothing-to-do"
