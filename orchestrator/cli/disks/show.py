"""`poolferry disks show`: one disk."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "show",
    cls=CliCommand,
    examples=(
        ("disks show red", "the visits of a disk, its health, and what it holds"),
        ("disks show red --json", "the same, for a program"),
    ),
)
@click.argument("disk")
@pass_terminal
def show(terminal: Terminal, disk: str) -> int:
    """All that is known of one disk: its visits, and where it was."""
    from orchestrator.app.disk_book import show_disk
    from orchestrator.views.disks import disk_lines, disk_value

    now = compose.now()
    found = show_disk(terminal, disk, now)
    terminal.answer(disk_value(found), lambda: disk_lines(found, now))
    return 0


COMMAND = show
