"""`poolferry ls`: the contents of a restore point."""

import click

from orchestrator.cli.terminal.options import POINT, CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "ls",
    cls=CliCommand,
    examples=(
        ("ls photos", "what the newest restore point holds"),
        ("ls photos 2024/summer --point 2026-11-03", "a folder, as it was in an older point"),
        ("ls photos 2024 --recursive --json", "all below a folder, for a program"),
    ),
    section="restore",
    short_help="List a folder of a restore point.",
)
@click.argument("job", shell_complete=complete_job_name)
@click.argument("path", required=False, default="")
@POINT
@click.option("-r", "--recursive", is_flag=True, help="all below it, too")
@pass_terminal
def ls(terminal: Terminal, job: str, path: str, point: str | None, *, recursive: bool) -> int:
    """List a folder of a restore point, by its manifest: the copy itself is not read. PATH: below the source's root."""
    from orchestrator.app.point_contents import open_points
    from orchestrator.views.point_contents import entry_lines, entry_value, point_words

    with open_points(terminal, job, "poolferry ls") as points:
        found = points.list_folder(point, path, recursive=recursive)
        head = {"job": job, "point": found.point.name, "disk": found.point.disk or None}
        if not terminal.json and not terminal.quiet:
            terminal.say(f"{job}, point {point_words(found.point)}:")
        terminal.answer_entries(
            head, "entries", map(entry_value, found.entries), entry_lines(found.entries, found.path)
        )
    return 0


COMMAND = ls
