"""`poolferry disks lost`: a disk is gone."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "lost",
    cls=CliCommand,
    examples=(
        ("disks lost red", "nobody waits for the disk any more"),
        ("disks lost red --json", "the same, for a program"),
    ),
)
@click.argument("disk")
@pass_terminal
def lost(terminal: Terminal, disk: str) -> int:
    """A disk is gone: it is no longer expected, and its copies no longer count."""
    from orchestrator.app.disk_book import stop_expecting

    stop_expecting(terminal, disk, "lost")
    terminal.answer(
        {"disk": disk, "standing": "lost"}, [f"{disk}: it is no longer expected, and its copies no longer count"]
    )
    return 0


COMMAND = lost
