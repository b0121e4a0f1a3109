"""`poolferry disks scan`: each disk that is plugged in gets its copies."""

from collections.abc import Sequence

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "scan",
    cls=CliCommand,
    examples=(
        ("disks scan", "visit the disks of all sets that are plugged in"),
        ("disks scan --json", "the same, for a program"),
    ),
)
@click.argument("disk", nargs=-1)
@click.option("--why", default=None, hidden=True, metavar="TEXT")
@click.option(
    "--identity", default=None, hidden=True, metavar="UUID", help="only the disk of this identity, if it is one of ours"
)
@pass_terminal
def scan(terminal: Terminal, disk: Sequence[str], why: str | None, identity: str | None) -> int:
    """Look which disks are plugged in, and run on each of ours all jobs of its set, one disk after the other."""
    from orchestrator.cli.terminal.runs import scan_and_show

    return scan_and_show(terminal, disk, why=why, identity=identity)


COMMAND = scan
