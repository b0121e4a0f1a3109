"""`poolferry disks list`: all disks by set."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "list",
    cls=CliCommand,
    examples=(
        ("disks", "all sets, and the disks that are plugged in"),
        ("disks list --json", "the same, for a program"),
    ),
)
@click.argument("name", metavar="SET", required=False)
@pass_terminal
def list_disks(terminal: Terminal, name: str | None) -> int:
    """All disks by set: the age of their copies, where they are, who is late (the usual command)."""
    from orchestrator.app.disk_book import list_sets
    from orchestrator.views.disks import sets_lines, sets_value

    now = compose.now()
    sets = list_sets(terminal, [name] if name is not None else [], now)
    terminal.answer(sets_value(sets), lambda: sets_lines(sets, now))
    return 0


COMMAND = list_disks
