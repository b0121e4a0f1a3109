"""`poolferry init`: a commented configuration to start from."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "init",
    cls=CliCommand,
    examples=(
        ("init --source /srv/photos --target /backup/photos", "a first job for a folder"),
        ("init --source /srv/photos --target ssh://nas/backup/photos", "to another machine, over ssh"),
    ),
    section="set-up",
    short_help="Write a commented starting configuration.",
)
@click.option("--source", metavar="PLACE", help="what to copy: a directory or ssh://user@host/directory")
@click.option("--target", metavar="PLACE", help="where the copies go: a directory or ssh://user@host/directory")
@pass_terminal
def init(terminal: Terminal, source: str | None, target: str | None) -> int:
    """Write a commented starting configuration; what is there already stays as it is."""
    from orchestrator.app.starter import write_starter

    made = write_starter(terminal, source, target)
    value = {
        "config": made.folder, "written": list(made.written), "existing": list(made.existing), "next": list(made.following),
    }  # fmt: skip
    told = [f"wrote {path}" for path in made.written]
    told += [f"is there already, left as it is: {path}" for path in made.existing]
    terminal.answer(value, [*told, "", "Look into the files, then type:", *(f"  {line}" for line in made.following)])
    return 0


COMMAND = init
