"""A job's ordinary life on one machine: first run, nothing to do, changes, an odd clock."""

import os
import shutil
from pathlib import Path

from tests.processes import strays
from tests.whole.house import RUN_KEYS, STEP_KEYS, House, facts, trees_equal


def small_tree(house: House) -> None:
    for name in ("one", "folder/two", "folder/deeper/three"):
        house.write(name, f"content of {name}")
    house.write("empty")


def test_a_first_run_makes_a_point_with_its_manifest(house: House) -> None:
    small_tree(house)
    ran = house.run(house.job())
    assert (ran.code, ran.outcome, ran["resumed"], ran["attempts"], ran["warnings"]) == (0, "done", False, 1, [])
    assert ran["points"] == house.points()
    assert facts(house.source) == facts(house.point())
    assert os.readlink(house.target / "latest") == f"points/{house.points()[0]}"
    assert sorted(os.listdir(house.target / "points")) == [house.points()[0], f"{house.points()[0]}.manifest.gz"]
    assert not (house.target / ".poolferry/work").exists()
    assert (house.target / ".poolferry/history.sqlite").is_file()
    assert strays(house.folder) == []


def test_the_report_has_the_promised_shape(house: House) -> None:
    small_tree(house)
    ran = house.run(house.job())
    assert set(ran.value) == RUN_KEYS
    assert ran["job"] == "photos"
    assert ran["moved_bytes"] == sum(path.stat().st_size for path in house.source.rglob("*") if path.is_file())
    assert ran["steps"]
    for step in ran["steps"]:
        assert set(step) == STEP_KEYS
        assert step["confirmed"] is True
        assert step["action"]
        assert step["why"]
    assert isinstance(ran["run"], int)
    assert isinstance(ran["took_s"], float)


def test_a_second_run_finds_nothing_and_writes_no_tree(house: House) -> None:
    small_tree(house)
    first = house.run(house.job())
    second = house.run()
    assert (second.code, second.outcome, second["points"], second["moved_bytes"]) == (0, "nothing-to-do", [], 0)
    assert set(second.value) == RUN_KEYS
    assert second["run"] == first["run"] + 1
    assert house.points() == first["points"]


def test_a_change_moves_only_itself_and_shares_the_rest(house: House) -> None:
    small_tree(house)
    house.run(house.job())
    house.write("one", "another content")
    ran = house.run()
    assert (ran.outcome, ran["moved_bytes"], len(house.points())) == ("done", len("another content"), 2)
    assert facts(house.source) == facts(house.point())
    assert (house.point(0) / "one").read_text() == "content of one"
    assert (house.point(0) / "folder/two").stat().st_ino == (house.point(1) / "folder/two").stat().st_ino
    assert house.call("verify", "photos").code == 0


def test_an_edit_of_the_same_size_in_the_same_second_is_seen(house: House) -> None:
    path = house.write("file", "before")
    os.utime(path, ns=(0, 1_700_000_000_100_000_000))
    house.run(house.job())
    path.write_text("after!")
    os.utime(path, ns=(0, 1_700_000_000_200_000_000))
    assert house.run().outcome == "done"
    assert (house.point() / "file").read_text() == "after!"


def test_what_the_source_lost_is_gone_from_the_new_point_alone(house: House) -> None:
    small_tree(house)
    house.run(house.job())
    shutil.rmtree(house.source / "folder/deeper")
    ran = house.run()
    assert ran.outcome == "done"
    assert facts(house.source) == facts(house.point())
    assert (house.point(0) / "folder/deeper/three").is_file()
    assert house.run().outcome == "nothing-to-do"


def test_an_empty_source_is_copied_and_then_there_is_nothing_to_do(house: House) -> None:
    assert house.run(house.job()).outcome == "done"
    assert os.listdir(house.point()) == []
    assert house.run().outcome == "nothing-to-do"


def test_every_kind_of_change_of_one_entry_is_followed(house: House) -> None:
    """A file becomes a folder, a folder a link, a mode and a time change, a file is renamed."""
    small_tree(house)
    house.write("was file")
    house.write("was folder/inside", "x")
    house.run(house.job())
    (house.source / "was file").unlink()
    house.write("was file/inside", "y")
    shutil.rmtree(house.source / "was folder")
    (house.source / "was folder").symlink_to("one")
    (house.source / "one").chmod(0o600)
    os.utime(house.source / "folder", ns=(0, 5))
    (house.source / "empty").rename(house.source / "renamed")
    assert house.run().outcome == "done"
    assert facts(house.source) == facts(house.point())
    assert trees_equal(house.source, house.point())


def test_two_runs_within_a_second_make_points_that_ascend(house: House) -> None:
    house.job()
    for number in range(3):
        house.write("file", f"content {number}")
        assert house.run().outcome == "done"
    assert len(house.points()) == 3
    assert [(house.point(which) / "file").read_text()[-1] for which in range(3)] == ["0", "1", "2"]


def test_after_a_clock_was_set_back_the_next_point_is_still_the_newest(house: House) -> None:
    house.write("file", "before")
    house.run(house.job())
    house.redate(house.points()[0], "2090-01-01T000000Z")
    house.write("file", "after")
    ran = house.run()
    assert (ran.outcome, ran["points"]) == ("done", ["2090-01-01T000001Z"])
    assert os.readlink(house.target / "latest") == "points/2090-01-01T000001Z"
    assert (house.point() / "file").read_text() == "after"


def test_a_lost_history_loses_nothing_but_the_past(house: House) -> None:
    small_tree(house)
    house.run(house.job())
    shutil.rmtree(house.state)
    house.write("one", "changed")
    ran = house.run()
    assert (ran.outcome, ran["moved_bytes"]) == ("done", len("changed"))
    assert (house.point(0) / "empty").stat().st_ino == (house.point(1) / "empty").stat().st_ino


def test_a_plan_changes_nothing(house: House, tmp_path: Path) -> None:
    small_tree(house)
    house.job()
    planned = house.call("plan", "photos")
    assert (planned.code, planned["decision"]) == (0, "plan")
    assert not house.target.exists()
    house.run()
    house.write("one", "changed")
    before = facts(house.target)
    assert house.call("plan", "photos")["decision"] == "plan"
    assert facts(house.target) == before
