"""Which disks are here, and what lies on each: lsblk for the tree, blkid for a fresh look at the medium itself. Reads."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from orchestrator.domain.command import Effect, Pipeline, alone
from orchestrator.domain.device import Device
from orchestrator.domain.units import Seconds
from orchestrator.process.executor import Reader, broken
from orchestrator.targets.failures import explain

_COLUMNS = "KNAME,PATH,SIZE,TYPE,RO,RM,HOTPLUG,TRAN,SERIAL,MODEL,WWN,FSTYPE,UUID,LABEL,PTTYPE,MOUNTPOINTS"
_PATIENCE = Seconds(30)
_NONE = 2  # Source: blkid(8): nothing was found on any of the devices


def tree_pipeline() -> Pipeline:
    """All block devices, each with what was made on it."""
    return alone("lsblk", "-J", "-b", "-o", _COLUMNS, effect=Effect.READS)


def probe_pipeline(paths: Sequence[str]) -> Pipeline:
    """What lies on these devices, read from them: udev's own word may be older than what a person has just done."""
    return alone("blkid", "-p", "-o", "export", *paths, effect=Effect.READS)


def survey_devices(reader: Reader, also: Sequence[str] = ()) -> tuple[Device, ...]:
    """Every block device that is here; those that may be pulled out, or of which udev tells nothing, are read.

    `also`: paths of more that are read. Raises: OutsideError.
    """
    listed = reader.read(tree_pipeline(), timeout=_PATIENCE)
    if not listed.well:
        raise explain(broken(tree_pipeline(), listed))
    devices = parse_tree(listed.stdout)
    unknown = [device for device in devices if not device.kind and not device.above]
    read = [
        device for device in devices if device.size and (device.external or device in unknown or device.path in also)
    ]
    paths = [device.path for device in read if not device.parts]
    if not paths:
        return devices
    pipeline = probe_pipeline(paths)
    probed = reader.read(pipeline, timeout=_PATIENCE)
    if not probed.well and (probed.stopped or probed.exits != (_NONE,)):
        raise explain(broken(pipeline, probed))
    return merged(devices, paths, parse_probe(probed.stdout))


def parse_tree(text: bytes) -> tuple[Device, ...]:
    """The devices of lsblk's JSON. What a partition does not tell of its bus and its serial, its disk tells."""
    found: dict[str, Device] = {}
    for node in json.loads(text)["blockdevices"]:
        for device in _walk(node, None):
            found.setdefault(device.name, device)
    return tuple(found.values())


def _walk(node: Mapping[str, Any], parent: Device | None) -> Iterator[Device]:
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


def _device(node: Mapping[str, Any], whole: Device | None, parts: tuple[str, ...]) -> Device:
    external = node["tran"] == "usb" or bool(node["hotplug"]) or bool(node["rm"])
    return Device(
        name=node["kname"], path=node["path"], disk=whole.disk if whole else node["kname"], size=int(node["size"]),
        kind=node["fstype"] or "", uuid=(node["uuid"] or "").lower(), sub="", label=node["label"] or "",
        read_only=bool(node["ro"]), external=(external or (whole is not None and whole.external)) and node["type"] != "rom",
        serial=(node["serial"] or (whole.serial if whole else "")).strip(),
        model=(node["model"] or (whole.model if whole else "")).strip(), wwn=node["wwn"] or (whole.wwn if whole else ""),
        parts=parts, table=node["pttype"] or "" if parts or not whole else "",
        at=tuple(place for place in node["mountpoints"] if place),
    )  # fmt: skip


def parse_probe(text: bytes) -> dict[str, dict[str, str]]:
    """What blkid told of each device, by its path."""
    found: dict[str, dict[str, str]] = {}
    told: dict[str, str] = {}
    for line in text.decode("utf-8", "surrogateescape").splitlines():
        name, _, value = line.partition("=")
        if name == "DEVNAME":
            told = found.setdefault(value, {})
        elif name:
            told[name] = value.replace("\\ ", " ")
    return found


def merged(
    devices: Sequence[Device], asked: Sequence[str], told: Mapping[str, Mapping[str, str]]
) -> tuple[Device, ...]:
    """The devices, those that were read with what lies on them now. What was asked and not told is blank."""
    return tuple(
        replace(
            device, kind=fresh.get("TYPE", ""), uuid=fresh.get("UUID", "").lower(), sub=fresh.get("UUID_SUB", ""),
            label=fresh.get("LABEL", ""), table=fresh.get("PTTYPE", ""),
        ) if device.path in asked and (fresh := told.get(device.path, {})) is not None else device
        for device in devices
    )  # fmt: skip


def find_path(device: str, reader: Reader) -> Device | None:
    """The device of that path, or of a link to it; None: it is not here. Raises: OutsideError."""
    pipeline = alone("readlink", "-f", device, effect=Effect.READS)
    found = reader.read(pipeline, timeout=_PATIENCE)
    real = found.stdout.decode("utf-8", "surrogateescape").strip() if found.well else device
    return next((each for each in survey_devices(reader, (device, real)) if each.path in (device, real)), None)
