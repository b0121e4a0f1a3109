"""Every kind of run ends by the same table: a stop is no failure, a wait is no failure, and a failure keeps its evidence."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.errors import (
    Evidence,
    HostUnreachable,
    NotNow,
    OrchestratorError,
    OutsideError,
    PartlyRefused,
    Stopped,
)
from orchestrator.domain.job import Job
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.history.store import History, open_history
from orchestrator.process.executor import Writer
from orchestrator.runner.context import RunContext
from orchestrator.runner.execute import release_holds
from orchestrator.runner.verify.export_sums import export_sums
from orchestrator.runner.verify.verify import verify_job
from tests.runner.journals import journal, small

EVIDENCE = Evidence(lines=("ssh box zfs list",), exits=(255,), last_output=("no route to host",))
AWAY = HostUnreachable("box did not answer", evidence=EVIDENCE, hint="check that it runs")


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


@pytest.mark.parametrize(
    ("error", "outcome", "why", "hint", "evidence"),
    [
        (NotNow("locked", hint="wait"), Outcome.WAITING, "locked", "wait", ()),
        (Stopped("a signal"), Outcome.INTERRUPTED, "a signal", "again", ()),
        (
            PartlyRefused("two were refused", evidence=("a",)),
            Outcome.FAILED,
            "it failed: two were refused",
            "",
            ("b", "a"),
        ),
        (
            OutsideError("it is another", evidence=EVIDENCE, hint="poolferry run JOB --aside"),
            Outcome.FAILED,
            "it failed: it is another",
            "poolferry run photos --aside",
            ("b", *EVIDENCE.lines),
        ),
        (AWAY, Outcome.FAILED, "it failed: box did not answer", "check that it runs", ("b", *EVIDENCE.lines)),
    ],
    ids=["wait", "stop", "part", "job", "host"],
)
def test_the_class_of_the_error_decides(
    history: History,
    tmp_path: Path,
    error: OrchestratorError,
    outcome: Outcome,
    why: str,
    hint: str,
    evidence: tuple[str, ...],
) -> None:
    report = journal(history, tmp_path).ended_by(error, continues="again", what="it failed: ", found=("b",))
    assert (report.outcome, report.why, report.hint) == (outcome, why, hint)
    assert report.evidence[: len(evidence)] == evidence


def test_what_fails_on_a_disk_that_was_pulled_out_is_no_failure_and_no_damage(history: History, tmp_path: Path) -> None:
    """The kernel's error comes before the watch looks again: it blamed the disk, and what could not be read was recorded as damaged."""
    begun = journal(history, tmp_path)
    begun.job = replace(begun.job, target=replace(begun.job.target, disk="red", device="no-such-device"))
    with pytest.raises(Stopped, match="disk red was pulled out"):
        _ = begun.verdicts
    error = OutsideError("a disk could not be read", evidence=EVIDENCE, hint="look at the disk's health")
    report = begun.ended_by(error, continues="again")
    assert (report.outcome, report.why, report.hint) == (Outcome.INTERRUPTED, "disk red was pulled out", "again")


def exported(job: Job, tools: RunContext) -> RunReport:
    return export_sums(job, tools, point=None, to="/nowhere/sums").report


def verified(job: Job, tools: RunContext) -> RunReport:
    return verify_job(job, tools, point=None).report


@pytest.mark.parametrize("run", [exported, verified], ids=["export", "verify"])
@pytest.mark.parametrize("error", [NotNow("locked"), Stopped("a signal"), AWAY], ids=["wait", "stop", "host"])
def test_no_kind_of_run_decides_for_itself(
    history: History, tmp_path: Path, run: Callable[[Job, RunContext], RunReport], error: OrchestratorError
) -> None:
    def fails(_: object) -> Writer:
        raise error

    begun = journal(history, tmp_path)
    report = run(begun.job, replace(begun.tools, writer=fails))
    expected = begun.ended_by(error, continues="")
    assert (report.outcome, report.why, report.evidence) == (expected.outcome, expected.why, expected.evidence)


def test_pins_that_wait_wait(history: History, tmp_path: Path) -> None:
    begun = journal(history, tmp_path)

    def fails(_: object) -> Writer:
        raise NotNow("locked", hint="wait")

    report = release_holds(begun.job, replace(begun.tools, writer=fails), (small(),))
    assert (report.outcome, report.hint) == (Outcome.WAITING, "wait")


def test_a_hint_within_another_names_the_job_too(history: History, tmp_path: Path) -> None:
    """A drill writes its own command behind what a program's failure advises."""
    ended = journal(history, tmp_path).ended(
        Outcome.FAILED, "why", hint="poolferry run JOB --aside; then `poolferry drill photos`"
    )
    assert ended.hint == "poolferry run photos --aside; then `poolferry drill photos`"
