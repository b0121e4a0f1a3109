"""A drawer of disks for tests: images on loop devices, plugged in and pulled out, and a configuration that rotates them.

Names of disks are the test's own, as what is mounted is seen by all tests.
"""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from orchestrator.disks.marker import FILE, marker_text, parse_marker
from orchestrator.domain.authentication import tag_marker
from orchestrator.domain.rotation import Disk
from orchestrator.history.authentication_key import read_key
from tests.ferry import Ended, Ferry
from tests.whole.house import wait_until

NEEDED = ("losetup", "mkfs.ext4", "findmnt", "blkid", "wipefs")


def missing() -> str:
    """Return why there can be no such disks here; empty: there can."""
    if os.geteuid() != 0:
        return "only root attaches disks"
    programs = [name for name in NEEDED if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]
    if programs:
        return f"not installed: {', '.join(programs)}"
    return (
        "" if os.path.exists("/dev/loop-control") else "no loop devices here, as in a container; the lab has real disks"
    )


class LoopDisks:
    """Disks by short names; `full` is the name poolferry knows one by."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mark = uuid4().hex[:6]
        self.ferry = Ferry(root)
        self.loops: dict[str, str] = {}
        self.source = root / "source"
        self.source.mkdir()
        (self.source / "a.txt").write_text("some words\n")
        (self.source / "b.bin").write_bytes(bytes(range(256)) * 256)
        self.declare()
        self.job("photos")

    def declare(self, more: str = "") -> None:
        (self.ferry.config / "targets.toml").write_text(f"[set.offsite]\npower-off = false\n{more}")

    def identity(self, name: str) -> str:
        """The identity of a disk, as targets.toml declares it."""
        text = (self.ferry.config / "targets.toml").read_text().split(f"[disk.{self.full(name)}]")[1]
        return text.split('identity = "')[1].split('"')[0]

    def declare_again(self, more: str) -> None:
        """Adds keys to the set, whose disks stay declared."""
        file = self.ferry.config / "targets.toml"
        file.write_text(file.read_text().replace("power-off = false\n", f"power-off = false\n{more}"))

    def job(self, name: str, more: str = "") -> None:
        text = f'engine = "rsync"\nsource = "{self.source}"\ntarget = "offsite"\n{more}'
        (self.ferry.config / "jobs" / f"{name}.toml").write_text(text)

    def full(self, name: str) -> str:
        return f"{name}-{self.mark}"

    def image(self, name: str) -> Path:
        return self.root / f"{name}.img"

    def blank(self, name: str) -> str:
        """A new disk, plugged in; its device."""
        with self.image(name).open("wb") as file:
            file.truncate(48 << 20)
        return self.plug(name)

    def plug(self, name: str, *, read_only: bool = False) -> str:
        options = ["-r"] if read_only else []
        self.loops[name] = _did("losetup", *options, "-f", "--show", str(self.image(name))).strip()
        return self.loops[name]

    def pull(self, name: str) -> None:
        """Take it out; a copy of its mount that another process made keeps it attached for a moment, and then it would be seen twice."""
        device = self.loops.pop(name)
        _did("losetup", "-d", device)
        backing = Path("/sys/block") / Path(device).name / "loop/backing_file"
        end = time.monotonic() + 30.0
        while time.monotonic() < end and _text(backing) == str(self.image(name)):
            time.sleep(0.02)

    def enrolled(self, name: str, *more: str) -> str:
        """A new disk of the set, plugged in."""
        device = self.blank(name)
        ended = self.run("disks", "enroll", device, "--set", "offsite", "--name", self.full(name), "--inner", *more)
        assert ended.code == 0, ended
        return device

    def digest(self, name: str) -> str:
        """Return what the disk holds, to the last bit."""
        _did("sync")
        return hashlib.sha256(self.image(name).read_bytes()).hexdigest()

    def run(self, *arguments: str) -> Ended:
        return self.ferry.run(*arguments)

    def scan(self) -> dict[str, Any]:
        """Return what `disks scan` did with the disks of this drawer."""
        found = json.loads(self.run("disks", "scan", "--json").out)
        return {**found, "visits": {each["disk"].removesuffix(f"-{self.mark}"): each for each in found["visits"]}}

    def mountpoint(self, name: str) -> Path:
        return Path("/run/poolferry/disks") / self.full(name)

    def mounted(self, name: str) -> bool:
        return os.path.ismount(self.mountpoint(name))

    @contextmanager
    def opened(self, name: str, options: str = "rw") -> Iterator[Path]:
        """The folder where a disk is mounted behind poolferry's back; after it the disk is written to its end, and nobody has it mounted."""
        place = self.root / "behind"
        place.mkdir(exist_ok=True)
        _did("mount", "-o", options, self.loops[name], str(place))
        try:
            yield place
        finally:
            _did("umount", str(place))
            # Another test's mount namespace that was made meanwhile may hold it, and write its end later.
            wait_until(lambda: not _is_mounted_anywhere(self.loops[name]))

    def edit_marker(self, name: str, /, **more: object) -> None:
        """Changes the marker on a disk behind poolferry's back, with this host's tag on it; nothing told: removes it."""
        with self.opened(name) as place:
            file = place / FILE
            if more:
                text = json.dumps({**json.loads(file.read_text()), **more})
                found, key = parse_marker(text.encode()), read_key(str(self.ferry.state))
                if found and key:
                    uuid = _did("blkid", "-o", "value", "-s", "UUID", self.loops[name]).strip()
                    disk = Disk(name=found.name, set=found.set, identity=uuid, content="ext4")
                    text = marker_text(tag_marker(found, disk, key))
                file.write_text(text)
            else:
                file.unlink()

    def close(self) -> None:
        for name in list(self.loops):
            subprocess.run(["umount", str(self.mountpoint(name))], capture_output=True)
            self.pull(name)
        for left in self.mountpoint("").parent.glob(f"*-{self.mark}"):
            left.rmdir()


def _is_mounted_anywhere(device: str) -> bool:
    """Tell whether a filesystem of any mount namespace has this device for itself."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL))
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return True
    return False


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _did(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout
