"""`poolferry restore pool`: destroy and recreate a pool, in steps."""

from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import LOST_KEY, CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal, exit_code


@click.command(
    "pool",
    cls=CliCommand,
    examples=(
        ("restore pool tank --plan", "look whether all of the pool is elsewhere; change nothing"),
        ("restore pool tank", "the next step of making the pool anew"),
        ("restore pool tank --as lake", "under another name"),
    ),
    short_help="Create a pool again, and restore all of it.",
)
@click.argument("name", metavar="POOL")
@click.option("--plan", is_flag=True, help="only look and report; change nothing, record nothing")
@click.option(
    "--lose",
    multiple=True,
    metavar="DATASET",
    help="this may be lost; with a slash at its end, all below it too (repeatable)",
)
@click.option(
    "--trust",
    multiple=True,
    metavar="DISK",
    help="a disk that is away counts by what history knows was verified on it (repeatable)",
)
@click.option("--as", "new_name", metavar="NAME", help="create and restore it under this name; the jobs follow it")
@click.option("--aside", is_flag=True, help="rename a dataset that has the name of one that returns, and keep it")
@click.option("--content", is_flag=True, help="read again every file that came back, not only guids")
@LOST_KEY
@pass_terminal
def pool(
    terminal: Terminal,
    name: str,
    plan: bool,
    lose: Sequence[str],
    trust: Sequence[str],
    new_name: str | None,
    aside: bool,
    content: bool,
    lost_keys: Sequence[str],
) -> int:
    """Check that all of it is elsewhere; you destroy and create it; then all of it is restored and compared, and each target is listed.

    Run the same command again after each of your own steps, and after any cut: it continues where it was.
    """
    from orchestrator.app.pool_steps import rebuild_pool
    from orchestrator.views.pool_rebuild import rebuild_value, step_lines

    end = rebuild_pool(
        terminal, name, new_name=new_name, plan=plan, aside=aside, lose=lose, trust=trust, content=content, lost_keys=lost_keys,
        hears=lambda step: terminal.show(step_lines(step)),
    )  # fmt: skip
    terminal.answer_json(lambda: rebuild_value(end))
    return exit_code([end.outcome])


COMMAND = pool
