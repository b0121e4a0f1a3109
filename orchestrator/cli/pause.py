"""`poolferry pause`: pause a job."""

from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import CliCommand, complete_job_name, pass_terminal, read_span
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "pause",
    cls=CliCommand,
    examples=(
        ("pause photos --for 3d --why 'the disk is in repair'", "let a job rest for three days"),
        ("pause photos music", "several jobs, until they are resumed"),
    ),
    section="every day",
    short_help="Let a job rest.",
)
@click.argument("job", nargs=-1, required=True, shell_complete=complete_job_name)
@click.option("--for", "span", default=None, metavar="SPAN", help="for so long, such as 3d; else until it is resumed")
@click.option("--why", default="", metavar="TEXT", help="what to remember")
@pass_terminal
def pause(terminal: Terminal, job: Sequence[str], span: str | None, why: str) -> int:
    """Begin no run of these jobs; what runs goes on, and one run afterwards makes up for what comes due."""
    from orchestrator.app.local_clock import local_calendar
    from orchestrator.app.schedule_report import pause_jobs
    from orchestrator.views.format import format_iso

    try:
        names, until = pause_jobs(terminal, job, read_span(span), why)
    except OverflowError as error:
        raise click.UsageError(f"--for {span}: expected {error}") from None
    told = f" until {local_calendar().show(until)}" if until else f" until `{terminal.repeat(f'resume {names[0]}')}`"
    value = {"paused": list(names), "until": format_iso(until), "why": why}
    terminal.answer(value, [f"{name}: rests{told}" for name in names])
    return 0


COMMAND = pause
