"""`poolferry fleet permits`: who holds a permit, and who waits for one."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "permits",
    cls=CliCommand,
    examples=(
        ("fleet permits", "each limit with what is lent of it, and the queue"),
        ("fleet permits --json", "the same, for a program"),
    ),
)
@centre_option
@pass_terminal
def permits(terminal: Terminal, centre: str | None) -> int:
    """The limits of the centre, the runs that hold a permit, and those that wait, in the order of asking."""
    from orchestrator.app.fleet_limits import survey_permits
    from orchestrator.views.permits import permits_lines, permits_value

    found, now = survey_permits(terminal, centre=centre), compose.now()
    terminal.answer(permits_value(found), lambda: permits_lines(found, now))
    return 0


COMMAND = permits
