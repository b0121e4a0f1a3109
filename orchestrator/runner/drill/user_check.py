"""The owner's check of restored data in a restore test: a program of the job, and its output."""

import os

from orchestrator.domain.drill_result import Checked
from orchestrator.domain.errors import Stopped
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.units import show_duration
from orchestrator.process.executor import StopReason
from orchestrator.process.stop import Stop
from orchestrator.runner.drill.evidence import Sheet

_KEPT = 64 << 10


def check(sheet: Sheet, command: Command) -> RunReport | None:
    """Run the owner's check; None: it succeeded; else the report of a failed restore test. Raises: Stopped."""
    rules, tools = sheet.journal.job.drill, sheet.journal.tools
    said = bytearray()

    def heard(chunk: bytes) -> None:
        said.extend(chunk)
        del said[:-_KEPT]

    stop = Stop(deadline=rules.check_within, because="the check took too long")
    result = tools.writer(()).stream(Pipeline(stages=(command,)), stop=stop, on_output=heard, on_errors=heard)
    late = result.stopped is StopReason.STOPPED
    output = bytes(said).decode("utf-8", "replace")
    sheet.checked = Checked(argv=rules.check_command, exit=None if late else result.exits[0], output=output)
    if tools.stop.reason is not None:
        raise Stopped(tools.stop.reason)
    if sheet.checked.exit == 0:
        return None
    how = f"took longer than {show_duration(rules.check_within)}" if late else f"ended with {result.exits[0]}"
    why = f"the drill failed: what came back is as promised, but {' '.join(rules.check_command)} {how}"
    cure = (
        f"see what it said; `poolferry drill {sheet.journal.job.name} --seed {sheet.seed}` brings the same files back"
    )
    return sheet.journal.ended(Outcome.FAILED, why, cure=cure, evidence=tuple(output.splitlines()[-20:]))


def owner_command(sheet: Sheet, tree: str) -> Command:
    """Build the owner's command as the job names it, with the path of the restored data in its environment."""
    told: tuple[tuple[str, str], ...] = (
        *sheet.journal.tools.hook_environment,
        ("POOLFERRY_JOB", sheet.journal.job.name),
        ("POOLFERRY_POINT", sheet.point or ""),
        ("POOLFERRY_SCRATCH", tree),
    )
    return Command(argv=sheet.journal.job.drill.check_command, effect=Effect.WRITES, environment=told)


def check_command(sheet: Sheet, tree: str) -> Command:
    """Build the same command, run in the folder of the restored data."""
    owner = owner_command(sheet, tree)
    return Command(
        argv=("env", f"--chdir={tree}", "--", *owner.argv), effect=Effect.WRITES, environment=owner.environment
    )


def told_checked(sheet: Sheet) -> str:
    """Return a note for the end of a report that the owner's check succeeded; empty: there was no check."""
    return f", and {os.path.basename(sheet.checked.argv[0])} found them well" if sheet.checked else ""
