"""`poolferry disks retire`: a disk takes no more copies."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "retire",
    cls=CliCommand,
    examples=(
        ("disks retire red", "take the disk out of its set; nothing on it changes"),
        ("disks retire red --json", "the same, for a program"),
    ),
)
@click.argument("disk")
@pass_terminal
def retire(terminal: Terminal, disk: str) -> int:
    """A disk takes no more copies; what is on it stays, and it is no longer expected."""
    from orchestrator.app.disk_book import stop_expecting

    stop_expecting(terminal, disk, "retired")
    terminal.answer({"disk": disk, "standing": "retired"}, [f"{disk}: takes no more copies; what is on it stays"])
    return 0


COMMAND = retire
