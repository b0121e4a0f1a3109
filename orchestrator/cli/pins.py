"""`poolferry pins`: holds and bookmarks that keep snapshots on the pools."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal, exit_code


@click.command(
    "pins",
    cls=CliCommand,
    examples=(
        ("pins", "everything that poolferry keeps on sources, and why"),
        ("pins --job photos --let-go", "drop what no job of that pool needs any more"),
    ),
    section="looking closer",
    short_help="Holds and bookmarks of ours, and which job needs them.",
)
@click.option("--job", metavar="JOB", shell_complete=complete_job_name, help="only the pools of this job")
@click.option("--let-go", is_flag=True, help="release and drop those that no job needs any more")
@pass_terminal
def pins(terminal: Terminal, job: str | None, *, let_go: bool) -> int:
    """Every hold and bookmark of ours: for which pool, why, how much space it keeps, and whether a job still needs it.

    Without --let-go it shows what that would do, and does nothing.
    """
    from orchestrator.app.pins import release_pins, survey_pins
    from orchestrator.views.holds import pins_lines, pins_value

    found = survey_pins(terminal, job)
    reports = release_pins(terminal, found) if let_go else ()
    again = terminal.repeat("pins --let-go")
    lines = pins_lines(found.pins, found.steps, let_go=let_go, now=compose.now(), again=again)
    terminal.answer(pins_value(found.pins, found.steps, reports), lines)
    return exit_code(report.outcome for report in reports)


COMMAND = pins
