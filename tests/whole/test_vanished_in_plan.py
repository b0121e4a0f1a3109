"""Points vanish from a place: the plan of a restore says so, records nothing, and names what may help."""

import os
import shutil
from datetime import timedelta

import pytest

from orchestrator.domain.names import parse_point_name, point_name
from tests.whole.house import House, Ran


@pytest.fixture
def three(house: House) -> list[str]:
    """The names of three points, oldest first."""
    for number in range(3):
        house.write(f"file-{number}", str(number))
        assert house.run(house.job()).outcome == "done"
        made = house.points()[-1]
        house.redate(made, point_name(parse_point_name(made) - timedelta(days=9 - number)))
    return house.points()


def take(house: House, *points: str) -> None:
    """Move points away with their manifests."""
    for point in points:
        for name in (point, f"{point}.manifest.gz"):
            shutil.move(house.target / "points" / name, house.folder / name)


def plan(house: House, *more: str) -> Ran:
    return house.call("restore", "plan", "photos", "--to", str(house.folder / "back"), *more)


def test_an_older_point_that_vanished_is_told_and_not_recorded(house: House, three: list[str]) -> None:
    assert plan(house)["warnings"] == []
    take(house, three[1])
    for _ in range(2):
        (told,) = plan(house)["warnings"]
        assert told.startswith(
            f"1 point that history knows vanished from photos, and no removal of ours took it: {three[1]}; "
        )
    assert house.call("status")["jobs"][0]["problems"] == []
    assert house.follow(told).code == 0
    assert house.follow(told, 1)["chosen"] is not None
    refused = plan(house, "--point", three[1])
    assert (refused.code, "vanished from photos" in refused["why"]) == (3, True), refused
    assert house.follow(refused["hint"])["chosen"] is not None
    ran = house.call("restore", "run", "photos", "--to", str(house.folder / "back"))
    assert (ran.outcome, len(ran["warnings"])) == ("done", 1), ran
    assert "vanished from photos" in str(house.call("status")["jobs"][0]["problems"])


def test_a_place_from_which_all_points_vanished_is_not_called_one_to_run_the_job_for(
    house: House, three: list[str]
) -> None:
    take(house, *three)
    for command in ("plan", "run"):
        told = house.call("restore", command, "photos", "--to", str(house.folder / "back"))
        assert (
            told.code,
            f"3 points that history knows vanished from photos, and no removal of ours took them: {three[0]}"
            in told["why"],
        ) == (3, True), told
        assert f"see whether the right disk or folder lies at {house.target}" in told["hint"]
    for name in three:  # as the hint says
        for each in (name, f"{name}.manifest.gz"):
            os.rename(house.folder / each, house.target / "points" / each)
    assert house.call("restore", "run", "photos", "--to", str(house.folder / "back")).outcome == "done"
