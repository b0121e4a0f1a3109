"""Excludes, and a mirror: one plain tree as the source, with and without the consent to delete, in place or not."""

import os
import random
import shutil

import pytest

from tests.processes import strays
from tests.whole.house import House, facts, wait_until
from tests.whole.kills import MIB, half_copied, strike


def mirrored(house: House, **rsync: object) -> str:
    """A mirror job with that [rsync]."""
    return house.job(rsync={"points": False, **rsync}, guard={"max_deleted": "100%"})


def tree(house: House) -> dict[bytes, tuple[object, ...]]:
    """Return what the mirror holds, but for our own folder; the root's own time is not compared."""
    found = facts(house.target)
    return {path: told for path, told in found.items() if path and not path.startswith(b"/.poolferry")}


def source(house: House) -> dict[bytes, tuple[object, ...]]:
    """Return what the source holds, its root left out."""
    return {path: told for path, told in facts(house.source).items() if path}


def small_tree(house: House) -> None:
    for name in ("one", "folder/two", "folder/deeper/three", "gone later"):
        house.write(name, f"content of {name}")
    os.link(house.source / "one", house.source / "linked")


@pytest.mark.parametrize("in_place", [True, False])
def test_a_mirror_becomes_as_the_source(house: House, *, in_place: bool) -> None:
    small_tree(house)
    more = {"in_place": True, "sparse": False} if in_place else {}
    ran = house.run(mirrored(house, delete=True, **more))
    assert (ran.code, ran.outcome, ran["warnings"]) == (0, "done", []), ran
    assert tree(house) == source(house)
    assert not (house.target / "points").exists()
    assert house.run().outcome == "nothing-to-do"
    (house.source / "gone later").unlink()
    shutil.rmtree(house.source / "folder/deeper")
    house.write("one", "changed")
    house.write("new/file", "new")
    ran = house.run()
    assert (ran.outcome, ran["moved_bytes"]) == ("done", len("changed") + len("new"))
    assert tree(house) == source(house)
    assert house.run().outcome == "nothing-to-do"
    assert house.call("verify", "photos").code == 0


def test_without_consent_a_mirror_loses_nothing(house: House) -> None:
    small_tree(house)
    house.run(mirrored(house))
    (house.source / "gone later").unlink()
    house.write("one", "changed")
    ran = house.run()
    assert ran.outcome == "done", ran
    assert (house.target / "gone later").read_text() == "content of gone later"
    assert (house.target / "one").read_text() == "changed"
    assert house.run().outcome == "nothing-to-do", "what may not be removed is no difference"
    assert house.call("verify", "photos").code == 0


def test_in_place_writes_only_the_changed_blocks(house: House) -> None:
    content = random.randbytes(8 * MIB)
    path = house.write("disk.img", content)
    house.run(mirrored(house, in_place=True, sparse=False))
    inode = (house.target / "disk.img").stat().st_ino
    with open(path, "r+b") as file:
        file.seek(4 * MIB)
        file.write(b"changed")
    ran = house.run()
    assert (ran.outcome, ran["moved_bytes"] < 100_000) == ("done", True), ran
    assert (house.target / "disk.img").stat().st_ino == inode
    assert tree(house) == source(house)
    assert house.call("verify", "photos").code == 0


def test_a_foreign_target_is_refused_until_somebody_says_so(house: House) -> None:
    small_tree(house)
    house.write(house.target / "somebody's", "file")
    mirrored(house, delete=True)
    before = facts(house.target)
    ran = house.run()
    assert (ran.code, ran.outcome) == (3, "refused"), ran
    assert "somebody's" in str(ran["evidence"])
    assert facts(house.target) == before
    assert house.run("photos", "--allow", "target-in-use").outcome == "done"
    assert tree(house) == source(house)


def test_what_a_stranger_did_to_a_mirror_is_set_right(house: House) -> None:
    small_tree(house)
    house.run(mirrored(house, delete=True))
    (house.target / "one").unlink()
    (house.target / "extra").write_text("x")
    assert house.run().outcome == "done"
    assert tree(house) == source(house)
    assert house.call("verify", "photos").code == 0


def half_written(house: House) -> int:
    """Return how much of the large file is there, in its place or in our own folder."""
    return sum(path.stat().st_size for path in house.target.rglob("*big*") if path.is_file() and "AbC" not in path.name)


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["poolferry", "receiver", "all"])
@pytest.mark.parametrize(
    "more", [{"in_place": True, "sparse": False}, {"delete": True}, {}], ids=["in place", "delete", "keep"]
)
@pytest.mark.sample(3)
def test_a_mirror_goes_on_after_a_cut(house: House, victim: str, more: dict[str, object]) -> None:
    """No temporary file of a killed rsync stays in it, and none that is only named like one is lost."""
    small_tree(house)
    house.write(".big.AbC123", "somebody's own")
    mirrored(house, **more)
    house.run()
    if "delete" not in more:
        (house.source / ".big.AbC123").unlink()
    house.write("folder/big", random.randbytes(6 * MIB))
    house.job(rsync={"points": False, **more}, pipe={"rate_limit": "3M"})
    process = house.start()
    wait_until(lambda: half_written(house) > MIB)
    strike(process, victim)
    house.ended(process)
    wait_until(lambda: not strays(house.folder))
    mirrored(house, **more)
    ran = house.run()
    assert (ran.code, ran.outcome, ran["resumed"]) == (0, "done", True), ran
    if "in_place" in more:
        assert ran["moved_bytes"] < 5.6 * MIB, "what is in place already is compared, not sent again"
    if "delete" not in more:
        assert (house.target / ".big.AbC123").read_text() == "somebody's own"
        house.write(".big.AbC123", "somebody's own")
        house.run()
    assert sorted(set(os.listdir(house.target / ".poolferry")) & {"work", "partial", "temporary"}) == []
    assert {path: told[:4] + told[5:] for path, told in tree(house).items()} == {
        path: told[:4] + told[5:] for path, told in source(house).items()
    }
    assert house.call("verify", "photos").code == 0
    assert house.run().outcome == "nothing-to-do"


@pytest.mark.parametrize("points", [True, False])
def test_excludes_leave_out_and_only_that(house: House, *, points: bool) -> None:
    for name in ("keep", "a.tmp", "cache/x", "deep/cache/x", "deep/b.tmp", "deep/keep", "with space/x", "[1]", "#odd"):
        house.write(name, name)
    house.job(rsync={"points": points, "excludes": ["*.tmp", "/cache/", "with space", "\\[1]", "#odd"]})
    ran = house.run()
    assert (ran.outcome, ran["warnings"]) == ("done", []), ran
    copy = house.point() if points else house.target
    names = {
        str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file() and ".poolferry" not in path.parts
    }
    assert names == {"keep", "deep/cache/x", "deep/keep"}
    assert house.run().outcome == "nothing-to-do"
    house.write("another.tmp")
    assert house.run().outcome == "nothing-to-do"
    assert house.call("verify", "photos").code == 0


def test_what_is_excluded_later_leaves_the_next_point_alone(house: House) -> None:
    house.write("keep", "x")
    house.write("cache/x", "x")
    house.run(house.job())
    house.job(rsync={"excludes": ["/cache/"]})
    house.write("keep", "changed")
    assert house.run().outcome == "done"
    assert sorted(os.listdir(house.point(0))) == ["cache", "keep"]
    assert os.listdir(house.point(1)) == ["keep"]
    assert house.run().outcome == "nothing-to-do"


def test_what_is_excluded_after_a_cut_is_not_published(house: House) -> None:
    house.write("letter", "secret")
    house.write("zz-large", os.urandom(4 * MIB))
    process = house.start(house.job(pipe={"rate_limit": "1M"}))
    wait_until(lambda: half_copied(house) > 300_000)
    strike(process, "all")
    house.ended(process)
    assert (house.target / ".poolferry/work/letter").exists()
    ran = house.run(house.job(rsync={"excludes": ["/letter"]}))
    assert (ran.outcome, ran["resumed"]) == ("done", True), ran
    assert ran["moved_bytes"] < 4 * MIB, "the half-copied file was gone on with"
    assert os.listdir(house.point()) == ["zz-large"]
    assert facts(house.point())[b"/zz-large"] == facts(house.source)[b"/zz-large"]


def test_remainders_of_excluded_names_are_never_published(house: House) -> None:
    """An exclude that also hides temporary files of a killed rsync."""
    house.write("x", "content")
    house.run(house.job(rsync={"excludes": [".*"]}))
    for number in range(3):
        house.write(house.target / f".poolferry/work/.gone{number}.AbC123", "half")
    house.write("x", "changed")
    assert house.run().outcome == "done"
    assert os.listdir(house.point()) == ["x"]


def test_a_place_of_a_mirror_becomes_one_of_points(house: House) -> None:
    """Seen: "1 point vanished: mirror", and the job failed until a person accepted that."""
    small_tree(house)
    assert house.run(mirrored(house, delete=True)).outcome == "done"
    house.job()
    ran = house.run()
    told = "held a mirror, and is a place of restore points now: the mirror's files still lie beside `points` there"
    assert (ran.outcome, [told in each for each in ran["warnings"]]) == ("done", [True]), ran
    (job,) = house.call("status")["jobs"]
    assert (job["state"], job["problems"]) == ("up", []), job
    assert house.run()["warnings"] == []
    assert (house.target / "one").read_text() == (house.point() / "one").read_text()
