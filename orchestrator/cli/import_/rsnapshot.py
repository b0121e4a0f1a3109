"""`poolferry import rsnapshot`: write job files for an rsnapshot.conf."""

import sys
from collections.abc import Sequence

import click

from orchestrator.cli.terminal.imports import CRONTABS, FILES, SCRIPTS, TO, UNITS, show_import
from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "rsnapshot",
    cls=CliCommand,
    examples=(
        (
            "import rsnapshot /etc/rsnapshot.conf --crontab /etc/cron.d/rsnapshot",
            "each backup line becomes a job, at rsnapshot's times",
        ),
        ("import rsnapshot /etc/rsnapshot.conf --to /etc/poolferry", "straight into the configuration's folder"),
    ),
    short_help="Write job files for an rsnapshot.conf.",
)
@FILES
@CRONTABS
@UNITS
@SCRIPTS
@TO
@pass_terminal
def rsnapshot(
    terminal: Terminal,
    *,
    files: Sequence[str],
    crontabs: Sequence[str],
    units: Sequence[str],
    scripts: Sequence[str],
    folder: str,
) -> int:
    """Write a job with restore points for each `backup` line, with excludes, and with [keep] from the retained intervals.

    The points lie in a folder of their own below snapshot_root; rsnapshot's stay as they are. What is not carried over is listed with
    its line; then the exit code is 1.
    """
    from orchestrator.app.job_import import SettingsFiles, import_settings

    given = SettingsFiles(files=files, crontabs=crontabs, units=units, scripts=scripts)
    return show_import(terminal, import_settings("rsnapshot", given, folder, stdin=sys.stdin.read))


COMMAND = rsnapshot
