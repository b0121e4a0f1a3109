"""`poolferry resume`: resume a paused job."""

from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "resume",
    cls=CliCommand,
    examples=(("resume photos", "run the job at its times again"), ("resume photos music", "several jobs")),
    section="every day",
    short_help="Let a job run again.",
)
@click.argument("job", nargs=-1, required=True, shell_complete=complete_job_name)
@pass_terminal
def resume(terminal: Terminal, job: Sequence[str]) -> int:
    """Let paused jobs run again."""
    from orchestrator.app.schedule_report import resume_jobs

    rested = resume_jobs(terminal, job)
    lines = [f"{name}: runs again" if was else f"{name}: did not rest" for name, was in rested.items()]
    terminal.answer({"resumed": [name for name, was in rested.items() if was]}, lines)
    return 0


COMMAND = resume
