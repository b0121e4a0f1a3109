"""Disks that say they are ours, and were not marked by this host: nothing is written to them, and they are named."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestrator.disks.marker import FILE
from tests.hostile.forgery import rewrite, text_of
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")
LOOKS = "looks like {}: its marker says that it is ours, and does not have the tag of this host's key"


def visited(drawer: LoopDisks, name: str = "red") -> dict[str, object]:
    drawer.enrolled(name)
    visit = drawer.scan()["visits"][name]
    assert visit["ending"] == "done", visit
    return json.loads(marker_of(drawer, name))  # type: ignore[no-any-return]


def marker_of(drawer: LoopDisks, name: str, write: str | None = None) -> str:
    """The marker on a disk, looked at and replaced behind poolferry's back."""
    with drawer.opened(name) as place:
        if write is not None:
            (place / FILE).write_text(write)
        return (place / FILE).read_text()


def make_look_alike(drawer: LoopDisks, marker: dict[str, object], *more: str) -> None:
    """A filesystem of somebody else's with this marker, plugged in as `fake`."""
    drawer.blank("fake")
    subprocess.run(["mkfs.ext4", "-q", "-F", *more, drawer.loops["fake"]], check=True, capture_output=True)
    marker_of(drawer, "fake", json.dumps(marker))


def identity(drawer: LoopDisks, name: str) -> str:
    done = subprocess.run(
        ["blkid", "-o", "value", "-s", "UUID", drawer.loops[name]], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def refused(drawer: LoopDisks) -> dict[str, object]:
    """The visit of the only disk that is here: it was refused, and not a bit of it is another."""
    (name,) = drawer.loops
    before = drawer.digest(name)
    (visit,) = drawer.scan()["visits"].values()
    assert drawer.digest(name) == before
    assert visit["ending"] == "refused", visit
    return dict(visit)


@pytest.mark.parametrize("forged", ["no tag", "next visit", "other tag"])
@pytest.mark.sample(1)
def test_a_marker_made_from_what_everybody_can_read_is_named(drawer: LoopDisks, forged: str) -> None:
    """It even has the filesystem's identity, which stands in targets.toml and on each page of a kit."""
    marker = visited(drawer)
    uuid, tag = identity(drawer, "red"), str(marker["authentication"])
    drawer.pull("red")
    match forged:
        case "no tag":
            del marker["authentication"]
        case "next visit":
            marker["generation"] = 9
        case _:
            marker["authentication"] = f"{tag[:8]}:{'0' * 64}"
    make_look_alike(drawer, marker, "-U", uuid)
    red = drawer.full("red")
    visit = refused(drawer)
    assert LOOKS.format(red) in str(visit["why"])
    assert visit["state"] == "look-alike"
    assert f"poolferry disks readopt {red}" in str(visit["hint"])
    assert LOOKS.format(red) in drawer.run("disks").out, "until the disk itself is here again"
    (told,) = [each for each in drawer.run("disks", "--json").value["sets"][0]["disks"] if each["disk"] == red]
    assert LOOKS.format(red) in told["ails"]["look-alike"]
    drawer.pull("fake")
    drawer.plug("red")
    assert drawer.scan()["visits"]["red"]["ending"] == "done"
    assert "looks like" not in drawer.run("disks").out


def test_the_whole_marker_on_another_filesystem_is_a_disk_of_somebody_else(drawer: LoopDisks) -> None:
    marker = visited(drawer)
    drawer.pull("red")
    make_look_alike(drawer, marker)
    before = drawer.digest("fake")
    assert drawer.scan()["visits"] == {}
    assert drawer.digest("fake") == before


def test_the_marker_of_one_disk_on_another_one_of_ours(drawer: LoopDisks) -> None:
    marker = visited(drawer)
    drawer.pull("red")
    visited(drawer, "blue")
    marker_of(drawer, "blue", json.dumps({**marker, "name": drawer.full("blue")}))
    assert LOOKS.format(drawer.full("blue")) in str(refused(drawer)["why"])


def test_a_disk_of_an_earlier_version_gets_its_tag_once(drawer: LoopDisks) -> None:
    marker = visited(drawer)
    del marker["authentication"]
    marker_of(drawer, "red", json.dumps(marker))
    (drawer.ferry.state / "authentication.key").unlink()  # as before the upgrade
    says = "its marker gets the tag of this host's key"
    first = drawer.run("disks", "scan", "--json")
    assert (first.value["visits"][0]["ending"], first.err.count(says)) == ("done", 1), first
    assert json.loads(marker_of(drawer, "red"))["authentication"]
    second = drawer.run("disks", "scan", "--json")
    assert (second.value["visits"][0]["ending"], says in second.err) == ("done", False), second
    marker_of(drawer, "red", json.dumps({**marker, "generation": json.loads(marker_of(drawer, "red"))["generation"]}))
    assert LOOKS.format(drawer.full("red")) in str(refused(drawer)["why"]), "only once"


def test_with_a_lost_state_a_disk_is_accepted_by_its_owner(drawer: LoopDisks) -> None:
    marker = visited(drawer)
    shutil.rmtree(drawer.ferry.state)
    drawer.ferry.state.mkdir(mode=0o700)
    visit = refused(drawer)
    red = drawer.full("red")
    assert f"has the tag of the key {str(marker['authentication'])[:8]}, which is not on this machine" in str(
        visit["why"]
    )
    hint = str(visit["hint"])
    assert hint.endswith(f"poolferry disks readopt {red}")
    assert drawer.run(*hint[hint.index("disks") :].split()).code == 0
    assert drawer.scan()["visits"]["red"]["ending"] == "done"


def test_a_key_that_others_can_read_marks_no_disk(drawer: LoopDisks) -> None:
    visited(drawer)
    (drawer.ferry.state / "authentication.key").chmod(0o644)
    visit = refused(drawer)
    assert "is open to others" in str(visit["why"])
    assert "chmod 600" in str(visit["hint"])


def test_the_key_is_in_no_kit_of_a_disk(drawer: LoopDisks) -> None:
    visited(drawer)
    secret = json.loads((drawer.ferry.state / "authentication.key").read_text())["key"]
    image = Path(drawer.image("red")).read_bytes()
    assert secret.encode() not in image
    assert bytes.fromhex(secret) not in image


def test_a_forged_manifest_on_a_disk_is_named_when_its_turn_to_be_read_comes(drawer: LoopDisks) -> None:
    drawer.declare('verify = "1G"\n')
    drawer.enrolled("red")
    visited_once = drawer.scan()["visits"]["red"]
    assert visited_once["ending"] == "done", visited_once
    with drawer.opened("red") as place:
        (manifest,) = (place / "photos/points").glob("*.manifest.gz")
        rewrite(manifest, text_of(manifest).replace(b"a.txt", b"b.txt"))
    visit = drawer.scan()["visits"]["red"]
    assert visit["ending"] == "incomplete", visit
    assert "was changed by somebody who does not have this host's key" in visit["why"]
