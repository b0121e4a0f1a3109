"""(e) How soon the first copy to a disk that is plugged in begins, and how long its visit takes with nothing to do.

Seconds, not ratios: no other tool has visits. They begin once udev has named the device; udev's own last work, systemd's
and the interpreter's start are in them. Nobody looks into the machine while they pass.
"""

from collections.abc import Callable, Iterator

from tests.bench.rows import Row
from tests.lab.common import Disk
from tests.lab.laboratory import Lab
from tests.lab.usb_disks import UsbDisks, datasets, trees
from tests.lab.virtual import VirtualMachine

_FIRST, _EMPTY = 10, 15  # seconds, as promised
# The line that our unit says before it starts the programs that copy; the first byte follows when these are up.
_KINDS: tuple[tuple[str, Callable[[VirtualMachine], UsbDisks], tuple[str, ...], str], ...] = (
    ("with a pool", datasets, ("--content", "zfs"), "photos: send "),
    ("with ext4", trees, (), "photos: copy "),
)
_ENDED = "/run/visit-ended"
_TELLS = f"[Service]\nExecStopPost=/bin/sh -c 'echo ended > {_ENDED}'\n"


def visiting(lab: Lab, *, rounds: int) -> Iterator[Row]:
    """Two rows for each kind of disk, each round with a machine of its own, restored."""
    for kind, drawer_in, content, begins in _KINDS:
        first, empty = [], []
        for _ in range(rounds):
            machine = lab.machine()
            try:
                red = _enrolled(machine, drawer_in(machine), content)
                first.append(_visit(machine, red, until=begins))
                empty.append(_visit(machine, red, until="SAFE TO REMOVE: red"))
            finally:
                lab.give_back(machine)
        what = f"a disk {kind}: from its device to"
        yield Row(
            part="e", what=f"{what} the line that begins a first copy", values=tuple(first), most=_FIRST, unit="s"
        )
        yield Row(part="e", what=f"{what} SAFE TO REMOVE, nothing to do", values=tuple(empty), most=_EMPTY, unit="s")


def _enrolled(machine: VirtualMachine, drawer: UsbDisks, content: tuple[str, ...]) -> Disk:
    red = drawer.enroll("red", *content)
    drawer.ferry("setup", "systemd")
    machine.write("/etc/systemd/system/poolferry-disk@.service.d/tells.conf", _TELLS)
    machine.sh(f"mkfifo {_ENDED} && systemctl daemon-reload")
    machine.yank(red)
    return red


def _visit(machine: VirtualMachine, disk: Disk, *, until: str) -> float:
    """Seconds until the visit says that. The disk is pulled out afterwards. Raises: RuntimeError when it never does."""
    machine.plug(disk)
    began = float(machine.sh("date +%s.%N").text)
    machine.sh(f"read -r told < {_ENDED}", seconds=600)
    told = machine.sh(
        f"journalctl -o short-unix -u 'poolferry-disk@*' --no-pager -q --since @{int(began) - 5}", seconds=60
    ).text
    machine.yank(disk)
    for line in told.splitlines():
        at, _, said = line.partition(" ")
        if f"]: {until}" in said and float(at) > began:
            return float(at) - began
    raise RuntimeError(f"the visit never said {until!r}: {told}")
