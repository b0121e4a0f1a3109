"""No file of holes holds up the copy of all others: holes beyond what the target could hold are left out, named, and read by nothing."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.wrapped_rsync import before_copies
from tests.whole.house import House, facts, onto_ext4

pytestmark = [pytest.mark.root, pytest.mark.namespace]
_LARGEST = (1 << 63) - 1
_GIB = 1 << 30


@pytest.fixture
def holey(house: House, tmp_path: Path) -> Iterator[House]:
    """A source on XFS, which takes files of any size; its copies lie on a small ext4."""
    with onto_ext4(house, tmp_path, "mkfs.xfs", "-q", size=400 << 20, theirs=20) as made:
        yield made


def sparse(house: House, name: str, size: int, owner: int = 1000) -> Path:
    """Make a file that is one hole."""
    path = house.write(name)
    os.truncate(path, size)
    os.chown(path, owner, owner)
    return path


def told(house: House, *arguments: str) -> dict[str, str]:
    """Run the job; return what it left out."""
    ran = house.run("photos", *arguments)
    assert (ran.code, ran.outcome) == (5, "incomplete"), ran["why"]
    assert facts(house.point() / "theirs") == facts(house.source / "theirs")
    return dict(line.split(": ", 1) for line in ran["evidence"])


def test_files_of_any_size_without_content_cost_no_other_file(holey: House) -> None:
    """Two of 8 EiB less a byte, whose sum no program counts, and a hundred of 1 TiB."""
    sparse(holey, "hers/with [*]\n", _LARGEST)
    sparse(holey, "hers/second", _LARGEST)
    os.link(holey.source / "hers/second", holey.source / "hers/name")
    for number in range(100):
        sparse(holey, f"hers/{number}", 1 << 40)
    image = sparse(holey, "his/image", 40 << 20, owner=1001)
    with image.open("r+b") as file:
        file.write(b"boot")
    holey.job()
    for night in range(3):
        left = told(holey)
        assert len(left) == 50, "the first ones are shown"
        assert holey.call("status").value["jobs"][0]["problems"][0]["count"] == 103
        assert sorted(path.name for path in (holey.point() / "hers").iterdir()) == []
        assert facts(holey.point() / "his") == facts(holey.source / "his")
        assert (holey.point() / "his/image").stat().st_blocks < 100
        assert holey.call("verify", "photos").code == 0
        holey.write(f"theirs/{night}", "content")
    for path in (holey.source / "hers").iterdir():
        path.unlink()
    assert holey.run().outcome == "done"
    assert facts(holey.point()) == facts(holey.source)


def test_a_file_of_holes_that_comes_after_the_look_ends_that_copy_alone(holey: House) -> None:
    """Another look leaves it out. Before, a run had to read it to its end."""
    holey.write("hers/plain", "content")
    late = f"{holey.source}/hers/late"
    before_copies(
        holey, f"[ -e {holey.folder}/made ] || {{ truncate -s {_LARGEST} {late}; touch {holey.folder}/made; }}"
    )
    holey.job()
    assert list(told(holey)) == ["hers/late"]
    assert sorted(path.name for path in (holey.point() / "hers").iterdir()) == ["plain"]


def test_a_night_on_which_nothing_but_what_is_left_out_differs_makes_no_point(holey: House) -> None:
    """It is as incomplete as the last one, and stays so until the file is gone. Before, each night made an equal point."""
    sparse(holey, "hers/large", 1 << 40)
    holey.job()
    assert list(told(holey)) == ["hers/large"]
    for _ in range(2):
        assert list(told(holey)) == ["hers/large"]
        assert len(holey.points()) == 1
        (job,) = holey.call("status").value["jobs"]
        assert (job["state"], job["problems"][0]["count"]) == ("incomplete", 1)
    (holey.source / "hers/large").unlink()
    assert holey.run().outcome == "nothing-to-do"
    (job,) = holey.call("status").value["jobs"]
    assert (job["state"], job["problems"]) == ("up", [])


def test_the_limit_of_holes_is_each_owners_own_and_can_be_raised(holey: House) -> None:
    """Nobody's holes keep out what is somebody else's; a disk image within the limit is copied with its holes."""
    for number in range(3):
        sparse(holey, f"hers/{number}", 60 << 20)
    sparse(holey, "his/image", 70 << 20, owner=1001)  # more than hers that are left
    holey.job()
    assert list(told(holey)) == ["hers/1", "hers/2"]
    assert facts(holey.point() / "his") == facts(holey.source / "his")
    holey.job(rsync={"most_holes": "1G"})
    assert holey.run().outcome == "done"
    assert facts(holey.point()) == facts(holey.source)


def test_what_the_newest_point_has_stays_however_much_differs(holey: House) -> None:
    """With more names of one file than are told by name nothing else of the source counted as copied, or was left out, by mistake."""
    sparse(holey, "his/image", 90 << 20, owner=1001)
    sparse(holey, "his/cache/scratch", 1 << 40, owner=1001)
    holey.job(rsync={"most_holes": "100M", "excludes": ["/his/cache/"]})
    assert holey.run().outcome == "done"
    first = holey.write("hers/name-0", "content")
    for number in range(1, 10_002):
        os.link(first, f"{holey.source}/hers/name-{number}")
    for name in ("hers/0", "hers/1"):
        sparse(holey, name, 60 << 20)
    sparse(holey, "his/new", 60 << 20, owner=1001)
    assert list(told(holey)) == ["hers/1"]
    assert {path.name for path in (holey.point() / "his").iterdir()} == {"image", "new"}
    assert holey.run().outcome == "done", "alone it is within the limit"
    assert facts(holey.point() / "hers") == facts(holey.source / "hers")


def test_a_name_that_is_all_wildcards_is_left_out_as_well(holey: House) -> None:
    """With a backslash before each its rule was longer than rsync takes, which then read the file all the same."""
    deep = "hers/" + "/".join(["*" * 250] * 9)
    sparse(holey, f"{deep}/image", 2 << 40)
    beside = holey.write(f"{deep}/other", "content")
    holey.job(rsync={"parallel": 2})
    ran = holey.run("photos")
    assert (ran.code, ran.outcome) == (5, "incomplete"), ran["why"]
    assert holey.call("status").value["jobs"][0]["problems"][0]["count"] == 1
    folder = holey.point() / beside.parent.relative_to(holey.source)
    assert os.listdir(folder) == ["other"]
