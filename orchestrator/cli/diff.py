"""`poolferry diff`: the differences between two restore points."""

from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import CliCommand, complete_job_name, complete_point_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "diff",
    cls=CliCommand,
    examples=(
        ("diff photos", "what changed between the two newest points"),
        ("diff photos 2026-11-03", "from an older point to the newest"),
        ("diff photos 2026-11-03 2026-11-09 docs", "between two points, in one folder"),
    ),
    section="restore",
    short_help="Compare two restore points.",
)
@click.argument("job", shell_complete=complete_job_name)
@click.argument("words", nargs=-1, metavar="[POINT] [POINT] [PATH]", shell_complete=complete_point_name)
@pass_terminal
def diff(terminal: Terminal, job: str, words: Sequence[str]) -> int:
    """List what was added, removed and changed between two restore points, by their manifests. PATH: with ./ before it if it looks like a point's name."""
    from orchestrator.app.point_contents import open_points
    from orchestrator.views.point_contents import ChangeCounter, change_lines, change_value

    if len(words) > 3:
        raise click.UsageError("expected two points and a path at most")
    with open_points(terminal, job, "poolferry diff") as points:
        found, counter = points.compare(words), ChangeCounter()
        changes = counter.count(found.changes)
        head = {"job": job, "before": found.before.name, "after": found.after.name}
        terminal.answer_entries(head, "changes", map(change_value, changes), change_lines(changes), counter.value)
        if not terminal.json:
            terminal.say(f"{job}: {counter.line(found.before, found.after)}")
    return 0


COMMAND = diff
