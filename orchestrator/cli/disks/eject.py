"""`poolferry disks eject`: release a disk."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "eject",
    cls=CliCommand,
    examples=(("disks eject red", "let go of an attached disk"), ("disks eject red --json", "the same, for a program")),
    short_help="Let go of a disk, and say when it is safe to remove.",
)
@click.argument("disk")
@pass_terminal
def eject(terminal: Terminal, disk: str) -> int:
    """Let go of a disk that is still attached, and say when it may be pulled out."""
    from orchestrator.app.disk_setup import eject_disk
    from orchestrator.views.visits import case_warning

    told = eject_disk(terminal, disk)
    safe = f"SAFE TO REMOVE: {told.disk.called}" + (f". {case_warning(told.beside)}" if told.beside else "")
    lines = [safe]
    if told.hinders:
        lines = [
            f"NOT SAFE TO REMOVE: {disk}: {told.hinders}",
            f"  what to do: {told.hint}, then: poolferry disks eject {disk}",
        ]
    value = {"disk": disk, "safe": not told.hinders, "why": told.hinders, "hint": told.hint, "beside": told.beside}
    terminal.answer(value, lines)
    return 1 if told.hinders else 0


COMMAND = eject
