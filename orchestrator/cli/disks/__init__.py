"""`poolferry disks …`: removable disks and rotation sets."""

import click

from orchestrator.cli.terminal.options import DefaultCommandGroup


@click.group(
    "disks",
    cls=DefaultCommandGroup,
    package=__name__,
    section="disks",
    short_help="Removable disks: who is expected, late, and where.",
)
def disks() -> None:
    """Removable disks and rotation sets: which one to bring, who is overdue, and where each is."""


COMMAND = disks
