"""A pool whose disk can stop answering and answer again: it lies behind a device-mapper node.

Why not a disk that is pulled: when nothing is under way just then, OpenZFS 2.3 may try its writes again and again without
ever calling the pool suspended, and the machine has no time for anything else.
"""

from functools import partial

from tests.lab.common import Machine
from tests.lab.virtual import VirtualMachine
from tests.whole.house import wait_until

_TABLE = """set -e; table() {{ echo "0 $(blockdev --getsz {device}) $*"; }}
"""
_SWAP = 'dmsetup reload {name} --table "$(table {target})"; dmsetup suspend --noflush --nolockfs {name}; dmsetup resume {name}'


class FrailPool:
    """A pool on a new disk of a machine, sound until it is told otherwise."""

    def __init__(self, machine: VirtualMachine, name: str, size: str = "256M", *, options: str = "") -> None:
        self.machine, self.name = machine, name
        self._device = machine.plug(machine.disk(name, size)).device
        self._do(
            f'dmsetup create {name} --table "$(table linear {self._device} 0)"; dmsetup mknodes; '
            f"zpool create {options} {name} /dev/mapper/{name}"
        )

    def fail(self) -> None:
        """Its disk answers no more, and the pool is suspended by the next write, which is made at once."""
        self._do(_SWAP.format(name=self.name, target="error"))
        self.machine.popen(f"zfs set poolferry-lab:fails=$(date +%s) {self.name}; zpool sync {self.name}")
        wait_until(partial(_suspended, self.machine, self.name), 60, pause=0.2)

    def answer(self) -> None:
        """Its disk answers again; the pool waits for somebody who says so."""
        self._do(_SWAP.format(name=self.name, target=f"linear {self._device} 0"))

    def mend(self) -> None:
        """Its disk answers again, and the pool goes on."""
        self.answer()
        self.machine.sh(f"zpool clear {self.name}")

    def _do(self, script: str) -> None:
        self.machine.sh(_TABLE.format(device=self._device) + script)


def _suspended(machine: Machine, name: str) -> bool:
    return machine.sh(f"cat /proc/spl/kstat/zfs/{name}/state").text == "SUSPENDED"
