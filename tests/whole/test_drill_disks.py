"""Removable disks: the disk that is here is drilled and restored from, and which one to fetch is told."""

import shlex

import pytest

from tests.whole.loop_disks import LoopDisks, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")


def test_the_disk_that_is_here_is_drilled(drawer: LoopDisks) -> None:
    drawer.job("photos", '[drill]\nevery = "7d"\n')
    drawer.enrolled("red")
    drawer.enrolled("blue")
    drawer.pull("blue")
    ran = drawer.run("run", "photos", "--json")
    assert (ran.code, ran.value["drill"]["outcome"]) == (0, "done"), ran
    assert ran.value["drill"]["drill"]["place"] == drawer.full("red")
    drawer.pull("red")
    waits = drawer.run("drill", "photos")
    assert waits.code == 75, waits
    drawer.plug("blue")
    assert "drill" in drawer.run("run", "photos", "--json").value, "each disk is drilled by itself"
    drilled = drawer.run("drill", "photos", "--json")
    assert (drilled.code, drilled.value["drill"]["place"]) == (0, drawer.full("blue")), drilled
    assert not drawer.mounted("blue")


def test_which_disk_to_fetch_from_where(drawer: LoopDisks) -> None:
    for name in ("red", "blue"):
        drawer.enrolled(name)
        assert drawer.run("run", "photos").code == 0
        drawer.pull(name)
        (drawer.source / f"after-{name}").write_text("more\n")
    red, blue = drawer.full("red"), drawer.full("blue")
    assert drawer.run("disks", "locate", blue, "office").code == 0
    planned = drawer.run("restore", "plan", "photos", "--json")
    assert (planned.code, planned.value["chosen"]) == (75, None), planned
    newest, older = planned.value["elsewhere"]
    assert (newest["place"], newest["where"], older["place"]) == (blue, "office", red)
    assert f"disk {blue} (job photos) holds" in newest["do"]
    assert newest["do"].endswith("fetch it from office, and plug it in")

    drawer.plug("red")
    planned = drawer.run("restore", "plan", "photos", "--json")
    assert (planned.code, planned.value["chosen"]["place"]) == (0, red), planned
    assert [each["place"] for each in planned.value["elsewhere"]] == [blue]
    words = shlex.split(planned.value["command"])
    back = drawer.root / "back"
    words[words.index("--to") + 1] = str(back)
    ended = drawer.run(*words[1:])
    assert ended.code == 0, ended
    assert sorted(path.name for path in back.iterdir()) == ["a.txt", "b.bin"]
    assert not drawer.mounted("red")
