"""The state of each job as the terminal shows it."""

from collections.abc import Sequence

from orchestrator import compose
from orchestrator.app.job_status import survey_jobs
from orchestrator.cli.terminal import screen
from orchestrator.cli.terminal.screen import Terminal
from orchestrator.views.status import overview_lines, overview_value

_LATE = 4


def show_overview(terminal: Terminal, jobs: Sequence[str]) -> int:
    """Show how each job stands, or these; return the exit code."""
    now = compose.now()
    found = survey_jobs(terminal, jobs, now)
    if terminal.json:
        screen.print_json(overview_value(found, now))
    else:
        screen.print_painted_lines(overview_lines(found, now, screen.paint))
    return 0 if found.well else _LATE
