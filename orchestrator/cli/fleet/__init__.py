"""`poolferry fleet …`: many hosts and their centre."""

import click

from orchestrator.cli.terminal.options import CliGroup


@click.group(
    "fleet",
    cls=CliGroup,
    package=__name__,
    section="looking closer",
    short_help="Many hosts, and the centre that they tell what they did.",
)
def fleet() -> None:
    """Many hosts, and the PostgreSQL that they tell what they did. No run ever waits for it."""


COMMAND = fleet
