"""`poolferry fleet forget`: a host's rows leave the centre."""

import click

from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "forget",
    cls=CliCommand,
    examples=(
        ("fleet forget web-1", "remove a host that will not come back"),
        ("fleet forget web-1 --centre postgresql:///poolferry", "at a centre that poolferry.toml does not name"),
    ),
)
@click.argument("host")
@centre_option
@pass_terminal
def forget(terminal: Terminal, host: str, centre: str | None) -> int:
    """Remove HOST and all that it sent from the centre. On the host itself nothing changes."""
    from orchestrator.app.fleet_members import forget

    forget(terminal, host, centre=centre)
    terminal.answer({"host": host}, [f"{host}: forgotten"])
    return 0


COMMAND = forget
