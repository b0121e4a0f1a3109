"""`poolferry fleet init`: the schema of a centre."""

import click

from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "init",
    cls=CliCommand,
    examples=(
        ("fleet init --centre postgresql:///poolferry", "make the centre in a database of this machine"),
        ("fleet init", "bring the declared centre up to date, after poolferry was upgraded"),
    ),
)
@centre_option
@pass_terminal
def init(terminal: Terminal, centre: str | None) -> int:
    """Make the tables and the roles of a centre, or bring them up to date; what is there stays.

    The database must exist. Who does this must be allowed to make roles.
    """
    from orchestrator.app.fleet_members import make_centre

    made = make_centre(terminal, centre)
    told = f"made or upgraded: {', '.join(made.applied)}" if made.applied else "up to date"
    lines = [f"{made.centre}: {told}", *made.advice]
    terminal.answer({"centre": made.centre, "applied": list(made.applied), "advice": list(made.advice)}, lines)
    return 0


COMMAND = init
