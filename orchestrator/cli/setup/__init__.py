"""`poolferry setup …`: installation on this machine."""

import click

from orchestrator.cli.terminal.options import CliGroup


@click.group(
    "setup",
    cls=CliGroup,
    package=__name__,
    section="set-up",
    short_help="Install what the machine needs beside poolferry.",
)
def setup() -> None:
    """Install what the machine needs beside poolferry itself."""


COMMAND = setup
