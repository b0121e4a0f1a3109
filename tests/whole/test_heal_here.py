"""Test what is said of damaged files: where the same bytes are, and the command that brings them back, which is then run."""

import os
import shlex
from typing import Any

from tests.whole.damage import rot
from tests.whole.house import House


def healed(house: House, *command: str) -> dict[str, Any]:
    """Return what one command says of the only damaged file."""
    read = house.call(*command, "photos")
    assert (read.code, read.outcome) == (1, "failed"), read
    (hint,) = read["heal"]
    assert isinstance(hint, dict)
    return hint


def carry_out(house: House, command: str) -> None:
    """The command as it was printed."""
    words = shlex.split(command)
    assert words[0] == "poolferry"
    assert house.call(*words[1:]).outcome == "done"


def copied(house: House) -> None:
    house.write("in/one two", "the first")
    house.write("two", "the second")
    house.job()
    assert house.run().outcome == "done"


def test_what_the_source_still_has_comes_with_the_next_run(house: House) -> None:
    copied(house)
    rot(house.point() / "in" / "one two")
    hint = healed(house, "verify")
    assert (hint["place"], hint["command"]) == ("source", "poolferry run photos")
    carry_out(house, hint["command"])
    assert house.call("verify", "photos")["heal"] == []


def test_what_the_source_lost_comes_from_another_job(house: House) -> None:
    copied(house)
    house.job("other", target=str(house.folder / "second"))
    assert house.run("other").outcome == "done"
    (house.source / "in" / "one two").write_text("new words")
    rot(house.point() / "in" / "one two")
    for command in ("verify", "drill"):
        hint = healed(house, command)
        assert (hint["job"], hint["place"]) == ("other", "other"), hint
    assert hint["command"].endswith("--aside")
    (house.source / "in" / "one two").unlink()
    hint = healed(house, "verify")
    carry_out(house, hint["command"])
    assert (house.source / "in" / "one two").read_text() == "the first"


def test_a_second_copy_that_is_damaged_too_is_not_named(house: House) -> None:
    copied(house)
    house.job("other", target=str(house.folder / "second"))
    assert house.run("other").outcome == "done"
    rot(house.point() / "two")
    rot(house.folder / "second" / "latest" / "two")
    assert house.call("verify", "other").code == 1
    (house.source / "two").unlink()
    assert house.call("verify", "photos")["heal"] == []


def test_an_older_point_that_shares_the_file_is_no_help(house: House) -> None:
    copied(house)
    house.write("three", "more")
    assert house.run().outcome == "done"
    (house.source / "two").unlink()
    rot(house.point() / "two")
    assert len(house.points()) == 2
    assert house.call("verify", "photos")["heal"] == []


def test_an_older_point_with_a_file_of_its_own_is(house: House) -> None:
    """Copied anew once, as its time had changed: the bytes are the same, the file is another."""
    copied(house)
    os.utime(house.source / "two", ns=(0, 0))
    assert house.run().outcome == "done"
    (house.source / "two").unlink()
    rot(house.point() / "two")
    hint = healed(house, "verify")
    assert (hint["job"], hint["point"]) == ("photos", house.points()[0])


def test_other_bytes_under_the_same_name_are_no_help(house: House) -> None:
    copied(house)
    house.job("other", target=str(house.folder / "second"))
    house.write("two", "changed since then")
    assert house.run("other").outcome == "done"
    rot(house.point() / "two")
    assert house.call("verify", "photos")["heal"] == []
