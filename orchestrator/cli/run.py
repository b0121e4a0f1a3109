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
        ("run --all", "all jobs, but those that are paused"),
        ("run photos --dry-run", "only what it would do, as `plan photos`"),
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
@click.option("--all", "every", is_flag=True, help="all jobs, one after the other; paused ones rest")
@click.option("-n", "--dry-run", is_flag=True, help="change nothing: show the plan of each job, as `plan` does")
@click.option("--why", default=None, hidden=True, metavar="TEXT", help="what the run is recorded to be for")
@click.option("--scheduled", is_flag=True, hidden=True, help="the daemon starts it, no person")
@pass_terminal
def run(
    terminal: Terminal,
    job: Sequence[str],
    allow: Sequence[str],
    aside: bool,
    only_due: bool,
    every: bool,
    dry_run: bool,
    why: str | None,
    scheduled: bool,
) -> int:
    """Run jobs, one after the other: copy, verify, record."""
    if every and (job or only_due):
        raise click.UsageError("--all takes no jobs, and no --due")
    if not job and not only_due and not every:
        raise click.UsageError("Missing argument 'JOB...': name jobs, or say --all.")
    if dry_run and only_due:
        raise click.UsageError("--dry-run needs jobs, or --all; `poolferry schedule` shows what is due")
    names = _all_jobs(terminal) if every else job
    guards = (*allow, "aside") if aside else allow
    if dry_run:
        from orchestrator.cli.terminal.plans import plan_and_show

        return plan_and_show(terminal, names, guards)
    from orchestrator.app.dry_run import allowed_guards
    from orchestrator.cli.terminal.runs import run_and_show

    return run_and_show(
        terminal,
        names,
        why=why,
        allowed=allowed_guards(terminal, names, guards),
        only_due=only_due,
        scheduled=scheduled,
    )


def _all_jobs(terminal: Terminal) -> Sequence[str]:
    """Return the names of all jobs that do not rest. Raises: UsageError when there is none: no job at all would mean all due ones."""
    from orchestrator.app.run_jobs import all_job_names

    if names := all_job_names(terminal):
        return names
    raise click.UsageError("--all: there is no job to run")


COMMAND = run
