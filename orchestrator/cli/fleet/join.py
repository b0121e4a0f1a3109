"""`poolferry fleet join`: this host becomes one of a fleet."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "join",
    cls=CliCommand,
    examples=(
        ("fleet join postgresql://backups.example.org/fleet --token TOKEN", "as `fleet invite` printed it"),
        ("fleet join postgresql://backups.example.org:5433/fleet --token TOKEN", "a centre at another port"),
    ),
)
@click.argument("address")
@click.option("--token", required=True, metavar="TOKEN", help="as `fleet invite` printed it; it is used up by this")
@pass_terminal
def join(terminal: Terminal, address: str, token: str) -> int:
    """Join the centre at ADDRESS: from then on the daemon sends it what this host's history knows.

    The token is exchanged for a password that only this host has, kept in the state directory.
    """
    from orchestrator.app.fleet_members import join

    identity = join(terminal, address, token)
    lines = [
        f"joined as {identity.host}; this host's daemon tells the centre once it is restarted: `systemctl restart poolferry`",
        "where there is no daemon, call `poolferry fleet send` each day",
    ]
    terminal.answer({"host": identity.host, "role": identity.role}, lines)
    return 0


COMMAND = join
