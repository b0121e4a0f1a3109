"""Damage, loss and left-out files are states of their own: found by any look, shown until they are over, ended by nothing else."""

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator.verify.manifest import read_manifest, write_manifest
from tests.whole.damage import WITHOUT_POWER, rot
from tests.whole.house import House, Ran, facts, hinted_commands
from tests.whole.sshd import Sshd, sshd

__all__ = ["sshd"]


def copied(house: House, **toml: Any) -> None:
    """Two points of three files; `one` is shared by both, `two` is another in each."""
    house.write("one", "the first")
    house.write("two", "the second")
    house.write("in/three", "the third")
    assert house.run(house.job(**toml)).outcome == "done"
    house.write("two", "changed since")
    assert house.run().outcome == "done"


def state(house: House) -> tuple[str, list[tuple[str, Any]]]:
    """The state of the job, and kind and point of its problems, as status shows them."""
    ran = house.call("status", "photos")
    (job,) = ran["jobs"]
    assert ran.code == (0 if job["state"] in ("up", "waiting") else 4), ran
    for each in job["problems"]:
        assert each["hint"]
        assert each["why"]
    return job["state"], [(each["kind"], each["point"]) for each in job["problems"]]


def manifest(house: House, which: int = -1) -> Path:
    return Path(f"{house.point(which)}.manifest.gz")


def test_rot_in_an_older_point_stays_until_a_run_has_mended_it(house: House) -> None:
    copied(house)
    first, second = house.points()
    before = facts(house.point(0))
    rot(house.point(0) / "one")
    assert house.call("verify", "photos", "--point", first).code == 1
    assert state(house) == ("failing", [("damaged", first), ("damaged", second)]), "they share it"
    mended = house.run()
    assert mended.outcome == "done", mended
    assert state(house) == ("up", [])
    assert facts(house.point(0)) == before
    for point in (first, second, house.points()[-1]):
        assert house.call("verify", "photos", "--point", point).code == 0
    assert not list((house.target / "points").glob("*.damaged"))


def test_rot_whose_bytes_nobody_has_any_more_is_not_washed_away(house: House) -> None:
    copied(house)
    first = house.points()[0]
    rot(house.point(0) / "two")
    assert house.call("verify", "photos", "--point", first).code == 1
    ran = house.run()
    assert ran.outcome == "nothing-to-do"
    assert any("stays damaged" in warning and "two" in warning for warning in ran["warnings"]), ran
    assert state(house) == ("failing", [("damaged", first)])
    (job,) = house.call("status", "photos")["jobs"]
    assert f"poolferry points accept photos --point {first}" in job["hint"]
    assert house.run()["warnings"] == [], "said once; the state says it from now on"
    house.write("new", "a new file")
    assert house.run().outcome == "done"
    assert state(house) == ("failing", [("damaged", first)])
    assert house.call("points", "accept", "photos", "--point", first).code == 0
    assert state(house) == ("up", [])
    shown = {each["point"]: each["sound"] for each in house.call("points", "photos")["points"]}
    assert shown[first] is False, "accepted, and damaged all the same"


def test_rot_that_a_history_knew_is_known_again(house: House) -> None:
    copied(house)
    first = house.points()[0]
    rot(house.point(0) / "two")
    assert house.call("verify", "photos", "--point", first).code == 1
    shutil.rmtree(house.state)
    assert house.run().outcome == "nothing-to-do"
    assert state(house) == ("failing", [("damaged", first)])


@pytest.mark.parametrize("harm", ["removed", "flipped", "cut"])
@pytest.mark.sample(1)
def test_a_newest_point_without_its_manifest(house: House, harm: str) -> None:
    copied(house)
    bad = house.points()[-1]
    if harm == "removed":
        manifest(house).unlink()
    elif harm == "flipped":
        rot(manifest(house), at=60)
    else:
        os.truncate(manifest(house), manifest(house).stat().st_size - 9)
    assert house.call("verify", "photos").code == 1
    assert state(house) == ("failing", [("manifest", bad)])
    (point,) = [each for each in house.call("points", "photos")["points"] if each["point"] == bad]
    assert point["verified_at"] is None, "it said that it is verified"
    assert house.call("restore", "plan", "photos")["chosen"]["point"] == house.points()[0], "the newest verified copy"
    ran = house.run()
    assert ran.outcome == "done", ran
    assert facts(house.point()) == facts(house.source)
    assert house.call("verify", "photos").code == 0
    assert (house.point() / "two").stat().st_ino != (house.target / "points" / bad / "two").stat().st_ino
    assert state(house) == ("failing", [("manifest", bad)]), "a newer point does not verify this one"
    assert house.run().outcome == "nothing-to-do"
    assert house.call("points", "accept", "photos", "--point", bad).code == 0
    assert state(house) == ("up", [])


def test_a_restore_without_a_sound_manifest_ends_and_says_that_nothing_is_verified(house: House) -> None:
    copied(house)
    expected, earlier = facts(house.point()), facts(house.point(0))
    os.truncate(manifest(house), manifest(house).stat().st_size - 9)
    ran = house.call("restore", "run", "photos", "--to", str(house.folder / "back"))
    assert (ran.code, ran.outcome) == (1, "failed"), ran
    assert "not verified" in ran["why"]
    assert facts(house.folder / "back") == expected, "all is there, open, and without a marker"
    assert state(house) == ("failing", [("manifest", house.points()[-1])])
    assert "an earlier --point" in ran["hint"]
    again = house.call(
        "restore", "run", "photos", "--to", str(house.folder / "back"), "--point", house.points()[0], "--aside"
    )
    assert again.outcome == "done", again
    assert facts(house.folder / "back") == earlier


@pytest.mark.parametrize("of", ["another point", "a forger"])
def test_a_restore_ends_where_the_manifest_is_not_that_of_its_point(house: House, of: str) -> None:
    """Before, it failed each time as the copy was said to be damaged, which a run was to mend, and the marker stayed."""
    copied(house)
    expected = facts(house.point())
    own = manifest(house).read_bytes()
    if of == "another point":
        manifest(house).write_bytes((house.target / "points" / f"{house.points()[0]}.manifest.gz").read_bytes())
    else:
        header, entries = read_manifest(str(manifest(house)))
        write_manifest(
            str(manifest(house)),
            header,
            [entry._replace(digest="xxh128:" + 32 * "0") if entry.kind == "f" else entry for entry in entries],
        )
    assert manifest(house).read_bytes() != own
    ran = house.call("restore", "run", "photos", "--to", str(house.folder / "back"))
    assert (ran.code, ran.outcome, "all of it is back, and not verified" in ran["why"]) == (1, "failed", True), (
        ran.value
    )
    assert any(each.startswith("compared with that manifest all the same: ") for each in ran["warnings"]), ran.value
    assert "mends the copy" not in ran["hint"]
    assert facts(house.folder / "back") == expected, "all is there, open, and without a marker"
    manifest(house).write_bytes(own)
    assert house.call("verify", "photos").outcome == "done"
    assert state(house)[0] == "up"


def test_a_manifest_that_is_missing_is_seen_by_a_run_alone(house: House) -> None:
    copied(house)
    bad, kept = house.points()[-1], house.folder / "kept.gz"
    manifest(house).rename(kept)
    assert house.run().outcome == "done"
    assert state(house) == ("failing", [("manifest", bad)])
    kept.rename(house.target / f"points/{bad}.manifest.gz")
    assert house.call("verify", "photos", "--point", bad).code == 0, "as the hint says"
    assert state(house) == ("up", [])


@pytest.mark.parametrize("command", ["restore", "drill"])
@pytest.mark.sample(1)
def test_rot_that_a_restore_or_a_drill_finds(house: House, command: str) -> None:
    copied(house)
    newest = house.points()[-1]
    rot(house.point() / "one")
    to = house.folder / "back"
    ran = (
        house.call("restore", "run", "photos", "--to", str(to))
        if command == "restore"
        else house.call("drill", "photos", "--whole")
    )
    assert (ran.code, ran.outcome) == (1, "failed"), ran
    assert "damaged" in f"{ran.value}"
    assert state(house)[1][0] == ("damaged", newest)
    assert house.run().outcome == "done"
    if command == "drill":
        assert house.call("drill", "photos").code == 0
    assert state(house) == ("up", [])
    again = house.call("restore", "run", "photos", "--to", str(house.folder / "back2"))
    assert (again.code, again.outcome) == (0, "done"), again


def test_rot_of_a_single_restored_file(house: House) -> None:
    copied(house)
    rot(house.point() / "in/three")
    to = house.folder / "three"
    assert house.call("restore", "run", "photos", "--path", "in/three", "--to", str(to)).code == 1
    assert state(house) == ("failing", [("damaged", house.points()[-1])])
    assert house.run().outcome == "done"
    assert state(house) == ("up", [])


@pytest.mark.parametrize("which", ["all", "newest", "oldest", "newest, without its manifest"])
@pytest.mark.sample(2)
def test_points_that_somebody_removed(house: House, which: str) -> None:
    copied(house)
    which, _, bare = which.partition(",")
    gone = {"all": house.points(), "newest": house.points()[-1:], "oldest": house.points()[:1]}[which]
    aside = house.folder / "aside"
    aside.mkdir()
    for name in gone:
        (house.target / "points" / name).rename(aside / name)
        if not bare:
            (house.target / f"points/{name}.manifest.gz").rename(aside / f"{name}.manifest.gz")
    ran = house.run()
    assert ran.outcome == ("nothing-to-do" if which == "oldest" else "done"), ran
    assert state(house) == ("failing", [("points-gone", None)])
    assert house.run().outcome == "nothing-to-do"
    assert state(house) == ("failing", [("points-gone", None)])
    (job,) = house.call("status", "photos")["jobs"]
    assert all(name in job["problems"][0]["paths"] for name in gone)
    for each in aside.iterdir():
        each.rename(house.target / "points" / each.name)
    house.run()
    assert state(house) == ("up", []), "moved back, as the hint says"
    for name in gone:
        assert house.call("verify", "photos", "--point", name).code == 0, "its manifest was no leftover"


def test_what_remains_of_a_missed_point_goes_when_its_loss_is_accepted(house: House) -> None:
    copied(house)
    first = house.points()[0]
    shutil.rmtree(house.point(0))
    assert house.run().outcome == "nothing-to-do"
    assert (house.target / f"points/{first}.manifest.gz").exists(), "the point may come back"
    assert house.call("points", "accept", "photos").code == 0
    assert house.run().outcome == "nothing-to-do"
    assert not (house.target / f"points/{first}.manifest.gz").exists()


def test_the_folder_of_ours_is_lost_together_with_the_newest_point(house: House) -> None:
    copied(house)
    for lost in (house.target / ".poolferry", house.point(-1)):
        shutil.rmtree(lost)
    refused = house.run()
    assert refused.outcome == "refused", refused
    assert "poolferry run photos --allow target-in-use" in refused["hint"]
    assert house.run("photos", "--allow", "target-in-use").outcome == "done"


def test_points_that_were_removed_on_purpose(house: House) -> None:
    copied(house)
    first = house.points()[0]
    shutil.rmtree(house.point(0))
    assert house.run().outcome == "nothing-to-do"
    assert house.call("points", "accept", "photos").code == 0
    assert state(house) == ("up", [])
    assert house.run().outcome == "nothing-to-do"
    assert state(house) == ("up", [])
    assert first not in [each["point"] for each in house.call("points", "photos")["points"]]


def test_what_keep_removes_is_no_loss(house: House) -> None:
    copied(house, keep={"yearly": 1})
    assert len(house.points()) == 1
    assert house.run().outcome == "nothing-to-do"
    assert state(house) == ("up", [])


def test_a_place_that_moved(house: House) -> None:
    copied(house)
    old, new = house.target, house.folder / "elsewhere"
    house.job(target=str(new))
    (job,) = house.call("status", "photos")["jobs"]
    assert (job["newest_verified"], job["points"]["count"]) == (None, 0), "nothing is known to lie there"
    assert {each["location"] for each in house.call("points", "photos")["points"]} == {str(old)}
    ran = house.run("photos", "--allow", "target-new")
    assert ran.outcome == "done", ran
    assert any(str(old) in warning for warning in ran["warnings"]), ran
    assert state(house) == ("up", []), "they were left where they are, not lost"


def test_a_place_that_got_another_name(house: House) -> None:
    copied(house)
    first, second = house.points()
    rot(house.point(0) / "two")
    assert house.call("verify", "photos", "--point", first).code == 1
    targets, job = house.config / "targets.toml", house.config / "jobs/photos.toml"
    place = re.search(r"place\.([\w-]+)", targets.read_text())
    assert place is not None
    for file in (targets, job):
        file.write_text(file.read_text().replace(place[1], "vault"))
    assert house.run().outcome == "nothing-to-do"
    assert [(each["place"], each["point"]) for each in house.call("points", "photos")["points"]] == [
        ("vault", first),
        ("vault", second),
    ]
    assert state(house) == ("failing", [("damaged", first)]), "what is known goes on under the new name"
    facts_of = house.call("status", "photos")["jobs"][0]
    assert facts_of["points"]["count"] == 2
    shutil.rmtree(house.point(1))
    house.run()
    assert ("points-gone", None) in state(house)[1]


def test_a_place_that_moved_with_its_points(house: House) -> None:
    copied(house)
    names, new = house.points(), house.folder / "elsewhere"
    house.target.rename(new)
    house.job(target=str(new))
    house.target = new
    assert house.run().outcome == "nothing-to-do"
    assert state(house) == ("up", [])
    assert [each["point"] for each in house.call("points", "photos")["points"]] == names


@pytest.mark.root
def test_a_run_that_left_files_out(house: House) -> None:
    house.write("open", "x")
    house.write("secret", "y").chmod(0)
    house.job()

    def weakly(*arguments: str) -> Ran:
        return house.call(*arguments, before=WITHOUT_POWER)

    ran = weakly("run", "photos")
    assert (ran.code, ran.outcome) == (5, "incomplete"), ran
    assert "exclude" in ran["hint"]
    (point,) = house.points()
    assert state(house) == ("incomplete", [("left-out", point)])
    shown = house.call("points", "photos")["points"]
    assert shown[0]["left_out"] == 1
    again = weakly("run", "photos")
    assert (again.code, again.outcome) == (5, "incomplete"), again
    assert state(house)[0] == "incomplete"
    whole = house.run()
    assert (whole.code, whole.outcome) == (0, "done"), whole
    assert state(house) == ("up", [])
    assert [each["left_out"] for each in house.call("points", "photos")["points"]][-1] == 0
    assert house.call("points", "photos")["points"][0]["left_out"] == 1, "that point lacks it for ever"


@pytest.mark.root
def test_a_file_that_is_excluded_is_left_out_no_more(house: House) -> None:
    house.write("open", "x")
    house.write("secret", "y").chmod(0)
    house.job()
    assert house.call("run", "photos", before=WITHOUT_POWER).code == 5
    house.job(rsync={"excludes": ["/secret"]})
    ran = house.call("run", "photos", before=WITHOUT_POWER)
    assert ran.code == 0, ran
    assert state(house) == ("up", []), "as the hint says"


def test_a_restore_says_that_newer_points_are_gone(house: House, tmp_path: Path) -> None:
    """Also before any run has seen it: the older one came back as if it were the newest."""
    copied(house)
    first, second = house.points()
    shutil.rmtree(house.target / "points" / second)
    (house.target / "points" / f"{second}.manifest.gz").unlink()
    for number in range(2):
        newest = house.points()[-1] if number else second
        if number:
            shutil.rmtree(house.point())
        back = house.call("restore", "run", "photos", "--to", str(tmp_path / f"back{number}"))
        (warning,) = [each for each in back["warnings"] if "newer point" in each]
        assert (back.outcome, f"up to {newest}" in warning) == ("done", True), back
        assert state(house) == ("failing", [("points-gone", None)])
        assert newest not in str(house.call("points", "photos")["points"])
        assert house.call(*hinted_commands(warning)[0][1:]).code == 0
        assert house.run().code == 0
    asked = house.call("restore", "run", "photos", "--point", first, "--to", str(tmp_path / "asked"))
    (warning,) = asked["warnings"]
    assert (asked.outcome, "2 points that history knows vanished" in warning) == ("done", True), asked
    assert "`poolferry status` says what to do" in warning
    assert house.follow(warning).code == 4


@pytest.mark.parametrize("asked", ["verify", "drill", "points", "restore"])
@pytest.mark.sample(1)
def test_what_a_run_makes_and_removes_between_a_look_and_its_record_is_no_loss(
    house: House, sshd: Sshd, asked: str
) -> None:
    """The look began before the run, and its answer comes after it: that the new point had vanished was false."""
    copied(house, target=sshd.url(house.target), pipe=sshd.pipe, keep={"hourly": 1})
    house.write("two", "changed again")
    words = {
        "verify": ("verify", "photos"),
        "drill": ("drill", "photos"),
        "points": ("points", "photos", "--look"),
        "restore": ("restore", "run", "photos", "--to", str(house.folder / "back")),
    }[asked]
    path, programs = house.environment["PATH"], house.folder / "programs"
    programs.mkdir()
    run = shlex.join(house.argv("run", "photos"))
    (programs / "ssh").write_text(
        f'#!/bin/sh\nPATH={path}\nssh "$@"; code=$?\ncase "$*" in *look-at-target*)\n'
        f"  mkdir {programs}/once 2>/dev/null && {run} >{programs}/ran 2>&1 ;;\nesac\nexit $code\n"
    )
    (programs / "ssh").chmod(0o755)
    house.environment["PATH"] = f"{programs}:{path}"
    ended = house.call(*words)
    house.environment["PATH"] = path
    assert '"done"' in (programs / "ran").read_text(), "the run came in between"
    assert ended.code in (0, 1), ended  # the chosen point may be gone
    there = [each["point"] for each in house.call("points", "photos")["points"]]
    assert (state(house), there) == (("up", []), house.points())
