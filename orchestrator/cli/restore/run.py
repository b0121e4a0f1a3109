"""`poolferry restore run`: restore data and verify them."""

from typing import Any

import click

from orchestrator.cli.terminal import runs
from orchestrator.cli.terminal.options import CliCommand, pass_terminal, restore_options, restore_request
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "run",
    cls=CliCommand,
    examples=(
        ("restore run photos --path 2026 --to /srv/photos/2026", "one folder, to its place"),
        ("restore run photos --at '2026-11-03 02:31' --to /tmp/back", "all of it as it was then"),
        ("restore run --from /backup/photos --to /srv/photos", "without any configuration"),
    ),
)
@restore_options
@pass_terminal
def run(terminal: Terminal, /, **words: Any) -> int:
    """Restore data and read it again. The same command continues after an interruption."""
    return runs.restore_and_show(terminal, restore_request(**words))


COMMAND = run
