"""`poolferry disks enroll`: the only command that may erase."""

from typing import Any

import click

from orchestrator import compose
from orchestrator.cli.terminal.options import CliCommand, pass_terminal
from orchestrator.cli.terminal.screen import Terminal

_CONTENTS = ("ext4", "xfs", "btrfs", "zfs")


@click.command(
    "enroll",
    cls=CliCommand,
    examples=(
        ("disks enroll /dev/disk/by-id/usb-X --set offsite --name red", "make a blank disk a member with ext4"),
        (
            "disks enroll /dev/disk/by-id/usb-X --set offsite --name blue --content zfs",
            "with a pool of its own, for datasets",
        ),
        ("disks enroll /dev/disk/by-id/usb-X --set offsite --name old --adopt", "keep what is on it"),
    ),
    short_help="Make a disk a member of a set; the only command that may erase.",
)
@click.argument("device", type=click.Path())
@click.option("--set", required=True, metavar="SET", help="the rotation set it will belong to")
@click.option("--name", required=True, metavar="NAME", help="what to call it; write this on its sticker")
@click.option("--content", type=click.Choice(_CONTENTS), default="ext4", show_default=True, help="what it holds")
@click.option("--adopt", is_flag=True, help="keep what is on it: nothing is erased")
@click.option("--erase", default="", metavar="SERIAL", help="erase what is on it: type in the disk's own serial")
@click.option("--inner", is_flag=True, help="it can be pulled out, though the kernel does not know that")
@click.option("--luks", is_flag=True, help="in a LUKS container, which --key-file opens")
@click.option("--key-file", default=None, metavar="FILE", help="opens its LUKS container, or is its pool's key")
@click.option("--note", default="", metavar="TEXT", help="a mark by which people know it, such as its colour")
@pass_terminal
def enroll(terminal: Terminal, /, **words: Any) -> int:
    """Make DEVICE a disk of a set: a blank one is made ready; one that holds something only with --adopt or --erase."""
    from orchestrator.app.disk_setup import EnrollRequest, enroll_disk
    from orchestrator.domain.plan import Refusal

    request = EnrollRequest(**words)
    made = enroll_disk(terminal, request)
    if isinstance(made, Refusal):
        value = {"disk": request.name, "outcome": "refused", "why": made.why, "hint": made.hint}
        terminal.answer(value, [f"refused: {made.why}", f"  what to do: {made.hint}"])
        return 3
    disk = made.disk
    sticker = f"{disk.name} · set {disk.set} · {compose.now().astimezone():%Y-%m}"
    done: dict[str, object] = {
        "disk": disk.name, "set": disk.set, "identity": disk.identity, "content": disk.content, "id": made.id,
        "outcome": "done", "sticker": sticker, "daemon": made.daemon,
    }  # fmt: skip
    terminal.answer(done, [
        f"{made.device} is disk {disk.called} of the set {disk.set} now, and may be unplugged",
        f"write this on its sticker: {sticker}",
        *([f"the daemon (process {made.daemon}) takes it in now"] if made.daemon else []),
        f"for its first copy: {terminal.repeat(f'disks scan {disk.name}')}",
    ])  # fmt: skip
    return 0


COMMAND = enroll
