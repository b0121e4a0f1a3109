"""`poolferry fleet invite`: the right to join once."""

import click

from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "invite",
    cls=CliCommand,
    examples=(
        ("fleet invite web-1", "print the command that joins the host web-1, good for a day and for once"),
        ("fleet invite web-1 --again", "the same for a host that was made anew: what it sent before stays"),
    ),
)
@click.argument("host")
@click.option("--address", metavar="ADDRESS", help="the centre's address as that host reaches it")
@click.option("--again", is_flag=True, help="also when it has joined: its present password ends")
@centre_option
@pass_terminal
def invite(terminal: Terminal, host: str, address: str | None, centre: str | None, *, again: bool) -> int:
    """Invite HOST to the centre, and print the one command that joins it."""
    from orchestrator.app.fleet_members import invite

    made = invite(terminal, host, centre=centre, address=address, again=again)
    terminal.answer({"host": made.host, "command": made.command}, [made.command])
    return 0


COMMAND = invite
