"""`poolferry plan`: the plan of a run."""

from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import ALLOW, ASIDE, CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal, exit_code


@click.command(
    "plan",
    cls=CliCommand,
    examples=(
        ("plan photos", "what a run would do now, with its commands"),
        ("plan photos --verbose", "with whole scripts"),
    ),
    section="every day",
    short_help="Look and decide; change nothing.",
)
@click.argument("job", shell_complete=complete_job_name)
@ALLOW
@ASIDE
@pass_terminal
def plan(terminal: Terminal, job: str, allow: Sequence[str], aside: bool) -> int:
    """Look and decide: every command, why, and what would be destroyed. Changes nothing."""
    from orchestrator.app.dry_run import allowed_guards, plan_run
    from orchestrator.domain.plan import Refusal
    from orchestrator.views.plan import dry_run_lines, dry_run_value

    allowed = allowed_guards(terminal, (job,), (*allow, "aside") if aside else allow)
    found = plan_run(terminal, job, allowed=allowed)
    parts = (job, found.decision, found.removes, found.forecast)
    terminal.answer(dry_run_value(*parts), dry_run_lines(*parts, verbose=terminal.verbose))
    return exit_code([found.decision.outcome]) if isinstance(found.decision, Refusal) else 0


COMMAND = plan
