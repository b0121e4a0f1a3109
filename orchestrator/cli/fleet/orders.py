"""`poolferry fleet orders`: what became of orders."""

import click

from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "orders",
    cls=CliCommand,
    examples=(
        ("fleet orders", "the newest orders, with what the hosts say of them"),
        ("fleet orders --json", "the same, for a program"),
    ),
)
@click.option("-n", "--limit", type=click.IntRange(1, 10_000), default=30, show_default=True, help="how many")
@centre_option
@pass_terminal
def orders(terminal: Terminal, limit: int, centre: str | None) -> int:
    """The newest orders to hosts, newest first: asked, taken, begun, and how they ended."""
    from orchestrator.app.fleet_orders import list_orders
    from orchestrator.views.orders import order_lines, order_value

    found = list_orders(terminal, limit, centre=centre)
    terminal.answer({"orders": [order_value(each) for each in found]}, lambda: order_lines(found))
    return 0


COMMAND = orders
