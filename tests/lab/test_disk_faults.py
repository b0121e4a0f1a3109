"""Every disk that is not to be used, each with its state, its sentence, and not a bit on it changed.

What happens to a disk of ours in the middle of a visit is in test_disk_mishaps.py and test_pool_mishaps.py. One machine, a
bag of small disks, one scan: among them two that are to be used, as no bad disk keeps a good one from it.
"""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from orchestrator.domain.rotation import DiskRecord, DiskState
from orchestrator.history.store import open_history
from tests.lab.common import Disk
from tests.lab.kits import history_with_kits
from tests.lab.virtual import VirtualMachine
from tests.whole.damage import begin_as_xfs

pytestmark = [pytest.mark.virtual, pytest.mark.timeout(900)]
TREES = 'engine = "rsync"\nsource = "/srv/photos"\ntarget = "trees"\n'
DATASETS = 'engine = "zfs"\nsource = "tank/photos"\ntarget = "pools"\n'
NOT_OURS = "b" * 32
NOTHING = "nothing was written to it"


@dataclass(frozen=True, slots=True)
class Row:
    """A disk, what it turns out to be, and what is said of it."""

    disk: str
    state: str
    says: str
    hint: str = ""


ROWS = (
    Row("blank", "blank", f"it is blank, and {NOTHING}", "poolferry disks enroll /dev/"),
    Row("foreign", "foreign", 'it holds ext4 "PHOTOS" and is not one of ours', "it may be unplugged"),
    Row("two-things", "foreign", "it holds xfs and ext4", "it may be unplugged"),
    Row("sick", "does-not-answer", "it cannot be read", "with another cable"),
    Row("pool-foreign", "foreign", 'it holds a pool "tank"', "it may be unplugged"),
    Row("other", "another-host", 'this is disk other of the machine "nas"', "poolferry disks readopt other"),
    Row("unmarked", "not-verified", "has the right identity, but no marker of ours", "readopt unmarked"),
    Row("misnamed", "not-verified", "the marker on it says disk green", "look at [disk.misnamed]"),
    Row("twin", "clone", "disk twin is there twice", "unplug the copy"),
    Row("switch", "read-only", "can only be read", "move the switch"),
    Row("theirs", "in-use", "is mounted at /mnt/theirs, by somebody else", "umount /mnt/theirs"),
    Row("torn", "needs-check", "its filesystem is damaged", "e2fsck -f /dev/sd"),
    Row("luks-wrong", "locked", "the key does not open the disk", "look at key-file"),
    Row("luks-gone", "locked", "the file with the disk's key cannot be read", "look at key-file"),
    Row("luks-other", "not-verified", "holds 00000000-0000-4000-8000-0000000000aa, not", "look at inside"),
    Row("pool-other", "another-host", 'this is disk pool-other of the machine "nas"', "readopt pool-other"),
    Row("pool-unmarked", "not-verified", "no marker of ours", "readopt pool-unmarked"),
    Row("pool-twin", "clone", "disk pool-twin is there twice", "unplug the copy"),
    Row(
        "pool-newer",
        "too-new",
        "features that this machine's OpenZFS does not have; nothing was upgraded",
        "newer OpenZFS",
    ),
    Row("pool-newer-to-write", "too-new", "features that this machine's OpenZFS does not have", "newer OpenZFS"),
    Row("pool-locked", "locked", "the key does not open the pool's datasets", "look at key-file"),
)


class Bag:
    """The disks, and the lines of targets.toml that declare those of ours."""

    def __init__(self, machine: VirtualMachine, folder: Path) -> None:
        self.machine, self.folder = machine, folder
        self.lines = ["[set.trees]", "[set.pools]"]
        self.owner = hashlib.sha256(b"poolferry:" + machine.read("/etc/machine-id").strip()).hexdigest()[:32]
        self.disks: dict[str, Disk] = {}
        self.records: list[DiskRecord] = []

    def marker(self, disk: str, rotation: str, **more: Any) -> dict[str, Any]:
        own = {
            "disk": f"id-{disk}",
            "name": disk,
            "set": rotation,
            "owner": self.owner,
            "host": "master",
            "generation": 0,
        }
        return {**own, **more}

    def disk(self, name: str, size: str = "64M", bus: str = "scsi", **more: bool) -> Disk:
        found = self.machine.disk(name, size, bus=bus)
        for key, value in more.items():
            setattr(found, key, value)
        self.disks[name] = found
        return found

    def declare(self, name: str, rotation: str, identity: str, **more: str) -> None:
        told = {"set": rotation, "identity": identity, **more}
        self.lines += [f"[disk.{name}]", *(f"{key} = {json.dumps(value)}" for key, value in told.items())]
        self.records.append(DiskRecord(
            disk=f"id-{name}", name=name, set=rotation, identity=identity, content=more.get("content", "ext4"), size=0, serial="",
            model="", wwn="", generation=0, written=0, enrolled=datetime(2026, 1, 1, tzinfo=UTC), standing=DiskState.ACTIVE,
        ))  # fmt: skip

    def remember(self) -> None:
        """A history that knows the disks, as an earlier version enrolled them: their markers have no tags."""
        path = self.folder / "history.sqlite"
        path.write_bytes(history_with_kits(("sets",), ("pool-good",)))
        with open_history(str(path)) as history:
            for record in self.records:
                history.disks.keep(record)
        self.machine.write(f"{self.machine.state}/history.sqlite", path.read_bytes(), mode=0o600)

    def tree(self, name: str, /, *, bus: str = "scsi", ours: bool = True, mark: bool = True, **more: Any) -> Disk:
        """A disk with ext4 as it was left by somebody, made without the machine."""
        flags = {key: more.pop(key) for key in ("read_only",) if key in more}
        made = self.disk(name, "64M" if name == "two-things" else "16M", bus, **flags)
        self.format(made.path, name, mark=mark and ours, **more)
        if ours:
            self.declare(name, "trees", uuid(name))
        return made

    def format(self, path: Path, name: str, /, *, mark: bool = True, **more: Any) -> None:
        content = self.folder / name
        content.mkdir(exist_ok=True)
        if mark:
            (content / ".poolferry-disk.json").write_text(json.dumps(self.marker(name, "trees", **more)))
        label = "PHOTOS" if name == "foreign" else name[:16]
        subprocess.run(
            ["mkfs.ext4", "-q", "-F", "-U", uuid(name), "-L", label, "-d", content, path],
            check=True,
            capture_output=True,
        )

    def pools(self, *names: str) -> None:
        """Disks with pools, made in the machine and let go."""
        bus = {"pool-good": "usb", "pool-foreign": "usb"}
        for name in names:
            self.machine.plug_at_once(self.disk(name, bus=bus.get(name, "scsi")))
        for name in names:
            disk = self.disks[name]
            self.machine.wait_for_device(disk)
            marker = self.marker(name, "pools", **({"owner": NOT_OURS, "host": "nas"} if name == "pool-other" else {}))
            own = [f"org.poolferry:{key}={value}" for key, value in marker.items()]
            words = [word for each in own if name not in ("pool-unmarked", "pool-foreign") for word in ("-O", each)]
            locked = (
                "-O encryption=on -O keyformat=hex -O keylocation=file:///root/right" if name == "pool-locked" else ""
            )
            newer = {"pool-newer": ("", "-m"), "pool-newer-to-write": ("-r", "")}.get(name)
            # Another pool is called like it, and its mountpoint lies over what is in use.
            called = name if newer else "tank"
            self.machine.sh(
                f'dmsetup create made --table "0 $(blockdev --getsz {disk.device}) linear {disk.device} 0" && '
                f"zpool create -f -m /srv -R /mnt/made -t made -o cachefile=none {locked} {' '.join(words)} {called} /dev/mapper/made && "
                f"zpool export made && {_zhack(called, *newer) if newer else ''} dmsetup remove --retry made && udevadm settle"
            )
            guid = self.machine.sh(["blkid", "-p", "-o", "value", "-s", "UUID", disk.device]).text
            if name != "pool-foreign":
                self.declare(name, "pools", guid, content="zfs", **({"key-file": "/root/wrong"} if locked else {}))
        for name in names:
            self.machine.yank(self.disks[name])

    def containers(self) -> None:
        """Disks with LUKS containers."""
        inner = "00000000-0000-4000-8000-0000000000aa"
        for name in ("luks-wrong", "luks-gone", "luks-other"):
            disk = self.disk(name, "32M")
            self.machine.plug_at_once(disk)
            self.machine.wait_for_device(disk)
            quick = "--pbkdf pbkdf2 --pbkdf-force-iterations 1000"
            self.machine.sh(
                f"cryptsetup luksFormat --type luks2 --batch-mode {quick} --uuid {uuid(name)} --key-file /root/right {disk.device}"
            )
            key = {"luks-wrong": "/root/wrong", "luks-gone": "/root/gone", "luks-other": "/root/right"}[name]
            self.declare(name, "trees", uuid(name), inside=uuid(name + "-in"), **{"key-file": key})
        self.machine.sh(  # until: the kernel's ciphers take their time on a busy host
            f"until cryptsetup open --key-file /root/right {self.disks['luks-other'].device} made; do sleep 1; done; "
            f"mkfs.ext4 -q -U {inner} /dev/mapper/made && cryptsetup close made"
        )
        for name in ("luks-wrong", "luks-gone", "luks-other"):
            self.machine.yank(self.disks[name])

    def digests(self, names: Iterable[str]) -> dict[str, str]:
        self.machine.sh("sync")
        return {name: hashlib.sha256(self.disks[name].path.read_bytes()).hexdigest() for name in names}

    def plug(self, *names: str) -> None:
        for name in names:
            self.machine.plug_at_once(self.disks[name])
        for name in names:
            self.machine.wait_for_device(self.disks[name], seconds=200)


def _zhack(pool: str, enable: str, ref: str) -> str:
    """Gives a pool a feature that no OpenZFS has. `enable` -r: to write it; `ref` -m: to read it at all."""
    zhack, feature = "zhack -d /dev/mapper feature", f"{pool} org.lab:of_the_future"
    return f"{zhack} enable {enable} -d future {feature} && {zhack} ref {ref} {feature} &&"


def uuid(name: str) -> str:
    return str(UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4))


def fill(bag: Bag) -> None:
    bag.disk("blank", "16M", "usb")
    bag.tree("foreign", bus="usb", ours=False)
    begin_as_xfs(bag.tree("two-things", bus="usb", ours=False).path)
    bag.disk("sick", "16M", "usb", sick=True)
    bag.tree("good", bus="usb")
    bag.tree("other", owner=NOT_OURS, host="nas")
    bag.tree("unmarked", mark=False)
    bag.tree("misnamed", name="green")
    shutil.copyfile(bag.tree("twin").path, bag.disk("twin-copy", "16M").path)
    bag.tree("switch", bus="usb", read_only=True)
    bag.tree("theirs")
    torn = bag.tree("torn").path
    for word in ("clri <2>", "ssv state 2"):
        subprocess.run(["debugfs", "-w", "-R", word, torn], check=True, capture_output=True)
    bag.machine.write("/root/right", "a1" * 32)
    bag.machine.write("/root/wrong", "b2" * 32)
    bag.pools(
        "pool-good",
        "pool-foreign",
        "pool-other",
        "pool-unmarked",
        "pool-twin",
        "pool-newer",
        "pool-newer-to-write",
        "pool-locked",
    )
    shutil.copyfile(bag.disks["pool-twin"].path, bag.disk("pool-twin-copy").path)
    bag.containers()


def told(found: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    """Return what was said of each disk, by its serial, or by its name where it is one of ours."""
    seen = {each["disk"]: (each["state"], each["why"], each["hint"]) for each in found["visits"]}
    for each in found["others"]:
        seen[each["disk"] or each["serial"]] = (each["state"], each["why"], each["hint"])
    return seen


def fits(row: Row, state: str, says: str, hint: str) -> bool:
    return state == row.state and row.says in says and row.hint in hint


@pytest.mark.long
def test_no_disk_that_is_not_proved_is_written_to(master: VirtualMachine, tmp_path: Path) -> None:
    bag = Bag(master, tmp_path)
    master.sh("mkdir -p /srv/photos /mnt/theirs && head -c 1M /dev/urandom >/srv/photos/a")
    master.pool("tank", "256M")
    master.sh("zfs create tank/photos && head -c 1M /dev/urandom >/tank/photos/a && zfs snapshot tank/photos@one")
    fill(bag)
    master.job("photos", TREES)
    master.job("sets", DATASETS, targets="\n".join(bag.lines) + "\n")
    bag.remember()
    older = {name: shutil.copyfile(bag.disks[name].path, tmp_path / f"{name}.older") for name in ("good", "pool-good")}
    bag.plug(*bag.disks)
    master.sh(f"mount -o ro,noload {bag.disks['theirs'].device} /mnt/theirs")
    bad = [name for name in bag.disks if not name.endswith("good")]
    before = bag.digests(bad)
    found = master.poolferry("disks", "scan", "--json", seconds=400)
    assert bag.digests(bad) == before
    seen = told(found.json)
    for name in ("good", "pool-good"):
        (visit,) = [each for each in found.json["visits"] if each["disk"] == name]
        assert (visit["ending"], visit["safe"], visit["runs"][0]["outcome"]) == ("done", True, "done"), visit
    none = ("nothing", "", "")
    wrong = [(row, seen.get(row.disk, none)) for row in ROWS if not fits(row, *seen.get(row.disk, none))]
    assert not wrong
    assert master.sh("zpool list -H -o name").text == "tank"
    assert not master.sh("ls /dev/mapper | grep poolferry", check=False).text
    assert not master.sh("findmnt -n -l | grep /run/poolferry", check=False).text
    assert master.sh("findmnt -n -o FSTYPE -T /srv/photos").text == "ext4", "nothing was mounted over what is in use"

    for name, kept in older.items():  # an older copy in place of each good disk
        master.yank(bag.disks[name])
        shutil.copyfile(kept, bag.disks[name].path)
    bag.plug(*older)
    before = bag.digests(older)
    seen = told(master.poolferry("disks", "scan", *older, "--json", seconds=200).json)
    assert bag.digests(older) == before
    for name in older:
        assert (seen[name][0], "it is at visit 0" in seen[name][1]) == ("stale-clone", True), seen[name]
