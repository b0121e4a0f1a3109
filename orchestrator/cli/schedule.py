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
    from orchestrator.app.schedule_report import read_schedules, survey_schedule
    from orchestrator.domain.errors import HistoryError
    from orchestrator.views.schedule import schedule_lines, schedule_value

    now = compose.now()
    try:
        found = survey_schedule(terminal, job, now)
    except HistoryError as error:
        from orchestrator.cli.terminal.errors import print_known_error

        found = read_schedules(terminal, job, now)
        if not terminal.json:
            terminal.answer({}, lambda: schedule_lines(found))
        return print_known_error(terminal, error, **schedule_value(found))
    terminal.answer(schedule_value(found), lambda: schedule_lines(found))
    return 0


COMMAND = schedule
