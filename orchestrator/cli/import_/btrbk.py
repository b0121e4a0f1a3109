"""`poolferry import btrbk`: write job files for a btrbk.conf, by consent."""

import sys
from collections.abc import Sequence

import click

from orchestrator.cli.terminal.imports import CRONTABS, FILES, SCRIPTS, TO, UNITS, show_import
from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "btrbk",
    cls=CliCommand,
    examples=(
        ("import btrbk /etc/btrbk/btrbk.conf", "what of it poolferry could do"),
        (
            "import btrbk /etc/btrbk/btrbk.conf --live --crontab /etc/cron.d/btrbk",
            "jobs that copy live subvolumes, file by file",
        ),
    ),
    short_help="Write job files for a btrbk.conf, by consent.",
)
@FILES
@click.option("--live", is_flag=True, help="copy the live subvolumes by rsync: files may change meanwhile")
@CRONTABS
@UNITS
@SCRIPTS
@TO
@pass_terminal
def btrbk(
    terminal: Terminal,
    *,
    files: Sequence[str],
    crontabs: Sequence[str],
    units: Sequence[str],
    scripts: Sequence[str],
    live: bool,
    folder: str,
) -> int:
    """List what btrbk does; with --live, write jobs that copy the live subvolumes by rsync.

    poolferry neither takes nor carries btrfs snapshots. Without --live nothing is written, and each subvolume is listed as not carried
    over; then the exit code is 1.
    """
    from orchestrator.app.job_import import SettingsFiles, import_settings

    given = SettingsFiles(files=files, crontabs=crontabs, units=units, scripts=scripts)
    return show_import(terminal, import_settings("btrbk", given, folder, stdin=sys.stdin.read, live=live))


COMMAND = btrbk
