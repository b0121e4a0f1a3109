"""`poolferry points …`: restore points."""

import click

from orchestrator.cli.terminal.options import DefaultCommandGroup


@click.group(
    "points",
    cls=DefaultCommandGroup,
    package=__name__,
    section="restore",
    short_help="Restore points, and when each was last read.",
)
def points() -> None:
    """Restore points, where each lies, and when it was last read again."""


COMMAND = points
