"""`poolferry restore run`: restore data and verify them."""

from typing import Any

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal, restore_options, restore_request
from orchestrator.cli.terminal.screen import Terminal, exit_code


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
    from orchestrator.app.restore import run_restore
    from orchestrator.domain.run_values import report_value
    from orchestrator.views.restore import next_base_lines, next_base_values

    end = run_restore(terminal, restore_request(**words))
    if end.links and not terminal.quiet:
        terminal.show(["the next runs:", *next_base_lines(end.links)])
    chains = {} if end.links is None else {"chains": next_base_values(end.links)}
    terminal.answer_json(lambda: {**report_value(end.report), **chains})
    return exit_code([end.report.outcome])


COMMAND = run
