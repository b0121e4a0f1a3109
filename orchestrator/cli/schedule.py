"""`poolferry schedule`: when jobs run."""

from collections.abc import Sequence

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "schedule",
    cls=CliCommand,
    examples=(("schedule", "what each schedule means, and its next runs"), ("schedule photos", "of one job")),
    section="every day",
    short_help="When each job runs, and what is due.",
)
@click.argument("job", nargs=-1, shell_complete=complete_job_name)
@pass_terminal
def schedule(terminal: Terminal, job: Sequence[str]) -> int:
    """The meaning of each schedule, its next three runs in local time, the run that is due now, and why it waits."""
    from orchestrator.app.schedule_report import survey_schedule
    from orchestrator.views.schedule import schedule_lines, schedule_value

    found = survey_schedule(terminal, job, compose.now())
    terminal.answer(schedule_value(found), lambda: schedule_lines(found))
    return 0


COMMAND = schedule
