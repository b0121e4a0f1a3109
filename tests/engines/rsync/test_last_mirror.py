"""Mirrors: a manifest is believed where it is not older than the last that a run wrote; a place of points is no place of a mirror."""

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import MIRROR_FILE_TIME, MIRROR_MADE
from orchestrator.engines.rsync.mirror_steps import is_last_mirror
from orchestrator.engines.rsync.plan import plan
from tests.engines.rsync.builders import ASKED, NAME, NOW, OLD, ROOT, THERE, USED, mirror, world


@pytest.mark.parametrize(
    ("told", "target", "seconds", "last"),
    [
        (None, ROOT, 9999, True),
        (NOW.isoformat(), ROOT, 2, True),
        (NOW.isoformat(), ROOT, 3, False),
        (NOW.isoformat(), THERE, 600, True),
        (NOW.isoformat(), THERE, 601, False),
        ("damaged", ROOT, 0, False),
        (NOW.replace(tzinfo=None).isoformat(), ROOT, 0, False),
    ],
)
def test_an_older_manifest_and_a_damaged_record_have_it_made_anew(
    told: str | None, target: Location, seconds: int, last: bool
) -> None:
    job = mirror(target=target)
    remembered = {} if told is None else {MIRROR_MADE + job.target.name: told}
    assert is_last_mirror(job, NOW - timedelta(seconds=seconds), replace(ASKED, remembered=remembered)) is last


@pytest.mark.parametrize(("own", "last"), [(0, True), (2, True), (-3, False), (3600, False), (None, True)])
@pytest.mark.parametrize("target", [ROOT, THERE])
def test_the_time_that_the_file_had_is_compared_with_no_clock_of_ours(
    target: Location, own: int | None, last: bool
) -> None:
    """The server's clock is an hour ahead: an older state that is younger than that passed for the last one."""
    job, there = mirror(target=target), NOW + timedelta(hours=1)
    told = "" if own is None else str(int(there.timestamp()) + own)
    remembered = {MIRROR_MADE + job.target.name: NOW.isoformat(), MIRROR_FILE_TIME + job.target.name: told}
    assert is_last_mirror(job, there, replace(ASKED, remembered=remembered)) is last


@pytest.mark.parametrize("told", ["damaged", "9" * 30, "1.5"])
def test_a_damaged_record_of_it_has_the_manifest_made_anew(told: str) -> None:
    job = mirror(target=ROOT)
    remembered = {MIRROR_MADE + job.target.name: NOW.isoformat(), MIRROR_FILE_TIME + job.target.name: told}
    assert not is_last_mirror(job, NOW, replace(ASKED, remembered=remembered))


@pytest.mark.parametrize("points", [1, 2])
def test_a_mirror_is_refused_in_a_place_of_points(points: int) -> None:
    """To its source they are what has gone, which it may remove."""
    refusal = plan(mirror(), world(replace(USED, dated=(OLD, NAME)[:points])), ASKED)
    assert isinstance(refusal, Refusal)
    assert refusal.why.startswith(f"the target {ROOT} holds {points} restore point")
    assert refusal.evidence == tuple(f"points/{name}" for name in (OLD, NAME)[:points])
    assert "write points = true in [rsync] of photos.toml" in refusal.hint
