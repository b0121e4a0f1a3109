"""`poolferry run`: copy, verify, record."""

from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import ALLOW, ASIDE, CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "run",
    cls=CliCommand,
    examples=(
        ("run photos", "one job, now"),
        ("run --due", "what is due by the jobs' own schedules, for cron or a timer"),
    ),
    section="every day",
)
@click.argument("job", nargs=-1, shell_complete=complete_job_name)
@ALLOW
@ASIDE
@click.option(
    "--due",
    "--owed",
    "only_due",
    is_flag=True,
    help="only what is due now by the jobs' own schedules; for a timer, without the daemon (--owed: its name before)",
)
@click.option("--why", default=None, hidden=True, metavar="TEXT", help="what the run is recorded to be for")
@click.option("--scheduled", is_flag=True, hidden=True, help="the daemon starts it, no person")
@pass_terminal
def run(
    terminal: Terminal,
    job: Sequence[str],
    allow: Sequence[str],
    aside: bool,
    only_due: bool,
    why: str | None,
    scheduled: bool,
) -> int:
    """Run jobs, one after the other: copy, verify, record."""
    if not job and not only_due:
        raise click.UsageError("Missing argument 'JOB...'.")
    from orchestrator.app.dry_run import allowed_guards
    from orchestrator.cli.terminal.runs import run_and_show

    allowed = allowed_guards(terminal, job, (*allow, "aside") if aside else allow)
    return run_and_show(terminal, job, why=why, allowed=allowed, only_due=only_due, scheduled=scheduled)


COMMAND = run
