"""`poolferry show`: one run."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "show",
    cls=CliCommand,
    examples=(
        ("show 42", "all of run 42: attempts, commands, answers"),
        ("show last --follow", "watch the run that goes on: steps, bytes, speed, time left"),
        ("show 42 --json", "the same, for a program"),
    ),
    section="every day",
    short_help="One run: steps, commands, errors.",
)
@click.argument("run", shell_complete=complete_job_name)
@click.option(
    "-f", "--follow", is_flag=True, help="watch it until it ends, and exit as it does; Ctrl-C only stops watching"
)
@pass_terminal
def show(terminal: Terminal, run: str, *, follow: bool) -> int:
    """One run with its attempts, steps, commands and errors. RUN: its number, a job's name for its newest run, or last."""
    from orchestrator.app.past import show_run
    from orchestrator.views.run_history import run_details_lines, run_details_value

    if follow:
        from orchestrator.cli.terminal.watch import follow_and_show

        return follow_and_show(terminal, run)
    found = show_run(terminal, run)
    value = run_details_value(found.story, found.drilled)
    terminal.answer(
        value,
        lambda: run_details_lines(found.story, now=compose.now(), drilled=found.drilled, verbose=terminal.verbose),
    )
    return 0


COMMAND = show
