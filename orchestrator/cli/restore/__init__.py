"""`poolferry restore …`: restores."""

import click

from orchestrator.cli.terminal.options import CliGroup


@click.group(
    "restore", cls=CliGroup, package=__name__, section="restore", short_help="Bring data back; overwrite nothing."
)
def restore() -> None:
    """Bring data back from a restore point. Overwrites nothing."""


COMMAND = restore
