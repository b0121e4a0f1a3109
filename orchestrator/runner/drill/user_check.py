"""The owner's check of restored data in a restore test: a program of the job, and its output."""

import os

from orchestrator.domain.answers import split_lines
from orchestrator.domain.drill import UserCheckResult
from orchestrator.domain.errors import Stopped
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.domain.problem import DRILL_FAILED
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.units import show_duration
from orchestrator.process.executor import StopReason
from orchestrator.process.stop import StopRequest
from orchestrator.runner.drill.evidence import DrillEvidence

_MOST_OUTPUT = 64 << 10


def run_user_check(evidence: DrillEvidence, command: Command) -> RunReport | None:
    """Run the owner's check; None: it succeeded; else the report of a failed restore test. Raises: Stopped."""
    rules, tools = evidence.journal.job.drill, evidence.journal.tools
    said = bytearray()

    def heard(chunk: bytes) -> None:
        said.extend(chunk)
        del said[:-_MOST_OUTPUT]

    stop = StopRequest(deadline=rules.check_within, because="the check took too long")
    result = tools.writer(()).stream(
        Pipeline(stages=(command,)), stop=stop, stall_after=None, on_output=heard, on_errors=heard
    )
    late = result.stopped is StopReason.STOPPED
    output = bytes(said).decode("utf-8", "replace")
    evidence.checked = UserCheckResult(argv=rules.check_command, exit=None if late else result.exits[0], output=output)
    if tools.stop.reason is not None:
        raise Stopped(tools.stop.reason)
    if evidence.checked.exit == 0:
        return None
    how = f"took longer than {show_duration(rules.check_within)}" if late else f"ended with {result.exits[0]}"
    why = f"{DRILL_FAILED}what was restored matches the manifest, but {' '.join(rules.check_command)} {how}"
    hint = f"see what it said; `poolferry drill {evidence.journal.job.name} --seed {evidence.seed}` brings the same files back"
    return evidence.journal.ended(Outcome.FAILED, why, hint=hint, evidence=tuple(split_lines(output)[-20:]))


def user_command(evidence: DrillEvidence, tree: str) -> Command:
    """Build the owner's command as the job names it, with the path of the restored data in its environment."""
    told: tuple[tuple[str, str], ...] = (
        *evidence.journal.tools.hook_environment,
        ("POOLFERRY_JOB", evidence.journal.job.name),
        ("POOLFERRY_POINT", evidence.point or ""),
        ("POOLFERRY_SCRATCH", tree),
    )
    return Command(argv=evidence.journal.job.drill.check_command, effect=Effect.WRITES, environment=told)


def user_check_command(evidence: DrillEvidence, tree: str) -> Command:
    """Build the same command, run in the folder of the restored data."""
    owner = user_command(evidence, tree)
    return Command(
        argv=("env", f"--chdir={tree}", "--", *owner.argv), effect=Effect.WRITES, environment=owner.environment
    )


def user_check_text(evidence: DrillEvidence) -> str:
    """Return a note for the end of a report that the owner's check succeeded; empty: there was no check."""
    return f", and {os.path.basename(evidence.checked.argv[0])} found them well" if evidence.checked else ""
