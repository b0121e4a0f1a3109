"""`poolferry import borgmatic`: write job files for borgmatic's source folders."""

import sys
from collections.abc import Sequence

import click

from orchestrator.cli.terminal.imports import CRONTABS, FILES, SCRIPTS, TO, UNITS, show_import
from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "borgmatic",
    cls=CliCommand,
    examples=(
        (
            "import borgmatic /etc/borgmatic/config.yaml --target /backup/points",
            "each source folder becomes a job, with its copies below /backup/points",
        ),
        (
            "import borgmatic /etc/borgmatic/config.yaml --unit /lib/systemd/system/borgmatic.timer --unit /lib/systemd/system/borgmatic.service",
            "at the times of borgmatic's timer",
        ),
    ),
    short_help="Write job files for borgmatic's source folders.",
)
@FILES
@click.option("--target", metavar="PLACE", help="where the copies go: a folder, or ssh://user@host/folder")
@CRONTABS
@UNITS
@SCRIPTS
@TO
@pass_terminal
def borgmatic(
    terminal: Terminal,
    *,
    files: Sequence[str],
    crontabs: Sequence[str],
    units: Sequence[str],
    scripts: Sequence[str],
    target: str | None,
    folder: str,
) -> int:
    """Write a job with restore points for each source folder, with excludes, retention and monitoring.

    The archives of Borg are neither read nor copied: keep Borg to restore from them. What is not carried over is listed with its line;
    then the exit code is 1. Needs PyYAML.
    """
    from orchestrator.app.job_import import SettingsFiles, import_settings

    given = SettingsFiles(files=files, crontabs=crontabs, units=units, scripts=scripts)
    return show_import(terminal, import_settings("borgmatic", given, folder, stdin=sys.stdin.read, target=target))


COMMAND = borgmatic
