"""`poolferry disks locate`: where a disk is."""

import click

from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "locate",
    cls=CliCommand,
    examples=(
        ("disks locate red 'bank safe'", "note where the disk lies now"),
        ("disks locate red home --note 'top shelf'", "with a note"),
    ),
)
@click.argument("disk")
@click.argument("place")
@click.option("--note", default="", metavar="TEXT", help="what to remember with it")
@pass_terminal
def locate(terminal: Terminal, disk: str, place: str, note: str) -> int:
    """Record where a disk is now: locate red office."""
    from orchestrator.app.disk_book import locate_disk

    locate_disk(terminal, disk, place, note)
    terminal.answer({"disk": disk, "place": place, "note": note}, [f"{disk}: is at {place}"])
    return 0


COMMAND = locate
