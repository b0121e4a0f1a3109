"""Test who broke the pipe."""

import pytest

from orchestrator.process.pipeline import culprit

TABLE: list[tuple[tuple[int | None, ...], int | None]] = [
    ((0,), None),
    ((0, 0, 0), None),
    ((1,), 0),
    ((1, 0), 0),
    ((0, 1), 1),
    # The rightmost of those that failed by themselves.
    ((1, 2), 1),
    ((1, 0, 2, 0), 2),
    # SIGPIPE is the echo of a failure further on, also as a remote shell tells it.
    ((-13, 1), 1),
    ((-13, -13, 255), 2),
    ((141, 1), 1),
    ((1, -13, 0), 0),
    # Only SIGPIPEs: the one after stopped reading.
    ((-13, 0), 1),
    ((-13, -13, 0), 2),
    ((-13, 0, 0), 1),
    ((141, 0), 1),
    ((0, -13), 1),
    ((-13,), 0),
    # Other signals are failures of one's own.
    ((-9, 0), 0),
    ((-13, -15), 1),
    # A stage that never ran is blamed only when no other is; and never passes for well.
    ((None, 127), 1),
    ((127, None), 0),
    ((None, None), 0),
    ((0, None), 1),
    ((-13, None), 1),
]


@pytest.mark.parametrize(("exits", "blamed"), TABLE)
def test_culprit(exits: tuple[int | None, ...], blamed: int | None) -> None:
    assert culprit(exits) == blamed
