"""`poolferry fleet pools`: the watched pools of all hosts."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "pools",
    cls=CliCommand,
    examples=(
        ("fleet pools", "each pool that a job looks at: its health, fill and last scrub; what needs a person first"),
        ("fleet pools --host web-1 --json", "those of one host, for a program"),
    ),
)
@click.option("--host", metavar="HOST", help="only of this host")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(min=1), help="how many at most")
@centre_option
@pass_terminal
def pools(terminal: Terminal, host: str | None, limit: int, centre: str | None) -> int:
    """List the pools that jobs of engine = "pool" look at, each as its newest look found it. A state is the host's word, and `late`
    the centre's, too.
    """
    from orchestrator.app.fleet_overview import fleet_pools
    from orchestrator.views.fleet import pool_lines, pool_value

    found = fleet_pools(terminal, centre, host=host, limit=limit)
    terminal.answer({"pools": [pool_value(each) for each in found]}, lambda: pool_lines(found, compose.now()))
    return 0


COMMAND = pools
