"""`poolferry import`: job files from the settings of other programs."""

import click

from orchestrator.cli.terminal.options import CliGroup


@click.group(
    "import",
    cls=CliGroup,
    package="orchestrator.cli.import_",
    section="set-up",
    short_help="Write job files from other programs' settings.",
)
def import_() -> None:
    """Write job files from the settings of another program.

    Changes nothing of that program, overwrites nothing, and lists with its line what could not be carried over: then the exit code
    is 1.
    """


COMMAND = import_
