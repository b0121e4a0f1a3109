"""`poolferry restore plan`: the plan of a restore, and the choice of the copy."""

from typing import Any

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, pass_terminal, restore_options, restore_request
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "plan",
    cls=CliCommand,
    examples=(
        ("restore plan photos", "which copies there are, and which one to take"),
        ("restore plan photos --path 2026/a.jpg --to /tmp/a.jpg", "the commands that bring one file back"),
    ),
)
@restore_options
@pass_terminal
def plan(terminal: Terminal, /, **words: Any) -> int:
    """The plan of `restore run`; without --to, which of all copies to restore from. Changes nothing."""
    from orchestrator.app.restore import choose_copy, plan_restore
    from orchestrator.domain.plan import Refusal
    from orchestrator.views.copies import copy_search_lines, copy_search_value
    from orchestrator.views.plan import restore_plan_lines, restore_plan_value

    request = restore_request(**words)
    if request.to is None:
        found = choose_copy(terminal, request)
        value = {"job": found.job.name, **copy_search_value(found)}
        terminal.answer(value, lambda: copy_search_lines(found, now=compose.now()))
        return 0 if found.choice.copy is not None else 75 if found.choice.newer else 3
    planned = plan_restore(terminal, request)
    parts = (planned.job, planned.decision, planned.others)
    terminal.answer(restore_plan_value(*parts), restore_plan_lines(*parts, verbose=terminal.verbose))
    return 3 if isinstance(planned.decision, Refusal) else 0


COMMAND = plan
