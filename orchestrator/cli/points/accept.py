"""`poolferry points accept`: a person knows of damage or loss, and keeps what is there."""

import click

from orchestrator.cli.terminal.options import POINT, CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "accept",
    cls=CliCommand,
    examples=(
        ("points accept photos --point 2026-11-03", "keep a damaged point as it is; status forgets the damage"),
        ("points accept photos", "accept that points of the job are gone, or that files at its source are rotten"),
    ),
)
@click.argument("job", shell_complete=complete_job_name)
@POINT
@pass_terminal
def accept(terminal: Terminal, job: str, point: str | None) -> int:
    """You know that a point or the source is damaged, or that points are gone: `status` no longer fails for it.

    Nothing is changed on the target, and a damaged point stays marked as damaged. Without --point: points that are gone, and
    files that are rotten at the source.
    """
    from orchestrator.app.accept_problems import accept_problems
    from orchestrator.views.status import accepted_lines, accepted_value

    accepted = accept_problems(terminal, job, point)
    terminal.answer(accepted_value(accepted), accepted_lines(accepted))
    return 0


COMMAND = accept
