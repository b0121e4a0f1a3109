"""A job that becomes a mirror in the place of its restore points takes none of them for what its source has no more."""

import shutil
from pathlib import Path

import pytest

from tests.whole.house import House, facts


@pytest.mark.parametrize("marker", [True, False], ids=["marked", "marker lost"])
def test_a_mirror_in_the_place_of_points_is_refused_whatever_is_allowed(house: House, *, marker: bool) -> None:
    """Before, the guard called the points gone, and `--allow max-deleted`, which it named, removed all of them."""
    house.write("one", "x")
    house.run(house.job())
    if not marker:
        (house.target / ".poolferry/target.json").unlink()
    before = facts(house.target / "points")
    house.job(rsync={"points": False, "delete": True})
    for more in ((), ("--allow", "max-deleted"), ("--allow", "target-new"), ("--allow", "target-in-use")):
        ran = house.run("photos", *more)
        assert (ran.code, ran.outcome) == (3, "refused"), ran.value
        assert "holds 1 restore point, and a mirror there would take them for what the source has no more" in ran["why"]
        assert "--allow" not in ran["hint"]
    assert facts(house.target / "points") == before
    [job] = house.call("status")["jobs"]
    assert "may be gone" not in job["why"], job
    assert house.call("check", "--system").code == 1
    house.job(target=str(house.folder / "another"), rsync={"points": False, "delete": True})  # as the hint says
    assert house.run("photos", "--allow", "target-new").outcome == "done"
    house.job()
    again = house.run("photos", *(() if marker else ("--allow", "target-in-use")))
    assert again.outcome in ("nothing-to-do", "done"), again.value


def test_a_source_that_holds_restore_points_is_mirrored_also_after_a_cut(house: House) -> None:
    """Such as the copies of another job that are carried on to another disk."""
    house.write("one", "x")
    house.job("first", target=str(house.folder / "first"))
    assert house.run("first").outcome == "done"
    house.job(
        "photos",
        source=str(house.folder / "first"),
        rsync={"points": False, "delete": True, "excludes": ["/.poolferry/"]},
    )
    assert house.run().outcome == "done"
    house.write("one", "y")
    assert house.run("first").outcome == "done"
    assert house.run("photos", "--allow", "max-changed").outcome == "done"
    (house.target / ".poolferry/manifest.gz").unlink()
    (house.target / ".poolferry/partial").mkdir()
    (house.target / ".poolferry/work").mkdir()
    assert house.run().outcome == "done"
    shutil.rmtree(house.folder / "first")


@pytest.mark.parametrize("marker", [True, False], ids=["marked", "marker lost"])
def test_points_where_a_mirror_is_to_be_come_back_and_are_read(house: House, tmp_path: Path, *, marker: bool) -> None:
    """They were called removed, or no copies at all, by verify, restore and drill, though each of them is there."""
    house.write("one", "x")
    house.run(house.job())
    house.write("two", "y")
    house.run()
    if not marker:
        (house.target / ".poolferry/target.json").unlink()
    house.job(rsync={"points": False, "delete": True})
    for words in (("verify", "photos"), ("drill", "photos"), ("restore", "plan", "photos"), ("ls", "photos")):
        ran = house.call(*words)
        assert (ran.code, ran.value.get("warnings", [])) == (0, []), ran
    back = house.call("restore", "run", "photos", "--to", str(tmp_path / "back"))
    assert (back.outcome, facts(tmp_path / "back")) == ("done", facts(house.point())), back
    assert [each["sound"] for each in house.call("points", "photos")["points"]] == [None, True]
    assert house.call("status").code == 0


@pytest.mark.parametrize("gone", [False, True], ids=["source there", "source gone"])
def test_a_mirror_where_points_are_to_be_comes_back_and_is_read(house: House, tmp_path: Path, *, gone: bool) -> None:
    """Each command said that there is no restore point, and that the job is to be run; with the source gone there was no way to the copy."""
    house.write("one", "x")
    house.write("in/two", "y")
    house.run(house.job(rsync={"points": False, "delete": True}))
    source = facts(house.source)
    house.job()
    if gone:
        house.source.rename(tmp_path / "gone")
        assert house.run().outcome == "refused"
        [job] = house.call("status")["jobs"]
        assert "may be gone" not in str(job), job
    for words in (("verify", "photos"), ("drill", "photos"), ("restore", "plan", "photos"), ("ls", "photos")):
        ran = house.call(*words)
        assert (ran.code, ran.value.get("warnings", [])) == (0, []), ran
    back = house.call("restore", "run", "photos", "--to", str(tmp_path / "back"))
    assert (back.outcome, facts(tmp_path / "back")) == ("done", source), back
    assert [each["point"] for each in house.call("points", "photos")["points"]] == ["mirror"]
    if not gone:
        assert house.run().outcome == "done"
        assert facts(house.point()) == source
        assert [each["point"] for each in house.call("points", "photos")["points"]] == house.points()


def test_a_mirror_is_found_though_the_first_point_that_follows_it_was_cut(house: House, tmp_path: Path) -> None:
    """A cut run may leave a manifest, and that is no mirror; the hint says how to get at the one that is there."""
    house.write("one", "x")
    house.run(house.job(rsync={"points": False, "delete": True}))
    source = facts(house.source)
    house.job()
    (house.target / ".poolferry/work").mkdir()
    house.source.rename(tmp_path / "gone")
    back = ("restore", "run", "photos", "--to", str(tmp_path / "back"))
    refused = house.call(*back)
    assert (refused.outcome, "a mirror was made at" in refused["why"]) == ("refused", True), refused
    assert "write points = false in [rsync] of" in refused["hint"]
    house.job(rsync={"points": False})
    assert house.call(*back).outcome == "done"
    assert facts(tmp_path / "back") == source
