"""`poolferry plan`: the plan of a run."""

from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import ALLOW, ASIDE, CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "plan",
    cls=CliCommand,
    examples=(
        ("plan photos", "what a run would do now, with its commands"),
        ("plan photos --files", "with the names of the files that it would copy or remove"),
        ("plan photos --verbose", "with whole scripts"),
    ),
    section="every day",
    short_help="Look and decide; change nothing.",
)
@click.argument("job", shell_complete=complete_job_name)
@ALLOW
@ASIDE
@click.option("--files", is_flag=True, help="name the files that a run would copy or remove; with --json all of them")
@pass_terminal
def plan(terminal: Terminal, job: str, allow: Sequence[str], aside: bool, *, files: bool) -> int:
    """Look and decide: every command, why, and what would be destroyed. Changes nothing."""
    from orchestrator.cli.terminal.plans import plan_and_show

    return plan_and_show(terminal, (job,), (*allow, "aside") if aside else allow, files=files)


COMMAND = plan
