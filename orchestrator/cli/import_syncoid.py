"""`poolferry import-syncoid`: job files from the settings of sanoid and syncoid."""

import sys
from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal

_FILE = click.Path(dir_okay=False, exists=True, allow_dash=True)


@click.command(
    "import-syncoid",
    cls=CliCommand,
    examples=(
        ("import-syncoid --crontab /etc/crontab --to /etc/poolferry", "jobs from the syncoid lines of a crontab"),
        ("crontab -l | poolferry import-syncoid --crontab -", "from a user's own crontab, into ./poolferry-import"),
    ),
    section="set-up",
    short_help="Write job files for syncoid and sanoid.",
)
@click.option(
    "--sanoid-conf",
    "conf",
    type=_FILE,
    metavar="FILE",
    help="sanoid's rules; /etc/sanoid/sanoid.conf where it is there",
)
@click.option(
    "--crontab",
    "crontabs",
    type=_FILE,
    metavar="FILE",
    multiple=True,
    help="a crontab, or a file of /etc/cron.d; - is stdin",
)
@click.option("--to", "folder", default="poolferry-import", metavar="DIR", help="where to write; ./poolferry-import")
@pass_terminal
def import_syncoid(terminal: Terminal, conf: str | None, crontabs: Sequence[str], folder: str) -> int:
    """Write job files and places for the syncoid lines of crontabs and the rules of sanoid.conf.

    Overwrites nothing, and lists for each line what it became and what could not be carried over.
    """
    from orchestrator.app.starter import import_syncoid

    made = import_syncoid(conf, crontabs, folder, stdin=sys.stdin.read)
    files = made.files
    lines = [f"{each.where}: {each.text}" for each in made.lines]
    lines += ["", *(f"wrote {path}" for path in files.written)]
    lines += [f"is there already, left as it is: {path}" for path in files.existing]
    then = [f"  {line}" for line in files.following]
    lines += ["", "Then, by hand:", *then] if then else ["nothing to make a job of"]
    value = {
        "to": files.folder, "written": list(files.written), "existing": list(files.existing), "next": list(files.following),
        "told": [{"where": each.where, "job": each.job, "text": each.text} for each in made.lines],
    }  # fmt: skip
    terminal.answer(value, lines)
    return 0 if files.following else 1


COMMAND = import_syncoid
