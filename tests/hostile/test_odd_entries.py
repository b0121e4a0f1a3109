"""No entry that one owner makes ends the copy of all others: what cannot be carried or stored is named, and all else is copied."""

import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.hostile.wrapped_rsync import after_rsync
from tests.whole.house import House, facts, onto_ext4

pytestmark = [pytest.mark.root, pytest.mark.namespace]
_PAST, _FUTURE = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (1800, 2600))


@pytest.fixture
def odd(house: House, tmp_path: Path) -> Iterator[House]:
    """A source on btrfs, which holds any time and large attributes; its copies lie on ext4, which does not."""
    with onto_ext4(house, tmp_path, "mkfs.btrfs", "-q", size=120 << 20, theirs=200) as made:
        yield made


def too_deep(folder: Path) -> None:
    """Make a file below more than 4,096 bytes of path."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        for _ in range(45):
            os.mkdir("deep" * 25)
            os.chdir("deep" * 25)
        Path("bottom").write_text("content")
    finally:
        os.chdir(before)


def test_an_odd_time_too_large_attributes_and_a_path_too_long_cost_no_other_file(odd: House) -> None:
    """And each is named, every night, until it is over."""
    hers = odd.source / "hers"
    hers.mkdir()
    for name in ("attributes", "future", "past", "plain"):
        odd.write(f"hers/{name}", name)
    os.setxattr(hers / "attributes", "user.large", b"x" * 12_000)
    for number in range(7_000):  # their names are longer together than the kernel tells; it lets anybody set them
        os.setxattr(odd.write("hers/many", "many") if not number else hers / "many", f"user.{number:05}", b"x")
    os.utime(hers / "past", (_PAST, _PAST))
    os.utime(hers / "future", (_FUTURE, _FUTURE))
    too_deep(hers)
    odd.job()
    for night in range(3):
        odd.write(f"theirs/{night}", "content")
        ran = odd.run()
        assert (ran.code, ran.outcome) == (5, "incomplete"), ran
        told = dict(line.split(": ", 1) for line in ran["evidence"])
        assert told.pop("hers/many") == "Argument list too long"
        (deep,) = (name for name in told if name.startswith("hers/deep"))
        assert told == {
            "hers/attributes": "no extended attributes",
            "hers/future": "mtime 2446-05-10T22:38:55Z, expected 2600-01-01T00:00:00Z",
            "hers/past": "mtime 1901-12-13T20:45:52Z, expected 1800-01-01T00:00:00Z",
            deep: "its path is longer than the 4,096 bytes that rsync carries",
        }
        assert len(deep) < 500, "it is shown with its middle left out"
        assert facts(odd.point() / "theirs") == facts(odd.source / "theirs")
        assert (odd.point() / "hers/plain").read_text() == "plain"
        assert odd.call("verify", "photos").code == 0
    (job,) = odd.call("status").value["jobs"]
    assert job["state"] == "incomplete"
    shutil.rmtree(hers)
    assert odd.run().outcome == "done"
    assert facts(odd.point()) == facts(odd.source)
    (job,) = odd.call("status").value["jobs"]
    assert job["state"] == "up"


def test_more_odd_files_than_are_named_cost_no_other_file_either(odd: House) -> None:
    for number in range(1_200):
        os.utime(odd.write(f"hers/{number}", "x"), (_FUTURE, _FUTURE))
    odd.job()
    ran = odd.run()
    assert (ran.code, ran.outcome) == (5, "incomplete"), ran
    assert ran["why"].startswith("1200 entries could not be stored as they are"), ran["why"]
    assert facts(odd.point() / "theirs") == facts(odd.source / "theirs")


@pytest.mark.long
def test_more_names_of_one_file_than_ext4_takes_cost_no_other_file(odd: House) -> None:
    """Those beyond 65,000 are missing in the first point; the next one, which can link none of them to it, has a file of its own for them."""
    first = odd.write("hers/first", "x")
    for number in range(65_002):
        os.link(first, f"{odd.source}/hers/{number}")
    odd.job()
    ran = odd.run()
    assert (ran.code, ran.outcome) == (5, "incomplete"), ran
    told = dict(line.split(": ", 1) for line in ran["evidence"])
    assert set(told.values()) == {"its file has more names than the target's filesystem takes (ext4: 65,000)"}
    assert not any(os.path.lexists(odd.point() / name) for name in told)
    assert len(os.listdir(odd.point() / "hers")) == 65_000
    assert facts(odd.point() / "theirs") == facts(odd.source / "theirs")
    odd.write("theirs/new", "content")
    os.unlink(first)
    ran = odd.run()
    names = sorted(os.listdir(odd.source / "hers"))
    held = sorted(os.listdir(odd.point() / "hers"))
    lacking = {line.split(": ", 1)[0] for line in ran["evidence"]} if ran.outcome == "incomplete" else set()
    assert {*held, *(name.removeprefix("hers/") for name in lacking)} == {*names}, ran
    assert facts(odd.point() / "theirs") == facts(odd.source / "theirs")
    assert odd.call("verify", "photos").code == 0


@pytest.mark.long
def test_a_file_whose_names_are_too_many_for_two_points_is_copied_anew_with_all_of_them(odd: House) -> None:
    """Before, each run of the job failed from the second point on."""
    first = odd.write("hers/first", "x")
    for number in range(33_000):
        os.link(first, f"{odd.source}/hers/{number}")
    for night in range(2):
        odd.write("theirs/new", str(night))
        odd.job()
        ran = odd.run()
        assert (ran.outcome, ran["attempts"], len(odd.points())) == ("done", 1 + night, 1 + night), ran
        assert night == 0 or "can have no more names" in str(ran["warnings"])
        held = [entry.inode() for entry in os.scandir(odd.point() / "hers")]
        assert (len(held), len(set(held))) == (33_001, 1)
        assert facts(odd.point() / "theirs") == facts(odd.source / "theirs")
    assert odd.call("verify", "photos").code == 0
    assert odd.run().outcome == "nothing-to-do"


def test_what_a_copy_lost_of_many_files_comes_back_for_each(house: House) -> None:
    """More than are copied again at once; before, a point was made of the rest as it was, and called verified."""
    for number in range(2_300):
        house.write(f"many/{number}", "x").chmod(0o644)
    harm = f"find {house.target}/.poolferry/work -type f -exec chmod 600 {{}} +"
    after_rsync(house, f"[ -e {house.folder}/harmed ] || {{ {harm} && touch {house.folder}/harmed; }}")
    house.job()
    ran = house.run()
    assert ran.outcome == "done", ran
    assert ran.errors.count("entries again that are not yet as at the source") == 3
    assert facts(house.point()) == facts(house.source)


def test_a_time_that_every_filesystem_holds_is_no_such_case(odd: House) -> None:
    """A copy that does not keep usual times has failed, and no point is made."""
    odd.write("hers/usual", "content")
    after_rsync(odd, f"touch -d 2001-01-01 {odd.target}/.poolferry/work/hers/usual")
    odd.job()
    ran = odd.run()
    assert ran.outcome == "failed", ran
    assert "did not become as at the source: hers/usual: mtime 2001-01-01T00:00:00Z" in ran["why"]
    assert odd.points() == []
