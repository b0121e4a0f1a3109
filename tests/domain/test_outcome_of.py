"""One table for all runs: the outcome and the exit code that belong to the class of an error."""

import pytest

from orchestrator.domain import errors
from orchestrator.domain.errors import (
    DeclarationError,
    HistoryError,
    LookAgain,
    NotNow,
    OrchestratorError,
    SourceRenamed,
    Stopped,
    TargetUnable,
)
from orchestrator.domain.run import EXIT_CODES, Outcome, outcome_of

CLASSES = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, OrchestratorError)]


@pytest.mark.parametrize(
    ("error", "outcome", "code"),
    [
        (NotNow("the disk is away"), Outcome.WAITING, 75),
        (Stopped("SIGTERM"), Outcome.INTERRUPTED, 1),
        (HistoryError("cannot be written"), Outcome.FAILED, 1),
        (LookAgain("again"), Outcome.FAILED, 1),
        (TargetUnable("no links", evidence=()), Outcome.REFUSED, 3),
        (SourceRenamed.__new__(SourceRenamed), Outcome.REFUSED, 3),
    ],
)
def test_each_class_has_its_outcome(error: OrchestratorError, outcome: Outcome, code: int) -> None:
    assert (outcome_of(error), EXIT_CODES[outcome_of(error)]) == (outcome, code)


def test_every_other_error_is_a_failure() -> None:
    assert len(CLASSES) > 15
    others = [
        each
        for each in CLASSES
        if not issubclass(each, NotNow | Stopped | DeclarationError | TargetUnable | SourceRenamed)
    ]
    assert {outcome_of(each.__new__(each)) for each in others} == {Outcome.FAILED}


def test_every_outcome_has_an_exit_code() -> None:
    assert set(EXIT_CODES) == set(Outcome)
