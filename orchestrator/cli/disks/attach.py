"""`poolferry disks attach`: attach a disk to inspect it."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "attach",
    cls=CliCommand,
    examples=(
        ("disks attach red", "mount the disk, or import its pool, and keep it there"),
        ("disks attach red --json", "the same, for a program"),
    ),
)
@click.argument("disk")
@pass_terminal
def attach(terminal: Terminal, disk: str) -> int:
    """Attach a disk and leave it so, to look at it or to restore from it; `disks eject` lets it go."""
    from orchestrator.app.disk_setup import attach_disk

    places = dict(attach_disk(terminal, disk))
    lines = [f"{name} is at {place}" for name, place in places.items()]
    again = terminal.repeat(f"disks eject {disk}")
    terminal.answer({"disk": disk, "places": places}, [*lines, f"do not unplug it before: {again}"])
    return 0


COMMAND = attach
