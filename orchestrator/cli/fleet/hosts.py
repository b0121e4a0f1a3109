"""`poolferry fleet hosts`: all hosts of a centre."""

import click

from orchestrator import compose
from orchestrator.cli.terminal import screen
from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal
from orchestrator.domain.fleet_status import HostState


@click.command(
    "hosts",
    cls=CliCommand,
    examples=(
        ("fleet hosts", "each host, when it was seen last, and how its jobs are; silent ones first"),
        ("fleet hosts --only silent", "only those that gave no sign of life"),
        ('fleet hosts "web-*" --json', "those of a name, for a program"),
    ),
)
@click.argument("name", required=False)
@click.option("--only", type=click.Choice([each.value for each in HostState]), help="only these")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(min=1), help="how many at most")
@centre_option
@pass_terminal
def hosts(terminal: Terminal, name: str | None, only: str | None, limit: int, centre: str | None) -> int:
    """List hosts. NAME: of one, or with * for any text."""
    from orchestrator.app.fleet_overview import fleet_hosts
    from orchestrator.views.fleet import host_lines, host_value

    found = fleet_hosts(terminal, centre, state=HostState(only) if only else None, name=name, limit=limit)
    if terminal.json:
        screen.print_json({"hosts": [host_value(each) for each in found]})
    else:
        screen.print_painted_lines(host_lines(found, compose.now(), screen.paint))
    return 0


COMMAND = hosts
