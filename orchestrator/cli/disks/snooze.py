"""`poolferry disks snooze`: stop waiting for a disk for a while."""

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, pass_terminal, read_span
from orchestrator.cli.terminal.screen import Terminal


@click.command(
    "snooze",
    cls=CliCommand,
    examples=(
        ("disks snooze red --for 14d --note 'at the repair shop'", "do not miss the disk for two weeks"),
        ("disks snooze red --off", "wait for it again"),
    ),
)
@click.argument("disk")
@click.option("--for", "span", metavar="TIME", help="for so long, such as 14d")
@click.option("--off", is_flag=True, help="wait for it again")
@click.option("--note", default="", metavar="TEXT", help="why; it is shown with the disk")
@pass_terminal
def snooze(terminal: Terminal, disk: str, span: str | None, note: str, *, off: bool) -> int:
    """Wait for a disk no longer for a while: it is not requested and not late; plugged in, it is used as usual."""
    from orchestrator.app.disk_book import snooze_disk
    from orchestrator.views.format import format_clock, format_iso

    if off is (span is not None):
        raise click.UsageError("use either --for or --off")
    now = compose.now()
    until = snooze_disk(terminal, disk, read_span(span), note, now)
    told = f"it is not expected until {format_clock(until, now=now)}" if until else "it is waited for again"
    terminal.answer({"disk": disk, "until": format_iso(until), "note": note}, [f"{disk}: {told}"])
    return 0


COMMAND = snooze
