"""Runs and visits as the terminal shows them, for the commands and for `fast_path`.

Why apart from the commands: a line that a timer or udev starts must not wait for the library that parses arguments.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.cli.terminal.screen import Terminal, exit_code

if TYPE_CHECKING:
    from orchestrator.app.disk_scan import VisitEnd
    from orchestrator.app.run_jobs import RunEnd, RunsEnd


def run_and_show(
    terminal: Terminal,
    names: Sequence[str],
    *,
    why: str | None,
    allowed: frozenset[str] = frozenset(),
    only_due: bool = False,
) -> int:
    """Run jobs, and show each end; return the exit code."""
    from orchestrator.app.run_jobs import run_jobs

    def show(end: "RunEnd") -> None:
        if end.heals:
            terminal.show([f"  to heal {line}" for line in end.heals])

    ends = run_jobs(terminal, names, why=why or _run_reason(), allowed=allowed, only_due=only_due, hears=show)
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
    from orchestrator.views.visits import scan_value, visit_outcome

    terminal.answer_json(lambda: scan_value(found.visits, found.others))
    if not found.visits and not found.others:
        terminal.show(["no disk of ours is plugged in"])
    return exit_code(map(visit_outcome, found.visits))
