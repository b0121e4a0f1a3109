"""`poolferry uncovered`: what no job copies."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "uncovered",
    cls=CliCommand,
    examples=(
        ("uncovered", "datasets of the sources' pools, and folders beside the sources, that no job copies"),
        ("uncovered --json", "the same, for a program"),
    ),
    section="every day",
    short_help="What no job copies.",
)
@pass_terminal
def uncovered(terminal: Terminal) -> int:
    """Name the datasets and folders beside the sources of this machine that no job copies. Nothing is changed."""
    from orchestrator.app.uncovered import survey_uncovered
    from orchestrator.views.uncovered import uncovered_lines, uncovered_value

    found = survey_uncovered(terminal)
    parts = (found.datasets, found.folders, found.trouble)
    terminal.answer(uncovered_value(*parts), uncovered_lines(*parts))
    return 0


COMMAND = uncovered
