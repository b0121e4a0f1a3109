"""The owner's own look at what a drill brought back: a program of the job, and what it said."""

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
    """Runs it; None: it is well, or else the report of a drill that failed. Raises: Stopped."""
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
    """The owner's program as the job names it, told where what came back is."""
    told: tuple[tuple[str, str], ...] = (
        *sheet.journal.tools.hook_environment,
        ("POOLFERRY_JOB", sheet.journal.job.name),
        ("POOLFERRY_POINT", sheet.point or ""),
        ("POOLFERRY_SCRATCH", tree),
    )
    return Command(argv=sheet.journal.job.drill.check_command, effect=Effect.WRITES, environment=told)


def check_command(sheet: Sheet, tree: str) -> Command:
    """The same, in the folder of what came back."""
    owner = owner_command(sheet, tree)
    return Command(
        argv=("env", f"--chdir={tree}", "--", *owner.argv), effect=Effect.WRITES, environment=owner.environment
    )


def told_checked(sheet: Sheet) -> str:
    """That it was well, for the end of a report; empty: nobody asked for it."""
    return f", and {os.path.basename(sheet.checked.argv[0])} found them well" if sheet.checked else ""
