"""`poolferry promises`: what was read again of the copies, and what becomes of the promises."""

from collections.abc import Sequence

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "promises",
    cls=CliCommand,
    examples=(
        (
            "promises",
            "for each copy the age of the byte that was not read for longest, and until when the rest will be read",
        ),
        ("promises photos --json", "the same of one job, for a program"),
    ),
    section="restore",
    short_help="What was read again, and until when the rest is.",
)
@click.argument("job", nargs=-1, shell_complete=complete_job_name)
@pass_terminal
def promises(terminal: Terminal, job: Sequence[str]) -> int:
    """Show what was read again of the copies, and what becomes of read-all-within in [verify]; of all jobs without a name. Nothing is read now."""
    from orchestrator.app.read_status import survey_reading
    from orchestrator.views.read_status import read_row, reading_lines, reading_value

    now, known = compose.now(), terminal.configuration()
    named = {known.job(name).name for name in job}
    found = [each for each in survey_reading(terminal, now) if not named or each.job in named]
    rows = [
        read_row(
            each.job, each.place, each.status, limit=each.limit, promised=each.promised, now=now, promise=each.promise
        )
        for each in found
    ]
    values = [reading_value(row, each.status, each.promise, each.limit) for row, each in zip(rows, found, strict=True)]
    terminal.answer({"reading": values}, lambda: reading_lines(rows))
    return 0


COMMAND = promises
