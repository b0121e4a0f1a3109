"""`poolferry fleet runs`: runs of all hosts."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal
from orchestrator.domain.run import Outcome


@click.command(
    "runs",
    cls=CliCommand,
    examples=(
        ("fleet runs", "the newest runs of all hosts"),
        ("fleet runs --outcome failed", "the newest failures"),
        ("fleet runs --host web-1 --job photos", "those of one job"),
    ),
)
@click.option("--host", metavar="HOST", help="only of this host")
@click.option("--job", metavar="JOB", help="only of jobs of this name")
@click.option("--outcome", type=click.Choice([each.value for each in Outcome]), help="only these")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="how many at most")
@centre_option
@pass_terminal
def runs(
    terminal: Terminal, host: str | None, job: str | None, outcome: str | None, limit: int, centre: str | None
) -> int:
    """List the newest runs of all hosts. Commands and plans of a run stay at its host: `poolferry show RUN` there."""
    from orchestrator.app.fleet_overview import fleet_runs
    from orchestrator.views.fleet import run_lines, run_value

    found = fleet_runs(terminal, centre, host=host, job=job, outcome=outcome, limit=limit)
    terminal.answer({"runs": [run_value(each) for each in found]}, lambda: run_lines(found, compose.now()))
    return 0


COMMAND = runs
