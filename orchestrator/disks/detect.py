"""Present disks and their contents: lsblk for the tree, blkid and wipefs for a fresh read of the medium itself.

Each device is read by its own command: blkid stops at the first of several that it cannot identify.
"""

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from orchestrator.disks.errors import explain
from orchestrator.disks.run import understood
from orchestrator.domain.answers import parse_json, text_lines
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.plan import Effect, Pipeline, single_command
from orchestrator.domain.rotation import LUKS_NODE_SUFFIX, POOL_PREFIX, Disk
from orchestrator.domain.units import Seconds
from orchestrator.process.executor import Reader, pipeline_failure

# NAME is not used, but lsblk prints a tree, with the parts of a disk, only when it is requested.
_COLUMNS = "NAME,KNAME,PATH,SIZE,TYPE,RO,RM,HOTPLUG,TRAN,SERIAL,MODEL,WWN,FSTYPE,UUID,LABEL,PTTYPE,MOUNTPOINTS,HCTL"
_PATIENCE = Seconds(30)
_END = 1 << 20
UNKNOWN = "data of no known kind"


def tree_pipeline() -> Pipeline:
    """Return the command to list all block devices, each with the devices made on it."""
    return single_command("lsblk", "-J", "-b", "-o", _COLUMNS, effect=Effect.READS)


def probe_pipeline(path: str) -> Pipeline:
    """Return the command to read the content of a device: udev's data may be older than a person's last action."""
    return single_command("blkid", "-p", "-o", "export", path, effect=Effect.READS)


def signatures_pipeline(path: str) -> Pipeline:
    """Return the command to read every signature on a device."""
    return single_command("wipefs", "--no-act", "--json", path, effect=Effect.READS)


def empty_pipelines(path: str, size: int) -> tuple[Pipeline, ...]:
    """Return commands to check that the first and the last MiB hold only zeros: exit 0, 1 if not, 2 if unreadable.

    Why: a device without a signature may hold data, such as an encrypted volume; and for blkid and wipefs a device that returns
    only errors is blank.
    """
    starts = dict.fromkeys((0, max(0, size - _END)))
    return tuple(
        single_command("cmp", "-s", "-n", str(_END), "-i", f"{start}:0", path, "/dev/zero", effect=Effect.READS)
        for start in starts
    )


def survey_devices(reader: Reader, also: Sequence[str] = ()) -> tuple[BlockDevice, ...]:
    """Return every present block device; removable ones, and those of which udev reports nothing, are read.

    `also`: paths of other devices to read. Raises: OutsideError.
    """
    return tuple(_fresh(device, reader) if _to_be_read(device, also) else device for device in list_devices(reader))


def list_devices(reader: Reader) -> tuple[BlockDevice, ...]:
    """Return every present block device, as udev remembers it; nothing is read. Raises: OutsideError."""
    listed = reader.read(tree_pipeline(), timeout=_PATIENCE)
    if not listed.well:
        raise explain(pipeline_failure(tree_pipeline(), listed))
    return understood(tree_pipeline(), listed.stdout, parse_tree)


def _to_be_read(device: BlockDevice, also: Sequence[str]) -> bool:
    unknown = not device.kind and not device.above
    return bool(device.size) and not device.parts and (device.external or unknown or device.path in also)


def _fresh(device: BlockDevice, reader: Reader) -> BlockDevice:
    """Return the device with its present content. Why not by blkid alone: it reports an unreadable device as blank."""
    probed = reader.read(probe_pipeline(device.path), timeout=_PATIENCE)
    if probed.well:
        told = understood(probe_pipeline(device.path), probed.stdout, parse_probe)
        return with_probe(device, told.get(device.path, {}))
    found = signatures(device.path, device.size, reader)
    if found is None:
        return replace(device, answers=False)
    return replace(device, kind=" and ".join(found), uuid="", sub="", label="", table="")


def signatures(path: str, size: int, reader: Reader) -> tuple[str, ...] | None:
    """Return the kinds of all contents of a device; none: it is blank. None: it cannot be read."""
    listed = reader.read(signatures_pipeline(path), timeout=_PATIENCE)
    found = understood(signatures_pipeline(path), listed.stdout, parse_signatures) if listed.well else None
    if found != ():
        return found
    exits = {reader.read(each, timeout=_PATIENCE).exits[0] for each in empty_pipelines(path, size)}
    if exits <= {0, 1}:
        return (UNKNOWN,) if 1 in exits else ()
    return None


def parse_signatures(text: bytes) -> tuple[str, ...]:
    """Parse wipefs's JSON: each kind once; for a blank device wipefs prints nothing."""
    found = parse_json(text)["signatures"] if text.strip() else []
    return tuple(dict.fromkeys(str(each["type"]) for each in found))


def parse_tree(text: bytes) -> tuple[BlockDevice, ...]:
    """Parse lsblk's JSON into devices. A partition takes a missing bus and serial from its disk."""
    found: dict[str, BlockDevice] = {}
    for node in parse_json(text)["blockdevices"]:
        for device in _walk(node, None):
            found.setdefault(device.name, device)
    return tuple(found.values())


def _walk(node: Mapping[str, Any], parent: BlockDevice | None) -> Iterator[BlockDevice]:
    below = node.get("children", [])
    parts = tuple(child["kname"] for child in below if child["type"] == "part")
    above = [child for child in below if child["type"] != "part"]
    own = _device(node, parent if node["type"] == "part" else None, parts)
    family = [device for child in above for device in _walk(child, own)]
    names, places = (device.name for device in family), (place for device in family for place in device.at)
    yield replace(own, above=tuple(dict.fromkeys(names)), at=tuple(dict.fromkeys((*own.at, *places))))
    yield from family
    for child in below:
        if child["type"] == "part":
            yield from _walk(child, own)


def _device(node: Mapping[str, Any], whole: BlockDevice | None, parts: tuple[str, ...]) -> BlockDevice:
    external = node["tran"] == "usb" or bool(node["hotplug"]) or bool(node["rm"])
    return BlockDevice(
        name=node["kname"], path=node["path"], disk=whole.disk if whole else node["kname"], size=int(node["size"]),
        kind=node["fstype"] or "", uuid=(node["uuid"] or "").lower(), sub="", label=node["label"] or "",
        read_only=bool(node["ro"]), external=(external or (whole is not None and whole.external)) and node["type"] != "rom",
        serial=(node["serial"] or (whole.serial if whole else "")).strip(),
        model=(node["model"] or (whole.model if whole else "")).strip(), wwn=node["wwn"] or (whole.wwn if whole else ""),
        case=whole.case if whole else _case(node), parts=parts, table=node["pttype"] or "" if parts or not whole else "",
        at=tuple(place for place in node["mountpoints"] if place),
    )  # fmt: skip


def _case(node: Mapping[str, Any]) -> str:
    """Return the key that all disks behind one bridge share; each is a unit of it (the last number of H:C:T:L)."""
    return str(node["hctl"]).rpartition(":")[0] if node["tran"] == "usb" and node.get("hctl") else ""


def parse_probe(text: bytes) -> dict[str, dict[str, str]]:
    """Parse blkid's report of each device, by its path."""
    found: dict[str, dict[str, str]] = {}
    told: dict[str, str] = {}
    for line in text_lines(text):
        name, _, value = line.partition("=")
        if name == "DEVNAME":
            told = found.setdefault(value, {})
        elif name:
            told[name] = value.replace("\\ ", " ")
    return found


def with_probe(device: BlockDevice, told: Mapping[str, str]) -> BlockDevice:
    """Return the device with blkid's report of it."""
    return replace(
        device, kind=told.get("TYPE", ""), uuid=told.get("UUID", "").lower(), sub=told.get("UUID_SUB", ""),
        label=told.get("LABEL", ""), table=told.get("PTTYPE", ""),
    )  # fmt: skip


def pools_without_disk(disks: Iterable[Disk]) -> dict[str, bool]:
    """Return the names of disks whose pool lies on a mapped device now, and whether its export is under way.

    Why not from lsblk: it omits devices that lost their disk.
    """
    there = [disk.name for disk in disks if disk.content == "zfs" and os.path.exists(node_path(disk))]
    exports = set(_exports()) if there else set[str]()
    return {name: f"{POOL_PREFIX}{name}" in exports for name in there}


def _exports() -> Iterator[str]:
    """Yield the names of pools being exported; the export of a pool whose disk is gone never ends.

    Only root exports one: any user may give a process of hers these words, or an end in the middle of them.
    """
    for folder in glob.iglob("/proc/[0-9]*"):
        with suppress(OSError), open(f"{folder}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
            if words[0].endswith(b"zpool") and words[1:2] == [b"export"] and _is_roots(folder):
                yield from map(os.fsdecode, words[2:3])


def _is_roots(folder: str) -> bool:
    """Return True for a process that root started. Source: proc(5): status; in a name newlines are escaped.

    Why not by the owner of a file: those of a process that forbids to dump its memory are root's, as are those of a setuid program.
    """
    with open(f"{folder}/status", "rb") as file:
        return b"\nUid:\t0\t0\t" in file.read()


def node_path(disk: Disk) -> str:
    """Return the path of the lowest mapped device below a disk's pool."""
    return f"/dev/mapper/{POOL_PREFIX}{disk.name}{LUKS_NODE_SUFFIX if disk.inside else ''}"


def find_path(path: str, reader: Reader) -> tuple[BlockDevice | None, tuple[BlockDevice, ...]]:
    """Find the device of that path, or of a link to it, and all present ones; None: not found. Raises: OutsideError."""
    pipeline = single_command("readlink", "-f", path, effect=Effect.READS)
    found = reader.read(pipeline, timeout=_PATIENCE)
    real = found.stdout.decode("utf-8", "surrogateescape").strip() if found.well else path
    devices = survey_devices(reader, (path, real))
    return next((each for each in devices if each.path in (path, real)), None), devices
