"""`poolferry config …`: about the configuration's files."""

import click

from orchestrator.cli.terminal.options import CliGroup


@click.group("config", cls=CliGroup, package=__name__, section="set-up")
def config() -> None:
    """About the configuration's files."""


COMMAND = config
