"""`restore plan` without a destination: which of all copies of a source to take, and the command that takes it."""

import shlex
import shutil
import subprocess
from datetime import UTC, datetime
from typing import Any

from tests.whole.damage import rot
from tests.whole.house import House, facts, wait_until


def choice(house: House, *arguments: str) -> dict[str, Any]:
    planned = house.call("restore", "plan", "photos", *arguments)
    assert planned.code == (0 if planned["chosen"] else 75 if planned["elsewhere"] else 3), planned
    return planned.value


def two_copies(house: House) -> None:
    """The same source, copied to two places; the second copy is newer, and its point has a name of its own."""
    house.write("one", "the first")
    house.write("in/two", "the second")
    house.job()
    house.job("other", target=str(house.folder / "second"))
    assert house.run().outcome == "done"
    house.write("three", "later")
    wait_until(lambda: f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}" > house.points()[0])
    assert house.run("other").outcome == "done"


def test_one_file_that_is_asked_for_is_all_that_the_command_brings_back(house: House) -> None:
    house.write("one", "the first")
    house.write("in/two", "the second")
    assert house.run(house.job()).outcome == "done"
    house.write("one", "spoilt")
    house.write("in/two", "spoilt as well")
    told = house.call("restore", "plan", "photos", "--path", "in/two").value
    assert told["in_the_way"] == f"{house.source}/in/two is there"
    words = shlex.split(told["command"])
    assert words[-5:] == ["--path", "in/two", "--to", f"{house.source}/in/two", "--aside"]
    (house.source / "in/two").unlink()
    told = house.call("restore", "plan", "photos", "--path", "in/two").value
    assert told["in_the_way"] is None
    assert house.call(*shlex.split(told["command"])[1:]).outcome == "done"
    assert ((house.source / "in/two").read_text(), (house.source / "one").read_text()) == ("the second", "spoilt")


def test_of_several_folders_only_what_is_in_the_way_is_set_aside(house: House) -> None:
    for folder in ("a", "b"):
        house.write(house.folder / folder / "file", folder)
    folders = [str(house.folder / folder) for folder in ("a", "b")]
    assert house.run(house.job(source=None, sources=folders)).outcome == "done"
    (house.folder / "b/file").unlink()
    told = house.call("restore", "plan", "photos").value
    assert told["in_the_way"] == f"{folders[0]} holds 1 entry"
    assert [each.endswith("--aside") for each in told["command"].split(" && ")] == [True, False]
    told = house.call("restore", "plan", "photos", "--path", folders[1][1:]).value
    assert house.call(*shlex.split(told["command"])[1:]).outcome == "done"
    assert (house.folder / "b/file").read_text() == "b"


def test_the_newest_proved_copy_of_all_jobs_is_chosen_and_its_command_restores(house: House) -> None:
    two_copies(house)
    found = choice(house)
    assert (found["chosen"]["job"], found["chosen"]["bytes"]) == ("other", 24)
    assert {each["job"]: each["points"] for each in found["copies"]} == {"photos": 1, "other": 1}
    assert found["in_the_way"].endswith("holds 3 entries")
    assert found["command"].endswith("--aside")
    before = facts(house.source)
    shutil.rmtree(house.source)
    found = choice(house)
    assert found["in_the_way"] is None
    words = shlex.split(found["command"])
    assert words[:3] == ["poolferry", "restore", "run"]
    assert house.call(*words[1:]).outcome == "done"
    assert facts(house.source) == before


def test_a_damaged_copy_is_passed_over(house: House) -> None:
    two_copies(house)
    rot(house.folder / "second" / "latest" / "one")
    assert house.call("verify", "other").code == 1
    found = choice(house)
    assert found["chosen"]["job"] == "photos"
    (damaged,) = [each["damaged"] for each in found["copies"] if each["job"] == "other"]
    assert len(damaged) == 1


def test_a_place_that_does_not_answer_is_told(house: House) -> None:
    two_copies(house)
    (house.folder / "second").rename(house.folder / "unmounted")
    found = choice(house)
    assert found["chosen"]["job"] == "photos"
    gone = next(each for each in found["copies"] if each["job"] == "other")
    assert "mounted" in gone["away"]
    assert [each["job"] for each in found["elsewhere"]] == ["other"]


def test_what_history_lost_is_found_at_the_places(house: House) -> None:
    two_copies(house)
    shutil.rmtree(house.state)
    assert choice(house)["chosen"]["job"] == "other"


def test_other_sources_are_other_data(house: House) -> None:
    two_copies(house)
    house.job("other", source=str(house.folder / "elsewhere"), target=str(house.folder / "second"))
    assert choice(house)["chosen"]["job"] == "photos"


def test_nothing_was_copied_yet(house: House) -> None:
    house.job()
    found = choice(house)
    assert (found["chosen"], found["command"]) == (None, None)
    assert house.call("restore", "run", "photos").code == 2


def test_a_plan_for_a_destination_tells_what_is_newer_elsewhere(house: House) -> None:
    two_copies(house)
    where = ("--to", str(house.folder / "back"))
    planned = house.call("restore", "plan", "photos", *where)
    assert (planned.code, planned["decision"]) == (0, "plan"), planned
    (newer,) = planned["others"]
    (point,) = house.points(house.folder / "second")
    assert (newer["job"], newer["point"], newer["away"]) == ("other", point, None)
    assert newer["do"] == f"poolferry restore run other --to {house.folder / 'back'} --point {point}"
    assert house.call(*newer["do"].split()[1:])["outcome"] == "done", "the hint as it stands"
    shutil.rmtree(house.folder / "back")
    assert house.call("restore", "plan", "other", *where)["others"] == []
    assert house.call("restore", "plan", "photos", *where, "--point", house.points()[0])["others"] == []
    (house.folder / "second").rename(house.folder / "unmounted")
    (newer,) = house.call("restore", "plan", "photos", *where)["others"]
    assert newer["away"], newer
    assert "cannot be reached" in newer["do"]
    argv = [word for word in house.argv("restore", "plan", "photos", *where) if word != "--json"]
    lines = subprocess.run(argv, env=house.environment, capture_output=True, text=True, check=True).stdout
    assert f"elsewhere: {newer['do']}" in " ".join(lines.split()), "without the line breaks of a terminal"
