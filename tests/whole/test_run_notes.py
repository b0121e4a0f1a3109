"""A run keeps notes in the state directory: what stays of them once it has ended, and where it failed."""

import os
import signal

import pytest

from tests.whole.house import House, facts, mounted, wait_until
from tests.whole.kills import MIB

pytestmark = [pytest.mark.root, pytest.mark.namespace]


def notes(house: House, which: str) -> set[str]:
    """The names of the notes of that kind: folders, and what lies in them."""
    found = (house.state / "notes").glob(f"{which}*")
    return {f"{folder.name}/{name}" for folder in found for name in ("", *os.listdir(folder))}


def many(house: House) -> None:
    for number in range(3000):
        house.write(f"{number % 30}/file-{number}", str(number))
    house.write("large", os.urandom(20 * MIB))


def test_a_restore_leaves_no_notes_be_it_that_it_fails_or_is_killed(house: House) -> None:
    many(house)
    assert house.run(house.job()).outcome == "done"
    with mounted(house.folder / "small", "size=10m"):
        assert house.call("restore", "run", "photos", "--to", str(house.folder / "small/back")).outcome == "failed"
    assert notes(house, "restore-") == set()
    process = house.start_call("restore", "run", "photos", "--to", str(house.folder / "cut"))
    wait_until(lambda: notes(house, "restore-"), pause=0.0005)
    os.killpg(process.pid, signal.SIGKILL)
    house.ended(process)
    assert notes(house, "restore-")
    assert house.call("restore", "run", "photos", "--to", str(house.folder / "back")).outcome == "done"
    assert facts(house.folder / "back") == facts(house.point())
    assert notes(house, "restore-") == set()


def test_a_run_that_fails_keeps_only_the_notes_of_what_it_copied(house: House) -> None:
    many(house)
    with mounted(house.folder / "small", "size=15m"):
        house.target = house.folder / "small/copies"
        for _ in range(3):
            assert "no space left" in house.run(house.job())["why"]
            kept = {name.partition("/")[2].partition("-")[0] for name in notes(house, "photos")}
            assert kept <= {"", "moved", "earlier"}
            assert "moved" in kept
    house.target = house.folder / "target"
    assert house.run(house.job()).outcome == "done"
    assert notes(house, "photos") == set()
