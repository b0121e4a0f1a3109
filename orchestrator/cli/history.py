"""`poolferry history`: the newest runs."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "history",
    cls=CliCommand,
    examples=(
        ("history photos --limit 50", "the last 50 runs of one job"),
        ("history --json", "the last 20 runs of all jobs, for a program"),
    ),
    section="every day",
)
@click.argument("job", required=False, shell_complete=complete_job_name)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="how many runs at most")
@pass_terminal
def history(terminal: Terminal, job: str | None, limit: int) -> int:
    """The newest runs, of one job or of all."""
    from orchestrator.app.past import list_runs
    from orchestrator.views.run_history import run_value, runs_lines

    runs = list_runs(terminal, job, limit)
    terminal.answer({"runs": [run_value(each) for each in runs]}, runs_lines(runs, now=compose.now(), job=job))
    return 0


COMMAND = history
