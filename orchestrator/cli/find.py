"""`poolferry find`: the restore points that hold a file."""

import click

from orchestrator.cli.terminal.options import CliCommand, complete_job_name, pass_terminal
from orchestrator.cli.terminal.screen import Terminal

_NONE = 1


@click.command(
    "find",
    cls=CliCommand,
    examples=(
        ("find photos letter.odt", "every version of files with this name, and in which points it lies"),
        ("find photos '*.odt'", "names by a shell pattern; quote it"),
        ("find photos 'docs/*.odt'", "with a slash: the whole path fits the pattern"),
    ),
    section="restore",
    short_help="Find a file in all restore points.",
)
@click.argument("job", shell_complete=complete_job_name)
@click.argument("pattern")
@pass_terminal
def find(terminal: Terminal, job: str, pattern: str) -> int:
    """Find files by name in all restore points of a job, with size and time of each version. Exit 1: no point holds one."""
    from orchestrator.app.point_contents import open_points
    from orchestrator.domain.units import show_count
    from orchestrator.views.point_contents import file_value, version_lines

    with open_points(terminal, job, "poolferry find") as points:
        found = points.find(pattern)
    if found.without:
        terminal.say(
            f"{show_count(len(found.without), 'point')} without a manifest not looked into: {', '.join(found.without)}"
        )
    if not found.files and not terminal.json:
        terminal.say(
            f"{job}: no name in {show_count(len(found.looked), 'point')} fits {pattern}{_below(terminal, job, pattern)}"
        )
    head = {"job": job, "pattern": pattern, "points": list(found.looked), "without_manifest": list(found.without)}
    terminal.answer_entries(head, "files", map(file_value, found.files), version_lines(found.files))
    return 0 if found.files else _NONE


def _below(terminal: Terminal, job: str, pattern: str) -> str:
    """Return what helps where a whole path was named, or one that begins with "./": names are those below the source."""
    from orchestrator.domain.command_line import quoted

    top = terminal.configuration().job(job).source.path.rstrip("/")
    rest = (
        pattern[len(top) :]
        if top and pattern.startswith(f"{top}/")
        else pattern[1:]
        if pattern.startswith("./")
        else ""
    )
    return f"; paths are named below the source: poolferry find {job} -- {quoted(rest)}" if rest.strip("/") else ""


COMMAND = find
