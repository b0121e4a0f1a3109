"""`poolferry end`: say that a job without a file is over."""

from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "end",
    cls=CliCommand,
    examples=(
        ("end photos", "photos is over: its copies stay, and nobody is told of them any more"),
        ("end photos --undo", "tell of them again"),
    ),
    section="set-up",
    short_help="Say that a job is over.",
)
@click.argument("job", nargs=-1, required=True)
@click.option("--undo", is_flag=True, help="it is not over: its file is lost")
@pass_terminal
def end(terminal: Terminal, job: Sequence[str], undo: bool) -> int:
    """Say that jobs whose files were removed are over: nobody is told of their copies any more, which stay where they are.

    A job goes on once it has a file again; should that be lost later, it is named anew.
    """
    from orchestrator.app.ended_jobs import end_jobs

    names = end_jobs(terminal, job, undo=undo)
    told = "is not over: its copies are named until it has a file again" if undo else "is over; its copies stay"
    terminal.answer({"ended": [] if undo else list(names)}, [f"{name}: {told}" for name in names])
    return 0


COMMAND = end
