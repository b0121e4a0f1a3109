"""`poolferry notices …`: messages that were sent."""

import click

from orchestrator.cli.terminal.options import DefaultCommandGroup


@click.group(
    "notices",
    cls=DefaultCommandGroup,
    package=__name__,
    section="looking closer",
    short_help="What was sent to whom, and what is not delivered yet.",
)
def notices() -> None:
    """Notices: what was sent to whom, and what is not delivered yet."""


COMMAND = notices
