"""`poolferry notices …`: what was told to whom."""

import click

from orchestrator.cli.terminal.options import DefaultCommandGroup


@click.group(
    "notices",
    cls=DefaultCommandGroup,
    package=__name__,
    section="looking closer",
    short_help="What was told to whom, and what waits.",
)
def notices() -> None:
    """What was told to whom, and what waits to be delivered."""


COMMAND = notices
