"""The half-copied files of a cut copy are completed, linked to the point anew, or cloned from it."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.plan import FileCloning, Pipeline, Step
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.rsync import cut_copy
from orchestrator.engines.rsync.model import WORK, DifferingPaths, PartialFile, RsyncSurvey
from tests.engines.rsync.builders import ASKED, CHANGED, ROOT, USED, half, job, point, world

MIB = 1 << 20
FREE = 100 * MIB
SIZE = 64 * MIB
TREE = ROOT / WORK
IMAGE = half("disk.img", SIZE // 2, SIZE)
WHOLE = half("disk.img", SIZE, SIZE)


def seen(*cut: PartialFile, moving: int = SIZE, **more: Any) -> RsyncSurvey:
    """A cut copy of a changed image, on a filesystem that clones."""
    differing = DifferingPaths(paths=(b"disk.img",), joined=(), present=(b"disk.img",))
    told = {"clones": True, "large": ((b"disk.img", SIZE),), "older": frozenset({b"disk.img"}), "differing": differing}
    target = replace(USED, work=True, half=cut, by_root=True, free_bytes=FREE)
    return world(target, replace(CHANGED, moving=moving), **{**told, **more})


def actions(seen: RsyncSurvey, base: RestorePoint | None = None, **options: Any) -> list[str]:
    """The actions about half-copied files."""
    stages = cut_copy.complete_or_drop(job(**options), seen, TREE, base or point(), ASKED)
    return [step.action for stage in stages for step in stage]


GOES_ON = ["go on with disk.img", "name disk.img"]
CLONED = ["discard remainders of large files"]


def test_a_half_image_goes_on_where_there_is_room_for_all_of_it() -> None:
    assert actions(seen(IMAGE)) == GOES_ON
    assert actions(seen(IMAGE, ahead_of_large=1)) == GOES_ON


def test_a_half_image_makes_way_for_a_clone_where_room_may_lack() -> None:
    assert actions(seen(IMAGE, moving=FREE + 1)) == CLONED


def test_what_was_a_clone_is_made_anew_where_a_program_of_ours_compares_it() -> None:
    assert actions(seen(WHOLE, ahead_of_large=1)) == CLONED
    assert actions(seen(WHOLE)) == ["shorten disk.img", *GOES_ON]


@pytest.mark.parametrize(
    "why",
    [
        {"clones": False},
        {"older": frozenset()},
        {"large": ()},
        {"refused": ((b"disk.img", "the quota"),)},
    ],
    ids=str,
)
def test_nothing_makes_way_for_what_cannot_be_cloned(why: dict[str, Any]) -> None:
    assert actions(seen(IMAGE, moving=FREE + 1, **why)) == GOES_ON


def test_nothing_is_cloned_from_a_point_that_is_not_sound_or_was_not_compared() -> None:
    full = seen(IMAGE, moving=FREE + 1)
    assert actions(full, replace(point(), manifest=None)) == GOES_ON
    assert actions(full, point("2020-01-01T000000Z")) == GOES_ON
    assert actions(replace(full, target=replace(full.target, damaged=(b"x",)))) == GOES_ON


def test_a_half_file_that_is_as_in_the_point_again_is_dropped_on_any_filesystem() -> None:
    apart: dict[str, Any] = {"clones": False, "large": (), "older": frozenset[bytes]()}
    same = seen(half("same", 5, 10), **apart)
    assert actions(same) == ["discard remainders of unchanged files"]
    assert actions(replace(same, differing=None)) == ["go on with same", "name same"]
    assert actions(replace(same, unread=True)) == ["go on with same", "name same"]


def test_images_are_updated_in_place_and_then_cloned_where_they_lack() -> None:
    stages = cut_copy.bring_up_to_date(job(), seen(ahead_of_large=1), TREE, point(), ASKED)
    steps = [step for stage in stages for step in stage]
    assert [isinstance(step.work, FileCloning) for step in steps] == [False, False, False, True, False]
    in_place = _flags(steps[0])
    assert {"--inplace", "--no-whole-file", "--existing"} <= in_place
    assert not any(flag.startswith("--delete") for flag in in_place)
    assert "--delete-before" in _flags(steps[1])
    assert len(cut_copy.bring_up_to_date(job(), seen(clones=False), TREE, point(), ASKED)) == 1
    assert len(cut_copy.bring_up_to_date(job(), seen(), TREE, None, ASKED)) == 1


def _flags(step: Step) -> set[str]:
    assert isinstance(step.work, Pipeline)
    return set(step.work.stages[0].argv)
