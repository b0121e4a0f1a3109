"""`poolferry evacuate`: bring what lies on a pool to the places of its jobs, and verify it there."""

import click

from orchestrator.cli.terminal.options import CliCommand, complete_pool_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "evacuate",
    cls=CliCommand,
    examples=(
        ("evacuate tank", "run each job whose source lies on the pool tank, then verify each newest copy"),
        ("evacuate tank --json", "the same, for a program"),
    ),
    section="every day",
    short_help="Copy what lies on a pool elsewhere.",
)
@click.argument("pool", shell_complete=complete_pool_name)
@click.option("--guid", default="", metavar="GUID", help="only the pool with this guid, and no other one of its name")
@click.option("--why", default=None, hidden=True, metavar="TEXT", help="what the runs are recorded to be for")
@pass_terminal
def evacuate(terminal: Terminal, pool: str, guid: str, why: str | None) -> int:
    """Run each job whose source lies on POOL, verify each newest copy, and say job by job what is whole elsewhere now.

    It copies only to the places that the job files name, and removes nothing but what the jobs' own rules let go. It exits with 5 when
    something is not whole elsewhere. A pool that was made anew under that name is not taken for the one that the jobs copied.
    """
    from orchestrator.app.evacuate_pool import evacuate_pool
    from orchestrator.cli.terminal.screen import ReportsAside
    from orchestrator.domain.command_line import quoted
    from orchestrator.domain.plan import Refusal
    from orchestrator.domain.run import EXIT_CODES, Outcome
    from orchestrator.views.evacuation import evacuation_lines, evacuation_value

    terminal.subscriber = ReportsAside(terminal)
    if guid and not guid.isdecimal():
        raise click.UsageError(f"--guid {guid}: expected a number, as `zpool get guid {quoted(pool)}` shows it")
    ended = evacuate_pool(terminal, pool, guid=int(guid) if guid else None, why=why or f"to evacuate {pool}")
    if isinstance(ended, Refusal):
        value = {
            "pool": pool,
            "outcome": "refused",
            "why": ended.why,
            "hint": ended.hint,
            "evidence": list(ended.evidence),
        }
        lines = [f"refused: {ended.why}", *(f"  {each}" for each in ended.evidence), f"  what to do: {ended.hint}"]
        terminal.answer(value, lines)
        return EXIT_CODES[Outcome.REFUSED]
    terminal.answer(evacuation_value(pool, ended), lambda: evacuation_lines(pool, ended))
    return EXIT_CODES[Outcome.DONE if all(each.whole for each in ended) else Outcome.INCOMPLETE]


COMMAND = evacuate
