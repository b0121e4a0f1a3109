"""A large file of which little changes, on filesystems with clones: a point stores what changed, and no older point changes."""

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.whole.house import House, facts, loop_filesystem, wait_until
from tests.whole.kills import MIB, half_copied, only_ours, strike

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.namespace]
_SIZE = 40 * MIB


@pytest.fixture(params=[("mkfs.xfs", "-q"), ("mkfs.btrfs", "-q")], ids=["xfs", "btrfs"])
def image(request: pytest.FixtureRequest, house: House, tmp_path: Path) -> Iterator[Path]:
    """The image of a disk in the source; one point of it lies on such a filesystem."""
    if request.param[0].partition(".")[2] not in Path("/proc/filesystems").read_text():
        pytest.skip(f"this kernel has no {request.param[0].partition('.')[2]}")
    path = house.write("machines/disk.img", random.Random(1).randbytes(_SIZE))
    house.write("notes", "some words")
    with loop_filesystem(tmp_path, *request.param, size=400 * MIB) as mounted:
        house.target = mounted / "copies"
        assert house.run(house.job()).outcome == "done"
        yield path


def change(image: Path, seed: int) -> None:
    """Write ten blocks anew; ends as large as before."""
    chance = random.Random(seed)
    with image.open("r+b") as file:
        for _ in range(10):
            file.seek(chance.randrange(_SIZE - 4096))
            file.write(chance.randbytes(4096))


def free(house: House) -> int:
    os.sync()
    seen = os.statvfs(house.target)
    return seen.f_bfree * seen.f_frsize


def leave_free(house: House, room: int) -> None:
    """Fill the target's filesystem but for so many bytes."""
    os.sync()
    seen = os.statvfs(house.target)
    with (house.target.parent / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, seen.f_bavail * seen.f_frsize - room)


def actions(ran: Any) -> str:
    return "\n".join(step["action"] for step in ran["steps"])


def published(house: House) -> dict[str, object]:
    return {name: facts(house.target / "points" / name) for name in house.points()}


def all_whole(house: House, before: dict[str, object]) -> None:
    """The newest point is as the source and its manifest, none of those before changed, and nothing else is left."""
    assert facts(house.source) == facts(house.point())
    assert {name: facts(house.target / "points" / name) for name in before} == before
    assert house.call("verify", "photos").code == 0
    only_ours(house)


@pytest.mark.sample(1)
def test_a_point_stores_what_changed_in_an_image_and_no_other_point_changes(house: House, image: Path) -> None:
    for night in range(3):
        before, room = published(house), free(house)
        change(image, night)
        house.write(f"new-{night}", "new")
        ran = house.run()
        assert ran.outcome == "done", ran
        assert facts(house.source) == facts(house.point())
        assert {name: facts(house.target / "points" / name) for name in before} == before
        assert room - free(house) < _SIZE / 2, "the image was not stored once more"
    assert house.run().outcome == "nothing-to-do"
    assert house.call("verify", "photos").code == 0
    only_ours(house)


@pytest.mark.sample(1)
def test_an_image_that_shrinks_moves_or_gets_another_owner_is_as_at_the_source(house: House, image: Path) -> None:
    image.rename(house.source / "moved.img")
    assert house.run().outcome == "done"
    with (house.source / "moved.img").open("r+b") as file:
        file.truncate(_SIZE - 5 * MIB)
        file.seek(_SIZE)
        file.write(b"behind a hole")
    os.chown(house.source / "moved.img", 1234, 1235)
    before = published(house)
    assert house.run().outcome == "done"
    assert facts(house.source) == facts(house.point())
    (house.source / "moved.img").write_bytes(b"small now")
    assert house.run().outcome == "done"
    os.link(house.source / "moved.img", house.source / "again.img")
    house.write("moved.img", random.Random(5).randbytes(20 * MIB))
    assert house.run().outcome == "done"
    assert facts(house.source) == facts(house.point())
    assert {name: facts(house.target / "points" / name) for name in before} == before
    only_ours(house)


@pytest.mark.sample(1)
def test_an_image_with_holes_is_as_at_the_source_and_stored_no_more_than_it_is(house: House, image: Path) -> None:
    """Programs of ours leave it to rsync, which writes what changed into a clone."""
    with image.open("r+b") as file:
        file.seek(4 * _SIZE)
        file.write(b"behind a hole")
    assert house.run().outcome == "done"
    before, room = published(house), free(house)
    change(image, 7)
    assert house.run().outcome == "done"
    assert facts(house.source) == facts(house.point())
    assert {name: facts(house.target / "points" / name) for name in before} == before
    assert room - free(house) < _SIZE / 2
    only_ours(house)


@pytest.mark.sample(1)
def test_a_run_that_is_killed_while_it_compares_an_image_goes_on(house: House, image: Path) -> None:
    image.write_bytes(random.Random(6).randbytes(3 * _SIZE))
    before = published(house)
    process = house.start()
    clone = house.target / ".poolferry/work/machines/.~poolferry-partial~/disk.img"
    wait_until(clone.exists, pause=0.0005)
    strike(process, "all")
    house.ended(process)
    assert half_copied(house) > 0
    assert {name: facts(house.target / "points" / name) for name in before} == before
    ran = house.run()
    assert ran.outcome == "done", ran
    all_whole(house, before)


@pytest.mark.sample(1)
def test_a_run_that_is_killed_in_the_middle_of_an_image_changes_no_point(house: House, image: Path) -> None:
    before = published(house)
    image.write_bytes(random.Random(2).randbytes(_SIZE))
    process = house.start(house.job(pipe={"rate_limit": "8M"}))
    clone = house.target / ".poolferry/work/machines/.~poolferry-partial~/disk.img"
    wait_until(lambda: clone.exists() and clone.read_bytes()[:MIB] == image.read_bytes()[:MIB])
    strike(process, "all")
    house.ended(process)
    assert half_copied(house) > 0
    assert {name: facts(house.target / "points" / name) for name in before} == before
    change(image, 3)
    ran = house.run(house.job())
    assert (ran.outcome, ran["resumed"]) == ("done", True), ran
    all_whole(house, before)


@pytest.mark.sample(1)
def test_a_half_image_that_filled_the_target_makes_room_for_a_clone_once_little_differs(
    house: House, image: Path
) -> None:
    then = image.read_bytes()
    image.write_bytes(random.Random(2).randbytes(_SIZE))
    leave_free(house, 25 * MIB)
    assert "no space left" in house.run()["why"]
    assert half_copied(house) > 0
    image.write_bytes(then)
    change(image, 3)
    house.write("new", random.Random(8).randbytes(15 * MIB))
    before = published(house)
    ran = house.run()
    assert (ran.outcome, ran["resumed"]) == ("done", True), ran
    assert "discard remainders of large files" in actions(ran)
    all_whole(house, before)


@pytest.mark.sample(1)
def test_a_half_image_goes_where_its_file_is_as_in_the_point_again(house: House, image: Path) -> None:
    then, seen = image.read_bytes(), os.stat(image)
    image.write_bytes(random.Random(2).randbytes(_SIZE))
    leave_free(house, 25 * MIB)
    assert "no space left" in house.run()["why"]
    image.write_bytes(then)
    os.utime(image, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    house.write("new", random.Random(8).randbytes(15 * MIB))
    ran = house.run()
    assert ran.outcome == "done", ran
    assert "discard remainders of unchanged files" in actions(ran)
    assert os.path.samefile(house.point(-1) / "machines/disk.img", house.point(-2) / "machines/disk.img")
    assert facts(house.source) == facts(house.point())
    only_ours(house)


@pytest.mark.sample(1)
@pytest.mark.parametrize("whole", [True, False], ids=["in the cut copy", "not begun"])
def test_a_run_that_goes_on_after_a_cut_clones_images_too(house: House, image: Path, *, whole: bool) -> None:
    """The image itself is whole in the cut copy, or was not begun; another file was cut."""
    change(image, 3)
    large = house.write("machines/zz" if whole else "machines/aa", random.Random(8).randbytes(15 * MIB))
    process = house.start(house.job(pipe={"rate_limit": "8M"}))
    wait_until(
        lambda: half_copied(house) > 4 * MIB and any(house.target.glob(f".poolferry/work/machines/**/*{large.name}*"))
    )
    strike(process, "all")
    house.ended(process)
    change(image, 4)
    leave_free(house, 30 * MIB)
    before = published(house)
    ran = house.run(house.job())
    assert (ran.outcome, ran["resumed"]) == ("done", True), ran
    all_whole(house, before)
