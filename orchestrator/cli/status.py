"""`poolferry status`: the state of each job."""

import sys
from collections.abc import Sequence

import click

from orchestrator import compose
from orchestrator.cli.terminal import screen
from orchestrator.cli.terminal.options import CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "status",
    cls=CliCommand,
    examples=(
        ("status", "the newest verified copy of each job, and what to do"),
        ("status --watch", "drawn again every two seconds, with the progress of what runs"),
        ("status --json", "the same, for a program; exit 4 when something is wrong"),
    ),
    section="every day",
    short_help="How each job stands.",
)
@click.argument("job", nargs=-1, shell_complete=complete_job_name)
@click.option("-w", "--watch", is_flag=True, help="draw it again every two seconds, until Ctrl-C")
@pass_terminal
def status(terminal: Terminal, job: Sequence[str], *, watch: bool) -> int:
    """Show the state of each job: the age of its newest verified copy against its limit, and its next run in local time.

    A run that goes on is shown with its step, its bytes, its speed and the time left.
    """
    if watch:
        return _watch(terminal, job)
    from orchestrator.cli.terminal.overview import show_overview

    return show_overview(terminal, job)


def _watch(terminal: Terminal, job: Sequence[str]) -> int:
    from orchestrator.app.job_status import survey_jobs
    from orchestrator.cli.terminal.watch import watch
    from orchestrator.views.status import overview_lines

    if terminal.json or not sys.stdout.isatty():
        raise click.UsageError("--watch draws on a terminal; a program calls `poolferry status --json` again and again")

    def draw() -> Sequence[str]:
        now = compose.now()
        return [
            f"poolferry, {now.astimezone():%H:%M:%S}",
            *overview_lines(survey_jobs(terminal, job, now), now, screen.paint),
        ]

    return watch(draw)


COMMAND = status
