"""Test the line on the last restore test: it claims no more than was seen."""

from datetime import UTC, datetime

import pytest

from orchestrator.domain.drill import DrillRecord, DrillResult
from orchestrator.domain.job import DrillRules
from orchestrator.domain.run import Outcome
from orchestrator.views.drills import newest_drill_line

NOW = datetime(2026, 3, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("outcome", "files", "whole", "shown"),
    [
        (Outcome.DONE, 5, False, "5 files restored, and none differs"),
        (Outcome.DONE, 5, True, "all files restored, and none differs"),
        (Outcome.DONE, 0, False, "done, and no file could be seen without its key"),
        (Outcome.FAILED, 5, False, "5 files FAILED"),
    ],
)
def test_the_line_says_what_was_compared(outcome: Outcome, files: int, *, whole: bool, shown: str) -> None:
    drilled = DrillResult(
        place="vault", point="c", outcome=outcome, why="", whole=whole, self_test=False, seed=1, files=files
    )
    record = DrillRecord(run=7, job="photos", at=NOW, drilled=drilled)
    assert newest_drill_line(DrillRules(), [record], NOW).endswith(f", {shown} (run 7)")
