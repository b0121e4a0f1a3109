"""No history can be read: `status` and `schedule` still show which jobs there are, and what mends it."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.whole.house import House


@pytest.fixture
def history(house: House) -> Path:
    """The damaged history of two jobs, one of which has a schedule."""
    house.write("file", "content")
    assert house.run(house.job()).outcome == "done"
    house.job("night", target=house.folder / "copies", schedule="30 2 * * *")
    path = house.state / "history.sqlite"
    path.write_bytes(path.read_bytes()[:4096] + b"garbage " * 4096)
    return path


def test_status_shows_the_jobs_and_what_mends_a_damaged_history(house: House, history: Path) -> None:
    found = house.call("status")
    assert found.code == 1
    assert [(job["job"], job["state"]) for job in found["jobs"]] == [("night", "unknown"), ("photos", "unknown")]
    assert (f"{history} is damaged" in found["error"], f"{history} is damaged" in found.errors) == (True, True)
    shown = subprocess.run(
        [each for each in house.argv("status") if each != "--json"], capture_output=True, text=True, env=house.environment, check=False
    )  # fmt: skip
    assert [line.split()[:2] for line in shown.stdout.splitlines()] == [
        ["JOB", "STATE"],
        ["night", "unknown"],
        ["photos", "unknown"],
    ]
    (move,) = re.findall(r"\((mv [^;]*);", found["hint"])
    subprocess.run(shlex.split(move), check=True)
    assert house.run().code == 0
    (photos,) = house.call("status", "photos")["jobs"]
    assert house.follow(photos["hint"]).code == 0
    assert house.call("status", "photos")["jobs"][0]["state"] == "up"


def test_schedule_shows_the_meanings_and_the_next_times_and_says_that_no_more_is_known(
    house: House, history: Path
) -> None:
    found = house.call("schedule")
    assert found.code == 1
    assert f"{history} is damaged" in found["error"]
    night, photos = found["jobs"]
    assert (night["job"], len(night["next"]), photos["next"]) == ("night", 3, [])
    assert {"due", "paused"}.isdisjoint(night)
    shown = subprocess.run(
        [each for each in house.argv("schedule", "night") if each != "--json"], capture_output=True, text=True, env=house.environment, check=False
    )  # fmt: skip
    assert (
        shown.stdout.splitlines()[-1] == "which runs are due, and what is paused, is not known: no history can be read"
    )
