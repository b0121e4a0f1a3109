"""`poolferry points list`: restore points as a table."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "list",
    cls=CliCommand,
    examples=(
        ("points photos", "the restore points of a job at each place"),
        ("points list photos --json", "the same, for a program"),
    ),
)
@click.argument("job", required=False, shell_complete=complete_job_name)
@click.option("--look", is_flag=True, help="look at the targets themselves, not at what history remembers of them")
@pass_terminal
def list_points(terminal: Terminal, job: str | None, *, look: bool) -> int:
    """The restore points of one job or of all (the usual command: `points JOB` is the same)."""
    from orchestrator.app.past import list_points
    from orchestrator.views.run_history import points_lines, points_value

    table = list_points(terminal, [job] if job else [], look=look)
    terminal.answer(points_value(table), lambda: points_lines(table, now=compose.now()))
    return 0


COMMAND = list_points
