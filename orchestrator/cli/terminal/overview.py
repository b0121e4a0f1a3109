"""The state of each job as the terminal shows it."""

from collections.abc import Sequence

from orchestrator import compose
from orchestrator.app.job_status import survey_jobs
from orchestrator.cli.terminal import screen
from orchestrator.cli.terminal.screen import Terminal
from orchestrator.domain.errors import HistoryError
from orchestrator.views.status import overview_lines, overview_value, unknown_job_lines, unknown_job_value

_LATE = 4


def show_overview(terminal: Terminal, jobs: Sequence[str]) -> int:
    """Show how each job stands, or these; return the exit code."""
    now = compose.now()
    try:
        found = survey_jobs(terminal, jobs, now)
    except HistoryError as error:
        return _show_jobs_alone(terminal, jobs, error)
    if terminal.json:
        screen.print_json(overview_value(found, now))
    else:
        screen.print_painted_lines(overview_lines(found, now, screen.paint))
    return 0 if found.well else _LATE


def _show_jobs_alone(terminal: Terminal, names: Sequence[str], error: HistoryError) -> int:
    """Show which jobs there are, where no history says how they stand, and the error; return the exit code."""
    from orchestrator.cli.terminal.errors import print_known_error

    jobs = terminal.jobs(names)
    if not terminal.json:
        screen.print_lines(unknown_job_lines(jobs))
    return print_known_error(terminal, error, jobs=[unknown_job_value(job) for job in jobs])
