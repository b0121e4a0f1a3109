"""`poolferry points …`: restore points."""

import click

from orchestrator.cli.terminal.options import GroupWithUsual


@click.group(
    "points",
    cls=GroupWithUsual,
    package=__name__,
    section="restore",
    short_help="Restore points, and when each was last read.",
)
def points() -> None:
    """Restore points, where each lies, and when it was last read again."""


COMMAND = points
