"""Runs, visits and restores as the terminal shows them, and the answer to the line that a machine sends to a gate."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from orchestrator.cli.terminal.screen import Terminal, exit_code

if TYPE_CHECKING:
    from orchestrator.app.disk_scan import VisitEnd
    from orchestrator.app.restore import RestoreCommand
    from orchestrator.app.run_jobs import RunEnd, RunsEnd


def run_and_show(
    terminal: Terminal,
    names: Sequence[str],
    *,
    why: str | None,
    allowed: frozenset[str] = frozenset(),
    only_due: bool = False,
    scheduled: bool = False,
) -> int:
    """Run jobs, and show each end; return the exit code."""
    from orchestrator.app.run_jobs import run_jobs

    def show(end: "RunEnd") -> None:
        if end.heals:
            terminal.show([f"  to heal {line}" for line in end.heals])

    ends = run_jobs(
        terminal, names, why=why or _run_reason(), allowed=allowed, only_due=only_due, scheduled=scheduled, hears=show
    )
    if ends.not_begun:
        terminal.say(f"not begun: {', '.join(ends.not_begun)}")
    terminal.answer_json(lambda: _value(ends, several=only_due or len(set(names)) > 1))
    drills = [drill.report.outcome for end in ends.runs for drill in end.drills]
    return exit_code([*drills, *(end.report.outcome for end in ends.runs)])


def _run_reason() -> str:
    """Return why a run began, for history."""
    return "by hand" if sys.stdin is not None and sys.stdin.isatty() else "by a command"


def _value(ends: "RunsEnd", *, several: bool) -> dict[str, object]:
    from orchestrator.domain.run_values import report_value

    values: list[dict[str, object]] = []
    for end in ends.runs:
        values.append(report_value(end.report))
        if end.drills:
            from orchestrator.views.drills import drill_value

            values[-1]["drill"] = drill_value(end.drills[-1])
    return {"runs": values} if several else values[0]


def scan_and_show(
    terminal: Terminal, names: Sequence[str] = (), *, why: str | None = None, identity: str | None = None
) -> int:
    """Visit the disks that are plugged in, and show each end; return the exit code."""
    from orchestrator.app.disk_scan import PLUGGED_IN, scan_disks

    def show(end: "VisitEnd") -> None:
        from orchestrator.views.visits import visit_lines

        terminal.show(visit_lines(end.visit, end.following))

    found = scan_disks(terminal, names, why=why or PLUGGED_IN, identity=identity, hears=show)
    if not found.ours:
        return 0
    from orchestrator.views.visits import scan_outcomes, scan_value

    terminal.answer_json(lambda: scan_value(found.visits, found.others))
    if not found.visits and not found.others:
        terminal.show(["no disk of ours is plugged in"])
    return exit_code(scan_outcomes(found.visits, found.others))


def restore_and_show(terminal: Terminal, request: "RestoreCommand") -> int:
    """Restore data, and show the end; return the exit code."""
    from orchestrator.app.restore import run_restore

    end = run_restore(terminal, request)
    chains: dict[str, object] = {}
    if end.links is not None:
        from orchestrator.views.restore import next_base_lines, next_base_values

        chains = {"chains": next_base_values(end.links)}
        if end.links and not terminal.quiet:
            terminal.show(["the next runs:", *next_base_lines(end.links)])

    def value() -> dict[str, object]:
        from orchestrator.domain.run_values import report_value

        return {**report_value(end.report), **chains}

    terminal.answer_json(value)
    return exit_code([end.report.outcome])


def answer_and_show(terminal: Terminal, name: str) -> int:
    """Answer a request that came through a gate; return the exit code of a refusal or of a receive, else never."""
    asker = os.environ.get("SSH_CONNECTION", "").partition(" ")[0]

    def later(line: str, who: str, put_off: Callable[..., None], came: bytes) -> int:
        from orchestrator.cli.terminal.errors import report_errors
        from orchestrator.cli.terminal.screen import flush_output

        with report_errors(terminal) as end:
            end.code = _answer(terminal, name, line, who, put_off=put_off, came=came)
        flush_output()
        return end.code

    return _answer(terminal, name, os.environ.get("SSH_ORIGINAL_COMMAND", ""), asker, later=later)


def _answer(
    terminal: Terminal,
    name: str,
    line: str,
    asker: str,
    *,
    later: Callable[..., int] | None = None,
    put_off: Callable[..., None] | None = None,
    came: bytes = b"",
) -> int:
    from orchestrator.app.gate import answer_request
    from orchestrator.domain.gate import PRINTED, REFUSED, CutStream, GateRefusal
    from orchestrator.views.gate import refusal_line

    try:
        asker = asker or "a person here"
        return answer_request(terminal, name, line, asker, later=later, put_off=put_off, came=came)
    except GateRefusal as refusal:
        terminal.say(refusal_line(name, refusal.why))
        return REFUSED
    except CutStream as cut:
        terminal.say(f"{PRINTED}{name}: {cut.why}")
        return 1  # as its receiver ends
