"""`poolferry fleet status`: what needs a person, over all hosts."""

import click

from orchestrator import compose
from orchestrator.cli.terminal import screen
from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal

_LATE = 4


@click.command(
    "status",
    cls=CliCommand,
    examples=(
        ("fleet status", "how many hosts and jobs are in which state, and what needs a person"),
        ("fleet status --json", "the same, for a program; exit 4 when something is wrong"),
    ),
)
@centre_option
@pass_terminal
def status(terminal: Terminal, centre: str | None) -> int:
    """Show the whole fleet: its numbers, silent hosts, clocks that are wrong, jobs that are late or failing.

    The centre judges by its own clock, also while a host is silent. On a host that has joined, only that host is shown.
    """
    from orchestrator.app.fleet_overview import fleet_status
    from orchestrator.views.fleet import fleet_lines, fleet_value

    found = fleet_status(terminal, centre)
    if terminal.json:
        screen.print_json(fleet_value(found))
    else:
        screen.print_painted_lines(fleet_lines(found, compose.now(), screen.paint))
    return 0 if found.well else _LATE


COMMAND = status
