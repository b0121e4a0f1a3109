"""One virtual machine: started, restored, given and robbed of disks, cut from the network and from power."""

import contextlib
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.lab.channel import Channel, GuestCommand
from tests.lab.common import Disk, Ended, LabError, Machine
from tests.lab.emulator import MEMORY, command_line, disk_device, disk_node, root_node
from tests.lab.pools import create
from tests.lab.qmp import Qmp
from tests.lab.rtc import put_ahead

_BOOT_SECONDS = 900  # 20 on a quiet host; of one with much else to do, an emulated machine gets a tenth
# Read here: each test has an environment of its own.
COLD = os.environ.get("POOLFERRY_LAB_COLD") == "1"
POOLS = "/var/lib/pools"
_MOUNT = (
    "mountpoint -q /mnt/poolferry || mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro poolferry /mnt/poolferry "
    "&& mkdir -p /var/lib/poolferry /etc/poolferry/jobs"
)
# Only a boot needs them. An ELF kernel would be written over the sleeping one by the reset with which a machine wakes.
_OF_A_BOOT = ("-kernel", "-initrd", "-append")
_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class VirtualMachine(Machine):
    """A machine under QEMU. It stands still until `boot` or `restore`, and is gone after `close`."""

    def __init__(self, name: str, *, image: Path, run: Path) -> None:
        self.name = name
        self.image = image
        self.run = run
        self.disks: dict[str, Disk] = {}
        self.template: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._qmp: Qmp | None = None
        self._channel: Channel | None = None
        self._plugged = 0
        self._pulled: set[str] = set()
        self._ahead = timedelta()  # its clock before this machine's
        run.mkdir(parents=True)

    # -- its life

    def boot(self, *, memory: Path | None = None) -> None:
        """Starts it cold on a new root disk. `memory`: keep its RAM in that file, to be saved."""
        shutil.copyfile(self.image / "empty.qcow2", self.run / "root.qcow2")
        self._cold(memory)

    def boot_again(self, *, later: timedelta = timedelta(), room: str = MEMORY) -> None:
        """Starts it cold with all the disks it had: some 15 to 25 seconds. Returns when its services are up.

        `later`: by its own clock it was off for so much longer; `room`: with so much memory.
        """
        self._ahead += later
        self._cold(None, room=room)
        self.settled()
        self._mount()

    def restore(self, template: Path) -> None:
        """Starts it from a saved state; how long that took was about half a second."""
        self.template = template
        shutil.copyfile(self.image / "empty.qcow2", self.run / "root.qcow2")
        self._start(memory=template / "ram", restoring=True)
        self._migrate("migrate-incoming", f"exec:cat {template}/state")
        if self.qmp.ask("query-status")["status"] != "running":
            self.qmp.ask("cont")
        self._reach(30)
        self._mount()

    def save(self, template: Path) -> None:
        """Writes its state beside the RAM file it was booted with, and ends it."""
        assert self._channel is not None
        self._channel.close()
        self._channel = None
        self.qmp.ask("stop")
        self._migrate("migrate", f"exec:cat > {template}/state")
        with contextlib.suppress(LabError):
            self.qmp.ask("quit")
        assert self._process is not None
        self._process.wait(30)
        self.power_cut()
        shutil.move(self.run / "root.qcow2", template / "root.qcow2")

    def settled(self) -> None:
        """Waits until systemd has started everything, pools of before are imported, and zfs answers.

        Why start again: on a host that is busy enough, udev's own patience ends before the disks are there.
        """
        self.sh(
            "until systemctl is-system-running | grep -qE 'running|degraded'; do sleep 0.2; done; udevadm settle --timeout=200; "
            "systemctl start zfs-import-cache.service zfs-mount.service; zpool list > /dev/null",
            seconds=_BOOT_SECONDS,
        )

    def power_cut(self) -> None:
        """Ends it as a power cut does: what it had flushed to its disks is kept, what it only held in memory is lost."""
        if self._process:
            self._process.kill()
            self._process.wait(30)
        self._process = None
        for line in (self._qmp, self._channel):
            if line:
                line.close()
        self._qmp = self._channel = None

    # -- sleep (S3), of a machine that was restored: one that was booted does not wake

    def keep_tree(self) -> None:
        """The working tree is the machine's own from now on: Linux does not wake what it has over 9p."""
        self.sh(
            "cd /mnt/poolferry && mkdir /root/tree && cp -a orchestrator systemd hooks pyproject.toml /root/tree && cd / && umount /mnt/poolferry "
            "&& mount --bind /root/tree /mnt/poolferry"
        )

    def falls_asleep(self, command: str) -> bool:
        """Return whether the command put the machine to sleep; False: it was refused."""
        requested = self.popen(command)
        until = time.monotonic() + 60
        while not self.asleep:
            if requested.poll():
                return False
            if time.monotonic() > until:
                raise LabError(f"{self.name} neither sleeps nor refuses to: {command}")
            time.sleep(0.1)
        return True

    @property
    def asleep(self) -> bool:
        """Return whether it sleeps now."""
        return bool(self.qmp.ask("query-status")["status"] == "suspended")

    def wake(self, *, later: timedelta = timedelta()) -> None:
        """As its button does. `later`: by its own clock it slept for so much longer."""
        assert self.asleep
        self._ahead += later
        put_ahead(self.qmp, later)
        self.qmp.ask("system_wakeup")
        self.sh("true", seconds=60)

    def close(self) -> None:
        self.power_cut()
        shutil.rmtree(self.run, ignore_errors=True)

    @property
    def pid(self) -> int | None:
        """The process id of its QEMU while it has power."""
        return self._process.pid if self._process else None

    # -- commands

    def popen(
        self,
        command: str | Sequence[str],
        *,
        user: str = "",
        environment: Mapping[str, str] | None = None,
        stdin: bool = False,
    ) -> GuestCommand:
        if not self._channel:
            raise LabError(f"{self.name} has no power")
        what = {"sh": command} if isinstance(command, str) else {"argv": list(command)}
        return self._channel.start({**what, "user": user, "environment": dict(environment or {}), "stdin": stdin})

    def poolferry(self, *arguments: str, check: bool = False, seconds: float = 120, user: str = "") -> Ended:
        """As everywhere, but forked from an interpreter that stands ready: see warm.py."""
        if COLD:
            return super().poolferry(*arguments, check=check, seconds=seconds, user=user)
        return self.sh(["/usr/local/lib/lab/poolferry", user, *arguments], check=check, seconds=seconds, user=user)

    # -- disks

    def disk(self, name: str, size: str = "1G", *, bus: str = "scsi") -> Disk:
        """The disk of that name, as an empty sparse file when there is none yet; nobody holds it until it is plugged in."""
        if name not in self.disks:
            path = self.run / f"{name}.img"
            with path.open("wb") as file:
                file.truncate(int(size[:-1]) * _SIZES[size[-1]])
            self.disks[name] = Disk(name=name, path=path, bus=bus)
        return self.disks[name]

    def plug(self, disk: Disk) -> Disk:
        """Plugs a disk in and waits until udev has named it: anew, where it was pulled out a moment ago."""
        if disk.name in self._pulled:
            self.wait_for_device(disk, there=False)
            self._pulled.discard(disk.name)
        self.plug_at_once(disk)
        self.wait_for_device(disk)
        return disk

    def plug_at_once(self, disk: Disk) -> None:
        """Plugs a disk in; the machine has not seen it yet when this returns."""
        self._plugged += 1
        disk.plugged = f"{disk.name}-{self._plugged}"
        node = f"n-{disk.plugged}"
        self.qmp.ask("blockdev-add", **disk_node(disk, node))
        self.qmp.ask("device_add", **disk_device(disk, node))
        self.disks[disk.name] = disk

    def plug_usb(self, disk: Disk | str, size: str = "1G") -> Disk:
        """Plugs in a USB disk: a new one by its name, or one that was yanked, here or from the other machine."""
        return self.plug(self.disk(disk, size, bus="usb") if isinstance(disk, str) else disk)

    def yank(self, disk: Disk) -> None:
        """Pulls a disk out, whatever the machine does with it just then."""
        self.qmp.ask("device_del", id=disk.plugged)
        self.qmp.wait_for("DEVICE_DELETED", device=disk.plugged)
        until = time.monotonic() + 10
        while True:  # the file stays locked until the node is gone, and requests may still be under way
            try:
                self.qmp.ask("blockdev-del", node_name=f"n-{disk.plugged}")
                break
            except LabError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
        disk.plugged = ""
        self._pulled.add(disk.name)

    def wait_for_device(self, disk: Disk, *, there: bool = True, seconds: float = 300) -> None:
        """Waits until udev shows the disk, or no longer shows it."""
        test = f"[ {'' if there else '!'} -e {disk.device} ]"
        self.sh(
            f"udevadm settle; n=0; until {test}; do n=$((n+1)); [ $n -lt {int(seconds * 20)} ] || exit 1; sleep 0.05; done",
            seconds=seconds + 10,
        )

    def pool(
        self, name: str, size: str = "1G", *, disk: bool = False, usb: bool = False, options: Sequence[str] = ()
    ) -> str:
        path = f"{POOLS}/{name}"
        if disk or usb:
            path = self.plug(self.disk(name, size, bus="usb" if usb else "scsi")).device
        else:
            self.sh(f"mkdir -p {POOLS} && truncate -s {size} {path}")
        create(self, shlex.join([*options, name, path]))
        return name

    # -- network

    def link(self, up: bool) -> None:
        """Puts the network cable in, or pulls it out."""
        self.qmp.ask("set_link", name="card", up=up)

    # -- within

    @property
    def qmp(self) -> Qmp:
        """The line to its QEMU."""
        if not self._qmp:
            raise LabError(f"{self.name} has no power")
        return self._qmp

    def _cold(self, memory: Path | None, **more: Any) -> None:
        held = [disk for disk in self.disks.values() if disk.plugged]
        disks = [(disk_node(disk, f"n-{disk.plugged}"), disk_device(disk, f"n-{disk.plugged}")) for disk in held]
        self._start(memory=memory, saving=memory is not None, disks=disks, **more)
        self._reach(_BOOT_SECONDS)

    def _start(self, **more: Any) -> None:
        for name in ("qmp.sock", "agent.sock"):
            (self.run / name).unlink(missing_ok=True)
        (self.run.parent / f"wire-{self.name}").unlink(missing_ok=True)
        root = root_node(self.image, self.run / "root.qcow2", self.template)
        clock = datetime.now(UTC) + self._ahead
        argv = command_line(name=self.name, image=self.image, run=self.run, root=root, clock=clock, **more)
        for word in _OF_A_BOOT if more.get("restoring") else ():
            at = argv.index(word)
            del argv[at : at + 2]
        with (self.run / "qemu.log").open("ab") as log:
            self._process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        try:
            self._qmp = Qmp(self.run / "qmp.sock")
        except LabError as error:
            self.power_cut()
            raise LabError("QEMU did not start: " + (self.run / "qemu.log").read_text()[-2000:]) from error

    def _reach(self, seconds: float) -> None:
        self._channel = Channel(self.run / "agent.sock")
        self._channel.begin(within=seconds)
        self._channel.set_clock(time.time() + self._ahead.total_seconds())

    def _mount(self) -> None:
        """The working tree, only now: a mounted one cannot be saved."""
        self.sh(_MOUNT)

    def _migrate(self, what: str, where: str) -> None:
        capability = {"capability": "x-ignore-shared", "state": True}
        self.qmp.ask("migrate-set-capabilities", capabilities=[capability])
        self.qmp.ask(what, uri=where)
        until = time.monotonic() + 120
        while (state := self.qmp.ask("query-migrate")).get("status") != "completed":
            if state.get("status") == "failed" or time.monotonic() > until:
                raise LabError(
                    f"{self.name}: {what} did not end well: {state} " + (self.run / "qemu.log").read_text()[-500:]
                )
            time.sleep(0.005)
