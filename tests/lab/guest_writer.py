"""An executor whose programs run in a machine of the lab, so that an engine is tried there without our own start-up.

What runs is the very line that a log or a plan would show, in a shell of the machine.
"""

import re
import time
from collections.abc import Callable, Generator

from orchestrator.domain.command_line import pipeline_line
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Command, Decision, NothingToDo, Pipeline, Refusal, Step
from orchestrator.domain.units import Seconds
from orchestrator.engines.contract.engine import RunRequest, StageResults
from orchestrator.engines.zfs import ENGINE
from orchestrator.process.executor import LIMIT, LONGEST_LOOK, MOST_KEPT, Writer, only_reads
from orchestrator.process.flow import GENTLE, TerminationPolicy
from orchestrator.process.pipeline import PipelineResult, pipeline_failure
from orchestrator.process.stop import StopRequest
from tests.engines.zfs.sides import NOW
from tests.lab.common import Machine

_STATUSES = re.compile(rb"\nstatuses((?: \d+)+)\n$")


class GuestWriter(Writer):
    """Reads and writes in a machine, as its user; `ran` holds the lines."""

    def __init__(self, machine: Machine, *, user: str = "", ssh_options: tuple[str, ...] = ()) -> None:
        super().__init__(ssh_options=ssh_options)
        self._machine = machine
        self._user = user
        self.ran: list[str] = []

    def read(self, pipeline: Pipeline, *, limit: int = LIMIT, timeout: Seconds = LONGEST_LOOK) -> PipelineResult:
        del limit, timeout
        only_reads(pipeline)
        return self._run(pipeline)

    def _records(self, pipeline: Pipeline, separator: bytes) -> Generator[bytes, None, None]:
        result = self._run(pipeline)
        if not result.well:
            raise pipeline_failure(pipeline, result, self.ssh_options)
        yield from result.stdout.removesuffix(separator).split(separator)

    def stream(
        self,
        pipeline: Pipeline,
        *,
        stop: StopRequest | None = None,
        stall_after: Seconds | None = None,
        timeout: Seconds | None = None,
        on_output: Callable[[bytes], None] | None = None,
        on_tick: Callable[[], None] | None = None,
        on_bytes: Callable[[int], None] | None = None,
        on_errors: Callable[[bytes], None] | None = None,
        on_start: Callable[[tuple[int, ...]], None] | None = None,
        manners: TerminationPolicy = GENTLE,
        most_kept: int = MOST_KEPT,
    ) -> PipelineResult:
        del stop, stall_after, timeout, on_output, on_tick, on_bytes, on_errors, on_start, manners, most_kept
        return self._run(pipeline)

    def one(self, *stages: Command) -> PipelineResult:
        """Runs commands joined by pipes, whatever they do."""
        return self._run(Pipeline(stages=stages))

    def fails(self, *stages: Command) -> OrchestratorError:
        """Return what the engine makes of a pipeline that fails."""
        pipeline = Pipeline(stages=stages)
        result = self._run(pipeline)
        assert not result.well, result
        return ENGINE.explain(pipeline_failure(pipeline, result, self.ssh_options))

    def _run(self, pipeline: Pipeline) -> PipelineResult:
        line = pipeline_line(pipeline, self.ssh_options)
        self.ran.append(line)
        begun = time.monotonic()
        prelude = "export LC_ALL=C.UTF-8 PATH=$PATH:/usr/sbin:/sbin"
        # What the programs say is told apart by stage only in real runs; here the last stage's words are everybody's.
        words = ["bash", "-c", f'{prelude}; {line}\nprintf "\\nstatuses %s\\n" "${{PIPESTATUS[*]}}" >&2']
        ended = self._machine.sh(words, check=False, user=self._user)
        told = _STATUSES.search(ended.errors)
        assert told, ended
        exits = tuple(int(status) for status in told[1].split())
        said = ended.errors[: told.start()].decode(errors="surrogateescape")
        return PipelineResult(
            exits=exits,
            stdout=ended.out,
            last_output=("",) * (len(exits) - 1) + (said,),
            took_s=time.monotonic() - begun,
        )


def carry(hands: GuestWriter, job: Job, *allowed: str, looks: int = 5) -> tuple[Decision, ...]:
    """A run without its records: look, decide, do, prove, look again, until there is nothing more to do, or a refusal.

    Raises: OrchestratorError for what fails; AssertionError when it does not come to an end.
    """
    requested = RunRequest(now=NOW, notes="/notes", allowed=frozenset(allowed))
    decisions: list[Decision] = []
    for _ in range(looks):
        decision = ENGINE.plan(job, ENGINE.survey(job, requested, hands), requested)
        decisions.append(decision)
        if isinstance(decision, Refusal):
            return tuple(decisions)
        for stage in decision.stages:
            do(hands, stage)
        if isinstance(decision, NothingToDo) or decision.refusals:
            return tuple(decisions)
    raise AssertionError([getattr(decision, "summary", decision) for decision in decisions])


def do(hands: GuestWriter, stage: tuple[Step, ...]) -> None:
    """Does the steps of a stage one after the other, then proves them. Raises: OrchestratorError."""
    for step in stage:
        assert isinstance(step.work, Pipeline)
        result = hands.stream(step.work)
        if not result.well:
            raise ENGINE.explain(pipeline_failure(step.work, result, hands.ssh_options))
    confirmations = tuple(step.confirmation for step in stage if step.confirmation is not None)
    ENGINE.confirm(StageResults(confirmations=confirmations), hands)
