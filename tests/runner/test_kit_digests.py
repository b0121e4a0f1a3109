"""The history beside copies is known for a copy of this host's before another one takes its place."""

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.rotation import RotationSet
from orchestrator.domain.run import Outcome
from orchestrator.history.store import open_history
from orchestrator.runner.kit_digests import knows_history_beside
from orchestrator.runner.run_recorder import begin_run
from tests.engines.zfs.sides import NOW
from tests.runner.journals import journal


@pytest.mark.parametrize(("made_on", "known"), [("red", False), ("blue", True)])
def test_of_a_set_only_a_disk_that_holds_a_point_of_this_history_holds_its_copy(
    tmp_path: Path, made_on: str, known: bool
) -> None:
    """After the history was lost the first disk gets a new one; the second disk still holds the older, which must stay."""
    with open_history(str(tmp_path / "history.sqlite")) as history:
        first = journal(history, tmp_path)
        blue = replace(
            first.job.target,
            name="blue",
            location=Location(path=str(tmp_path)),
            rotation=RotationSet(name="offsite", disks=()),
        )
        first.job = replace(first.job, target=replace(blue, name=made_on))
        history.point_made(
            first.job.name, made_on, "2026-03-04T050607Z", first.run, entries=1, bytes=1, taken=NOW, now=NOW
        )
        first.ended(Outcome.DONE, "made it")
        second = begin_run(replace(first.job, target=blue), first.tools, "the disk came")
        assert knows_history_beside(second) is known
