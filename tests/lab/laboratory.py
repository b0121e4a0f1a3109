"""The lab itself: hands out machines and takes them back."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tests.lab.common import CHECKOUT
from tests.lab.emulator import NUMBERS, QEMU
from tests.lab.recipe import FLAVOURS
from tests.lab.store import Store
from tests.lab.virtual import VirtualMachine
from tests.lab.watched import WatchedFolder

# Program to the Debian package that has it.
_NEEDED = {
    QEMU: "qemu-system-x86", "qemu-img": "qemu-utils", "mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs",
    "ssh-keygen": "openssh-client", "xz": "xz-utils",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two machines with one wire between them; also `master, backup = pair`."""

    master: VirtualMachine
    backup: VirtualMachine

    def __iter__(self) -> Iterator[VirtualMachine]:
        return iter((self.master, self.backup))

    def cut(self) -> None:
        """Pulls the wire out at both ends."""
        for machine in self:
            machine.link(False)

    def mend(self) -> None:
        """Puts it back."""
        for machine in self:
            machine.link(True)


class Lab:
    """Machines of one flavour, in one run folder; `close` ends them all."""

    def __init__(self, flavour: str = "trixie", *, store: Store | None = None) -> None:
        self.flavour = flavour
        self.python = FLAVOURS[flavour].python
        self.store = store or Store()
        self._watched = WatchedFolder()
        self._machines: list[VirtualMachine] = []
        self._counted = 0

    @property
    def machines(self) -> Sequence[VirtualMachine]:
        """Those that were handed out and not given back."""
        return tuple(self._machines)

    def machine(self, name: str = "master") -> VirtualMachine:
        """One restored machine, alone on its wire."""
        return self._restored((name,))[0]

    def pair(self) -> Pair:
        """Two restored machines with a wire between them."""
        master, backup = self._restored(tuple(NUMBERS))
        return Pair(master=master, backup=backup)

    def give_back(self, *machines: VirtualMachine) -> None:
        """Ends machines and removes their disks."""
        for machine in machines:
            machine.close()
            self._machines.remove(machine)

    def prepare(self) -> None:
        """Makes what is missing, and compiles the working tree for the guest's Python."""
        for name in NUMBERS:
            self.store.template(self.flavour, name)
        compile_tree(self, CHECKOUT / "orchestrator")

    def close(self) -> None:
        """Ends what still runs."""
        for machine in list(self._machines):
            machine.close()
        self._watched.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        self.close()

    def _restored(self, names: tuple[str, ...]) -> list[VirtualMachine]:
        self._counted += 1
        wire = self._watched.path / str(self._counted)
        image = self.store.image_folder(self.flavour)
        machines = [VirtualMachine(name, image=image, run=wire / name) for name in names]
        self._machines += machines
        with ThreadPoolExecutor(len(names)) as together:
            templates = [self.store.template_folder(self.flavour, name) for name in names]
            list(together.map(VirtualMachine.restore, machines, templates))
        return machines


def compile_tree(lab: Lab, folder: Path) -> None:
    """Leaves bytecode beside the modules of a folder, as the guest's Python would: under emulation it takes seconds.

    The folder may be read-only, and this Python may not start here: then the guest does the work.
    """
    kept = lab.store.image_folder(lab.flavour) / "python/usr"
    libraries = kept / "lib/x86_64-linux-gnu"
    program = kept / f"bin/python{lab.python}"
    loader = [libraries / "ld-linux-x86-64.so.2", "--library-path", libraries]
    argv = [*loader, program, "-S", "-s", "-m", "compileall", "-q", folder]
    environment = {"PYTHONHOME": str(kept), "PATH": os.environ["PATH"]}
    subprocess.run([str(word) for word in argv], env=environment, stdin=subprocess.DEVNULL, capture_output=True)


def missing() -> str:
    """Return why there can be no lab on this machine; nothing when there can."""
    if os.uname().machine != "x86_64":
        return f"the lab's machines are x86_64, this one is {os.uname().machine}"
    programs = [package for program, package in _NEEDED.items() if not shutil.which(program)]
    if programs:
        return "these Debian packages are missing: " + " ".join(programs)
    if (
        os.geteuid() != 0
        and subprocess.run(["unshare", "--map-root-user", "--map-auto", "true"], capture_output=True).returncode
    ):
        return "neither root nor a user namespace with subordinate ids (/etc/subuid) is there to build the image"
    return ""
