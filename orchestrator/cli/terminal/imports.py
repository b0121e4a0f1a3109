"""Options and output that all imports share."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from orchestrator.app.job_import import JobImport
    from orchestrator.cli.terminal.screen import Terminal

SETTINGS_FILE = click.Path(dir_okay=False, exists=True, allow_dash=True)
TO = click.option(
    "--to", "folder", default="poolferry-import", metavar="DIR", help="where to write; ./poolferry-import"
)


CRONTABS = click.option(
    "--crontab", "crontabs", type=SETTINGS_FILE, metavar="FILE", multiple=True,
    help="a crontab, or a file of /etc/cron.d; - is stdin",
)  # fmt: skip
UNITS = click.option(
    "--unit", "units", type=SETTINGS_FILE, metavar="FILE", multiple=True, help="a .service or .timer of systemd"
)
SCRIPTS = click.option(
    "--script", "scripts", type=SETTINGS_FILE, metavar="FILE", multiple=True,
    help="a script with calls of the program; one that a crontab here calls by its path is read by itself",
)  # fmt: skip
FILES = click.argument("files", type=SETTINGS_FILE, metavar="FILE...", nargs=-1, required=True)


def show_import(terminal: "Terminal", made: "JobImport") -> int:
    """Show what each line became, and at the end what is not carried over; return the exit code."""
    lines = [f"{each.where}: {each.text}" for each in made.lines if not each.lost]
    lost = [f"{each.where}: {each.text}" for each in made.lines if each.lost]
    if lost:
        lines += ["", f"Not carried over ({len(lost)}), look at each:", *lost]
    lines += ["", *(f"wrote {path}" for path in made.written)]
    if made.existing:
        lines += [f"is there already: {path}" for path in made.existing]
        lines += ["nothing was written: name another folder with --to, and merge by hand"]
    then = [f"  {line}" for line in made.following]
    lines += ["", "Then, by hand:", *then] if then else [] if made.existing else ["nothing to make a job of"]
    value = {
        "to": made.folder, "written": list(made.written), "existing": list(made.existing), "next": list(made.following),
        "told": [{"where": each.where, "job": each.job, "text": each.text, "lost": each.lost} for each in made.lines],
    }  # fmt: skip
    terminal.answer(value, lines)
    return 0 if made.complete else 1
