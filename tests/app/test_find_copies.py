"""Beside the plan of one copy: which others are newer, and what to say or do for each."""

from datetime import UTC, datetime

import pytest

from orchestrator.app.find_copies import find_better_copies, restore_goals
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.planners.choose_copy import CandidatePoint, CopyCandidate, choose_copy
from orchestrator.views.copies import CopySearchResult, newer_copy_lines

JOB = Job(
    name="photos", file="photos.toml", engine="rsync", source=Location(path="/srv/photos"), options=None,
    target=Place(name="nas", location=Location(path="/nas")),
)  # fmt: skip


def copy(job: str, *days: int, away: str = "", disk: str = "", sound: bool | None = None) -> CopyCandidate:
    at = [datetime(2026, 1, day, tzinfo=UTC) for day in days]
    points = tuple(CandidatePoint(name=f"p{each.day}", taken=each, at=each, verified=True, sound=sound) for each in at)
    return CopyCandidate(job=job, place=disk or job, points=points, away=away, disk=disk)


def found(*copies: CopyCandidate, at: datetime | None = None) -> CopySearchResult:
    return CopySearchResult(job=JOB, copies=copies, choice=choose_copy(copies, at=at), takes=None, goals=())


def say(job: str, point: str) -> str:
    return f"from {job} {point}"


@pytest.mark.parametrize(
    ("copies", "told"),
    [
        ((copy("photos", 1, 3), copy("other", 2)), []),
        ((copy("other", 3), copy("photos", 3)), []),
        ((copy("other", 4), copy("photos", 3)), ["  newer on other (job other), point p4: from other p4"]),
        ((copy("other", 1), copy("photos", 3, sound=False)), ["  newer on other (job other), point p1: from other p1"]),
        ((copy("photos", 3), copy("usb", 4, away="it is not plugged in", disk="red")),
         ["  elsewhere: disk red (job usb) holds p4, 1 d newer: fetch it, and plug it in"]),
    ],
    ids=["older", "as old", "newer", "the own one is damaged", "away"],
)  # fmt: skip
def test_what_is_newer_is_told_beside_a_plan(copies: tuple[CopyCandidate, ...], told: list[str]) -> None:
    assert newer_copy_lines(find_better_copies(found(*copies), JOB, say)) == told


def test_nothing_newer_than_the_instant_that_was_asked_for() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    seen = found(copy("other", 1, 4), copy("photos", 2, 3), at=at)
    assert find_better_copies(seen, JOB, say, at=at) == ()
    seen = found(copy("other", 2), copy("photos", 1, 3), at=at)
    assert [point.name for _, point, _ in find_better_copies(seen, JOB, say, at=at)] == ["p2"], (
        "its own later point was not asked for"
    )


@pytest.mark.parametrize(
    ("path", "goal"), [("", ("", "tank/photos")), ("2026/a.jpg", ("2026/a.jpg", "./a.jpg"))], ids=["whole", "a file"]
)
def test_a_file_of_a_dataset_goes_to_where_the_person_stands(path: str, goal: tuple[str, str]) -> None:
    dataset = replace(JOB, source=Location(path="tank/photos"))
    assert [(each.path, each.to) for each in restore_goals(dataset, path)] == [goal]
