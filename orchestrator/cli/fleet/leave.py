"""`poolferry fleet leave`: this host is no longer one of a fleet."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "leave",
    cls=CliCommand,
    examples=(
        ("fleet leave", "send no more; what was sent stays at the centre"),
        ("fleet leave --json", "the same, for a script"),
    ),
)
@pass_terminal
def leave(terminal: Terminal) -> int:
    """Leave the centre: this host's role there ends, and its password is removed. What it sent stays."""
    from orchestrator.app.fleet_members import leave

    host = leave(terminal)
    terminal.answer({"host": host}, [f"{host} has left; remove [fleet] from poolferry.toml if it is not to join again"])
    return 0


COMMAND = leave
