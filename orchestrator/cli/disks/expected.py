"""`poolferry disks expected`: which disk to plug in next."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "expected",
    cls=CliCommand,
    examples=(
        ("disks expected", "the disk to bring next, for each set"),
        ("disks expected --json", "the same, for a program"),
    ),
)
@pass_terminal
def expected(terminal: Terminal) -> int:
    """The disk to plug in next, of each set."""
    from orchestrator.app.disk_book import expect_disks
    from orchestrator.views.visits import set_status_value

    found = expect_disks(terminal, compose.now())
    lines = [each.request for each in found] or ["there is no rotation set"]
    terminal.answer({"sets": [set_status_value(each) for each in found]}, lines)
    return 0


COMMAND = expected
