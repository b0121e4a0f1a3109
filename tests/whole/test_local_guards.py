"""Refusals before anything is written: the source is not what it was, or too much of it changed."""

import os
import shutil

import pytest

from tests.whole.house import House, Ran, facts, hinted_commands, mounted


def files(house: House, folder: str, count: int) -> None:
    for number in range(count):
        house.write(f"{folder}/{number}", f"content {number}")


def refused(house: House, guard: str) -> Ran:
    """A run that a guard refuses: nothing is written, and what it saw is on record."""
    before = facts(house.target)
    ran = house.run()
    assert (ran.code, ran.outcome) == (3, "refused"), ran
    assert facts(house.target) == before
    assert f"--allow {guard}" in ran["hint"]
    assert (ran["steps"], ran["points"], ran["moved_bytes"]) == ([], [], 0)
    shown = house.call("show", str(ran["run"]))
    assert ran["why"] in str(shown.value)
    for line in ran["evidence"]:
        assert line in str(shown.value)
    assert house.run().outcome == "refused", "a refusal does not wear off"
    assert house.call("plan", "photos").code == 3
    return ran


def passes_once(house: House, guard: str) -> None:
    """With the cure's own words it passes, and that is all they let pass."""
    ran = house.run("photos", "--allow", guard)
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert facts(house.source) == facts(house.point())


def test_a_source_that_is_not_there(house: House) -> None:
    files(house, "a", 3)
    house.run(house.job())
    before = facts(house.target)
    house.source.rename(house.folder / "away")
    ran = house.run()
    assert (ran.code, ran.outcome) == (3, "refused"), ran
    assert "not there" in ran["why"]
    assert facts(house.target) == before


def test_a_source_that_is_not_there_makes_no_target(house: House) -> None:
    house.source.rmdir()
    assert house.run(house.job()).code == 3
    assert not house.target.exists()


def test_a_source_that_is_a_file(house: House) -> None:
    house.source.rmdir()
    house.source.write_text("a file")
    ran = house.run(house.job())
    assert (ran.code, "not a folder" in ran["why"]) == (3, True)


def test_an_empty_source(house: House) -> None:
    files(house, "a", 3)
    house.run(house.job(guard={"max_deleted": "100%"}))
    shutil.rmtree(house.source / "a")
    refused(house, "source-empty")
    passes_once(house, "source-empty")


@pytest.mark.root
def test_a_source_that_is_not_mounted(house: House) -> None:
    house.job(guard={"max_deleted": "100%"})
    with mounted(house.source):
        files(house, "a", 5)
        assert house.run().outcome == "done"
        assert house.run().outcome == "nothing-to-do"
    house.write("a/0", "the folder below the mount point is not empty")
    ran = refused(house, "source-moved")
    assert "mounted" in ran["why"]
    passes_once(house, "source-moved")
    house.write("b")
    assert house.run().outcome == "done", "what was let pass is how it is now"


@pytest.mark.parametrize(("limit", "gone"), [("3", 4), ("30%", 4)])
@pytest.mark.sample(1)
def test_too_much_is_gone(house: House, limit: str, gone: int) -> None:
    files(house, "a", 9)
    house.run(house.job(guard={"max_deleted": limit}))
    for number in range(gone - 1):
        (house.source / f"a/{number}").unlink()
    assert house.run().outcome == "done", "up to the limit nobody is asked"
    files(house, "a", 9)
    assert house.run().outcome == "done"
    for number in range(gone):
        (house.source / f"a/{number}").unlink()
    ran = refused(house, "max-deleted")
    assert "deleted: a/0" in ran["evidence"]
    passes_once(house, "max-deleted")
    files(house, "b", 8)
    assert house.run().outcome == "done"
    shutil.rmtree(house.source / "b")
    refused(house, "max-deleted")


def test_half_of_all_is_the_limit_when_nothing_is_told(house: House) -> None:
    files(house, "a", 9)
    house.run(house.job())
    for number in range(6):
        (house.source / f"a/{number}").unlink()
    refused(house, "max-deleted")
    passes_once(house, "max-deleted")


@pytest.mark.parametrize("limit", ["3", "40%"])
@pytest.mark.sample(1)
def test_too_much_has_changed(house: House, limit: str) -> None:
    files(house, "a", 9)
    house.run(house.job(guard={"max_changed": limit}))
    for number in range(3):
        house.write(f"a/{number}", "encrypted")
    files(house, "new", 1)
    assert house.run().outcome == "done"
    for number in range(5):
        house.write(f"a/{number}", "encrypted again")
    ran = refused(house, "max-changed")
    assert "changed: a/0" in ran["evidence"]
    passes_once(house, "max-changed")


@pytest.mark.parametrize(
    ("key", "guard"),
    [("max_deleted_per_folder", "max-deleted-per-folder"), ("max_changed_per_folder", "max-changed-per-folder")],
)
@pytest.mark.parametrize("limit", ["2", "50%"])
@pytest.mark.sample(2)
def test_too_much_of_one_folder(house: House, key: str, guard: str, limit: str) -> None:
    """A percentage is one of what lay in that folder before."""
    for folder, count in ((b"one", 4), (b"other \xff\n", 100)):
        for number in range(count):
            house.write(folder + b"/%d" % number, b"content")
    house.run(house.job(guard={key: limit}))

    def touch(numbers: range) -> None:
        for number in numbers:
            path = house.source / f"one/{number}"
            path.unlink() if "deleted" in key else path.write_text("changed")

    touch(range(2))
    assert house.run().outcome == "done"
    for number in range(4):
        house.write(f"one/{number}", "again")
    assert house.run("photos", "--allow", guard).outcome == "done"
    touch(range(3))
    ran = refused(house, guard)
    assert "one/" in ran["why"]
    if "%" in limit:
        assert "3 of 4" in ran["why"]
    passes_once(house, guard)


def test_two_guards_at_once_need_both_words(house: House) -> None:
    files(house, "a", 6)
    house.run(house.job(guard={"max_deleted": "1", "max_changed": "1"}))
    for number in range(3):
        (house.source / f"a/{number}").unlink()
        house.write(f"a/{number + 3}", "changed")
    ran = refused(house, "max-deleted")
    assert "--allow max-changed" in ran["hint"]
    assert house.run("photos", "--allow", "max-deleted").code == 3
    assert house.run("photos", "--allow", "max-deleted", "--allow", "max-changed").outcome == "done"


def test_a_target_that_lost_its_mark_goes_on_from_its_points(house: House) -> None:
    files(house, "a", 3)
    house.run(house.job())
    point = house.point()
    before = (point / "a/0").stat().st_ino
    shutil.rmtree(house.target / ".poolferry")
    ran = house.run()
    assert (ran.outcome, ran["evidence"]) == ("refused", house.points()), ran
    assert "has lost .poolferry/target.json" in ran["why"], ran
    (command,) = [words for words in hinted_commands(ran["hint"].replace(" (", "; (")) if words[1] == "run"]
    assert house.call(*command[1:]).outcome in ("done", "nothing-to-do"), "the hint as it stands"
    assert house.points()[0] == point.name
    assert house.run().outcome == "nothing-to-do"
    assert (house.point() / "a/0").stat().st_ino == before, "it goes on from the newest point"


def test_a_target_that_forgot_its_copies(house: House) -> None:
    """Its disk is not mounted: no first copy into the folder below, and no word of files that have changed."""
    files(house, "a", 25)
    house.run(house.job(rsync={"excludes": [".cache/"]}))
    house.target.rename(house.folder / "away")
    house.target.mkdir()
    refused(house, "target-new")
    passes_once(house, "target-new")


def test_a_target_of_another_job(house: House) -> None:
    files(house, "a", 3)
    house.run(house.job())
    house.job("mail", source=house.folder / "mail")
    (house.config / "jobs/photos.toml").unlink()
    (house.folder / "mail").mkdir()
    ran = house.run("mail")
    assert (ran.code, "belongs to the job photos" in ran["why"]) == (3, True)


def test_a_target_whose_folder_above_is_missing(house: House) -> None:
    files(house, "a", 3)
    ran = house.run(house.job(target=house.folder / "no/such"))
    assert (ran.code, ran.outcome) == (3, "refused")
    assert not (house.folder / "no").exists()


def test_a_refusal_during_an_interrupted_copy_leaves_it_alone(house: House) -> None:
    files(house, "a", 6)
    house.run(house.job())
    work = house.target / ".poolferry/work/a"
    work.mkdir(parents=True)
    (work / "half").write_text("half")
    shutil.rmtree(house.source / "a")
    os.mkdir(house.source / "b")
    refused(house, "max-deleted")


def test_a_guard_that_is_none_is_a_mistake_of_the_line(house: House) -> None:
    files(house, "a", 3)
    house.job()
    for command in ("run", "plan"):
        told = house.call(command, "photos", "--allow", "max-delted")
        assert told.code == 2
        assert "no guard 'max-delted' for photos: expected one of max-changed, " in told["error"]
        assert house.call(command, "photos", "--aside").code == 2, "datasets alone are set aside"
    assert not house.points()


def many(house: House, count: int = 60) -> None:
    """A first copy of so many files, guarded by nothing but defaults."""
    files(house, "docs", count)
    assert house.run(house.job()).outcome == "done"


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["encrypted", "truncated", "links", "renamed and encrypted"])
@pytest.mark.sample(2)
def test_a_night_of_ransomware_is_refused_by_default(house: House, harm: str) -> None:
    many(house)
    for number in range(36):
        path = house.source / f"docs/{number}"
        if harm == "truncated":
            os.truncate(path, 0)
            continue
        path.unlink()
        if harm == "links":
            path.symlink_to("/dev/null")
        else:
            house.write(f"docs/{number}" + (".locked" if "renamed" in harm else ""), os.urandom(40))
    ran = refused(house, "max-deleted" if "renamed" in harm else "max-changed")
    assert "36 of 6" in ran["why"]
    if harm == "links":
        assert "36 of them into links" in ran["why"]


@pytest.mark.slow
def test_a_slow_loss_is_refused_by_default(house: House) -> None:
    many(house)
    shown: list[int] = []
    for _ in range(2):
        left = sorted((house.source / "docs").iterdir())
        for path in left[: len(left) * 2 // 5]:
            path.unlink()
        shown.append(house.run().code)
    assert shown == [0, 3]
    ran = refused(house, "max-deleted")
    assert "in the last 30 days" in ran["why"]
    passes_once(house, "max-deleted")
    for path in sorted((house.source / "docs").iterdir())[:8]:
        path.unlink()
    assert house.run().outcome == "done", "what was let pass is how it is now"


@pytest.mark.slow
def test_a_moved_folder_is_no_loss(house: House) -> None:
    many(house)
    (house.source / "docs").rename(house.source / "papers")
    assert house.run().outcome == "done"
    assert facts(house.source) == facts(house.point())
    (house.source / "papers").rename(house.source / "again")
    for path in sorted((house.source / "again").iterdir())[:40]:
        path.unlink()
    refused(house, "max-deleted")


@pytest.mark.slow
def test_what_changes_each_night_is_usual(house: House) -> None:
    many(house)

    def dump() -> None:
        for number in range(60):
            house.write(f"docs/{number}", os.urandom(50))

    dump()
    refused(house, "max-changed")
    passes_once(house, "max-changed")
    dump()
    assert house.run().outcome == "done"


def test_an_empty_first_copy_is_said(house: House) -> None:
    ran = house.run(house.job())
    assert ran.outcome == "done", ran
    assert any("is empty" in warning for warning in ran["warnings"]), ran
