"""Disks that are away: what each will get, nobody waits for one, and history stays short: real ext4 on loop devices."""

import pytest

from tests.whole.house import wait_until
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")


def overdue(drawer: LoopDisks) -> list[str]:
    return sorted(drawer.run("disks", "--json").value["sets"][0]["overdue"])


def test_disks_that_are_away(drawer: LoopDisks) -> None:
    for name in ("red", "blue"):
        drawer.enrolled(name)
    red, blue = drawer.full("red"), drawer.full("blue")
    ended = drawer.run("run", "photos")
    taken, left = (red, blue) if f"SAFE TO REMOVE: {red}" in ended.err else (blue, red)
    assert f"disk {left} is here too, and is left as it is: poolferry disks scan uses both" in ended.err
    for name in ("red", "blue"):
        drawer.pull(name)

    planned = drawer.run("plan", "photos", "--json")
    assert (planned.code, planned.value["decision"]) == (75, "waiting")
    told = {each["disk"]: each["forecast"] for each in planned.value["forecast"]}
    assert told == {taken: "files that changed", left: "a full copy: there is none yet"}
    assert f"  on disk {taken}: files that changed" in drawer.run("plan", "photos").out

    runs = [drawer.run("run", "photos", "--json").value["run"] for _ in range(4)]
    kept = [run["run"] for run in drawer.run("history", "photos", "--json").value["runs"]]
    assert kept[:2] == [runs[-1], runs[0]], "the first and the newest of those that waited"
    assert len(kept) == 3

    requested = drawer.run("disks", "expected", "--json").value["sets"][0]
    assert requested["expected"] == left
    assert drawer.run("disks", "snooze", left, "--for", "14d", "--note", "at the office").code == 0
    (found,) = drawer.run("disks", "--json").value["sets"]
    assert (found["expected"], found["accepted"]) == (taken, [left])
    assert f"disk {left} is not expected until " in drawer.run("disks").out
    text = (drawer.ferry.config / "targets.toml").read_text()
    (drawer.ferry.config / "targets.toml").write_text(text.replace("power-off", 'each-within = "1s"\npower-off'))
    wait_until(lambda: overdue(drawer) == [taken])
    assert drawer.run("disks", "snooze", left, "--off").code == 0
    assert overdue(drawer) == sorted([taken, left])
    assert drawer.run("disks", "snooze", left).code == drawer.run("disks", "snooze", left, "--for", "soon").code == 2
