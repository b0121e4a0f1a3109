"""Of more than is free a person is warned before, where it is known; nothing is refused."""

from dataclasses import replace

import pytest

from orchestrator.domain.plan import Plan
from orchestrator.engines.contract.copies import SpaceChecker
from orchestrator.engines.contract.engine import implements
from orchestrator.engines.rsync import ENGINE
from orchestrator.engines.rsync.model import RsyncSurvey
from orchestrator.process.scripted import ScriptedExecutor
from tests.engines.rsync.builders import ASKED, CHANGED, USED, job, mirror, world

TIGHT = replace(USED, free_bytes=2047)


def warned(seen: RsyncSurvey, *, points: bool = True) -> tuple[str, ...]:
    assert implements(ENGINE, SpaceChecker)
    plan = Plan(summary="", stages=(), warnings=("one",))
    told = ENGINE.check_space(job() if points else mirror(), seen, plan, ASKED, ScriptedExecutor({}))
    assert isinstance(told, Plan)
    assert told.warnings[0] == "one"
    return told.warnings[1:]


def test_what_may_not_fit_is_warned_of() -> None:
    (told,) = warned(world(TIGHT))
    assert (
        told == "2.0 KiB are to be copied, and 2.0 KiB are free on the target: it fits only if that stores it in less"
    )


@pytest.mark.parametrize(
    "seen",
    [
        world(replace(USED, free_bytes=2048)),
        world(replace(USED, free_bytes=None)),
        world(replace(TIGHT, work=True)),
        world(TIGHT, changes=replace(CHANGED, moving=None)),
        world(TIGHT, changes=None),
    ],
)
def test_what_fits_or_cannot_be_known_is_not(seen: RsyncSurvey) -> None:
    assert warned(seen) == ()


def test_in_a_mirror_what_goes_makes_room() -> None:
    assert warned(world(TIGHT), points=False) == ()
