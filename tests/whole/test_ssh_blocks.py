"""A large file that changed a little sends only what changed."""

import os
from typing import Any

import pytest

from orchestrator.domain.point import MIRROR_FILE_TIME
from orchestrator.history.store import open_history
from tests.whole.house import House, facts
from tests.whole.sshd import Link, Sshd, link, sshd

pytestmark = pytest.mark.slow
__all__ = ["link", "sshd"]

SIZE = 40_000_000
PATCH = 100_000
MOST = 10 * PATCH


def edit(house: House) -> None:
    """Three places of the large file change; its size does not."""
    with open(house.source / "disk.img", "r+b") as file:
        for at in (0, SIZE // 2, SIZE - PATCH):
            file.seek(at)
            file.write(os.urandom(PATCH))


def copied_and_edited(house: House, sshd: Sshd, link: Link, **toml: Any) -> Any:
    """The run after the edit, and the bytes that it sent over the line."""
    house.write("disk.img", os.urandom(SIZE))
    house.write("still", "unchanged")
    house.job(**{"target": sshd.url(house.target), "pipe": sshd.pipe, **toml})
    first = house.run()
    assert first.outcome == "done", first
    assert first["moved_bytes"] >= SIZE
    edit(house)
    before = link.moved
    second = house.run()
    assert second.outcome == "done", second
    return second, link.moved - before


@pytest.mark.parametrize("way", ["push", "pull"])
@pytest.mark.sample(1)
def test_a_new_point_is_built_on_the_older_one(house: House, sshd: Sshd, link: Link, way: str) -> None:
    place = (
        {"target": sshd.url(house.target)}
        if way == "push"
        else {"source": sshd.url(house.source), "target": str(house.target)}
    )
    run, sent = copied_and_edited(house, sshd, link, **place)
    assert 3 * PATCH <= run["moved_bytes"] <= 5 * PATCH
    assert sent <= MOST, "block sums travel too, and the copy of the history; the rest does not"
    assert facts(house.point()) == facts(house.source)
    assert (house.point(0) / "disk.img").stat().st_ino != (house.point() / "disk.img").stat().st_ino
    assert house.call("verify", "photos").code == 0


def test_a_mirror_writes_changed_blocks_in_place(house: House, sshd: Sshd, link: Link) -> None:
    in_place = {"points": False, "in-place": True, "sparse": False, "delete": True}
    run, sent = copied_and_edited(house, sshd, link, rsync=in_place)
    assert 3 * PATCH <= run["moved_bytes"] <= 5 * PATCH
    assert sent <= MOST
    inode = (house.target / "disk.img").stat().st_ino
    edit(house)
    assert house.run().outcome == "done"
    assert (house.target / "disk.img").stat().st_ino == inode
    assert (house.target / "disk.img").read_bytes() == (house.source / "disk.img").read_bytes()
    (house.source / "still").unlink()
    assert house.run().outcome == "done"
    assert not (house.target / "still").exists()
    with open_history(str(house.state / "history.sqlite")) as history:
        told = history.recall("photos", MIRROR_FILE_TIME + "photos")
    own = (house.target / ".poolferry/manifest.gz").stat().st_mtime
    assert told == str(int(own)), "the time that the file has there, by no clock of ours"
