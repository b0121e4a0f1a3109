"""`poolferry import syncoid`: job files from the settings of sanoid and syncoid."""

import sys
from collections.abc import Sequence

import click

from orchestrator.cli.terminal.imports import CRONTABS, SCRIPTS, SETTINGS_FILE, TO, UNITS, show_import
from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "syncoid",
    cls=CliCommand,
    examples=(
        ("import syncoid --crontab /etc/crontab --to /etc/poolferry", "jobs from the syncoid lines of a crontab"),
        ("crontab -l | poolferry import syncoid --crontab -", "from a user's own crontab, into ./poolferry-import"),
        (
            "import syncoid --unit /etc/systemd/system/syncoid.service --unit /etc/systemd/system/syncoid.timer",
            "from a systemd service and its timer",
        ),
    ),
    short_help="Write job files for syncoid and sanoid.",
)
@click.option(
    "--sanoid-conf",
    "conf",
    type=SETTINGS_FILE,
    metavar="FILE",
    help="sanoid's rules; /etc/sanoid/sanoid.conf where it is there",
)
@SCRIPTS
@UNITS
@CRONTABS
@TO
@pass_terminal
def syncoid(
    terminal: Terminal,
    *,
    conf: str | None,
    crontabs: Sequence[str],
    units: Sequence[str],
    scripts: Sequence[str],
    folder: str,
) -> int:
    """Write job files and places for the calls of syncoid, and for the rules of sanoid.conf.

    Reads crontabs, systemd's units and scripts. Overwrites nothing, and lists for each line what it became and what is not carried
    over; then the exit code is 1.
    """
    from orchestrator.app.job_import import SyncoidFiles, import_syncoid_jobs

    files = SyncoidFiles(conf=conf, crontabs=crontabs, units=units, scripts=scripts)
    return show_import(terminal, import_syncoid_jobs(files, folder, stdin=sys.stdin.read))


COMMAND = syncoid
