"""`poolferry fleet records`: what hosts told beside their runs."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, centre_option, pass_terminal
from orchestrator.cli.terminal.screen import Terminal
from orchestrator.domain.ledger import SUBJECTS


@click.command(
    "records",
    cls=CliCommand,
    examples=(
        ("fleet records drill", "the newest restore tests of all hosts"),
        ("fleet records verdict --host web-1", "what web-1 found when it read copies again"),
        ("fleet records disk --json", "each removable disk, with all that is known of it"),
    ),
)
@click.argument("subject", type=click.Choice([each for each in SUBJECTS if each != "run"]))
@click.option("--host", metavar="HOST", help="only of this host")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(min=1), help="how many at most")
@centre_option
@pass_terminal
def records(terminal: Terminal, subject: str, host: str | None, limit: int, centre: str | None) -> int:
    """List what hosts told of SUBJECT, the newest first: steps of runs, restore points, verdicts of readings, drills (restore tests),
    problems, disks with their visits, notices. Runs have a command of their own: `poolferry fleet runs`.
    """
    from orchestrator.app.fleet_overview import fleet_records
    from orchestrator.views.fleet import record_lines, record_value

    found = fleet_records(terminal, centre, subject=subject, host=host, limit=limit)
    terminal.answer({"records": [record_value(each) for each in found]}, lambda: record_lines(found, compose.now()))
    return 0


COMMAND = records
