"""`poolferry disks readopt`: accept a disk as ours again."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "readopt",
    cls=CliCommand,
    examples=(
        ("disks readopt red", "accept the disk as this machine's again"),
        ("disks readopt red --json", "the same, for a program"),
    ),
)
@click.argument("disk")
@pass_terminal
def readopt(terminal: Terminal, disk: str) -> int:
    """Take a disk that is plugged in for the one of that name, though its marker says otherwise. Erases nothing."""
    from orchestrator.app.disk_setup import readopt_disk

    told = readopt_disk(terminal, disk)
    terminal.answer({"disk": disk, "state": told.state.value, "why": told.says, "hint": told.hint}, [told.says])
    return 0 if not told.hint else 3


COMMAND = readopt
