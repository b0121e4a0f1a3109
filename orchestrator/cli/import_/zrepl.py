"""`poolferry import zrepl`: write job files for zrepl's jobs."""

import sys
from collections.abc import Sequence

import click

from orchestrator.cli.terminal.imports import FILES, TO, show_import
from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "zrepl",
    cls=CliCommand,
    examples=(
        (
            "import zrepl /etc/zrepl/zrepl.yml sink.yml",
            "a push, and the sink's file that was copied from the other machine",
        ),
        (
            "import zrepl /etc/zrepl/zrepl.yml --to /etc/poolferry",
            "jobs within one machine, straight into the configuration's folder",
        ),
    ),
    short_help="Write job files for zrepl's jobs.",
)
@FILES
@TO
@pass_terminal
def zrepl(terminal: Terminal, *, files: Sequence[str], folder: str) -> int:
    """Write jobs for the push, pull and snap jobs of zrepl; the chains of snapshots go on.

    Takes the files of both sides: where a push puts its copies stands in the sink's. What is not carried over is listed with its line;
    then the exit code is 1. Needs PyYAML.
    """
    from orchestrator.app.job_import import SettingsFiles, import_settings

    given = SettingsFiles(files=files)
    return show_import(terminal, import_settings("zrepl", given, folder, stdin=sys.stdin.read))


COMMAND = zrepl
