"""`poolferry notices list`: the newest notices."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "list",
    cls=CliCommand,
    examples=(
        ("notices", "the channels, what was sent and what waits"),
        ("notices list --json", "the same, for a program"),
    ),
)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="how many at most")
@click.option("--full", is_flag=True, help="with the text of each")
@pass_terminal
def list_notices(terminal: Terminal, limit: int, *, full: bool) -> int:
    """The newest notices, and whether each was delivered (the usual command)."""
    from orchestrator.app.notices import list_notices
    from orchestrator.views.notices import notice_lines, notice_value

    found = list_notices(terminal, limit)
    value = {"notices": [notice_value(each) for each in found]}
    terminal.answer(value, lambda: notice_lines(found, full=full, now=compose.now()))
    return 0


COMMAND = list_notices
