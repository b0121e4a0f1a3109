"""Devices, disks and sets for tests of rotation."""

from datetime import UTC, datetime
from typing import Any

from orchestrator.domain.authentication import AuthenticationKey, tag_marker
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.rotation import Disk, DiskMarker, DiskRecord, DiskState, RotationSet

RED_UUID, BLUE_UUID = "0b7f2c1e-8a55-4c1d-9f5e-3f0c6a1b2d4e", "1c7f2c1e-8a55-4c1d-9f5e-3f0c6a1b2d4f"
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
OWNER = "a" * 32
KEY = AuthenticationKey(b"k" * 32, NOW)


def disk(name: str = "red", **more: Any) -> Disk:
    return Disk(**{"name": name, "set": "offsite", "identity": RED_UUID, "content": "ext4", **more})


def device(name: str = "sdb", **more: Any) -> BlockDevice:
    told = {
        "path": f"/dev/{name}", "disk": name, "size": 1 << 30, "kind": "ext4", "uuid": RED_UUID, "sub": "", "label": "",
        "read_only": False, "external": True, "serial": "S1", "model": "WD", "wwn": "",
    }  # fmt: skip
    return BlockDevice(name=name, **{**told, **more})


def known(**more: Any) -> DiskRecord:
    told = {
        "disk": "d1", "name": "red", "set": "offsite", "identity": RED_UUID, "content": "ext4", "size": 1 << 30,
        "serial": "S1", "model": "WD", "wwn": "", "generation": 5, "written": 5, "enrolled": NOW,
        "standing": DiskState.ACTIVE,
    }  # fmt: skip
    return DiskRecord(**{**told, **more})


def marker(**more: Any) -> DiskMarker:
    told = {"disk": "d1", "name": "red", "set": "offsite", "owner": OWNER, "host": "here", "generation": 5}
    return DiskMarker(**{**told, **more})


def tagged(marker: DiskMarker | None, key: AuthenticationKey = KEY) -> DiskMarker | None:
    """The marker as the host with that key wrote it on the disk of this world."""
    return marker and tag_marker(marker, disk(), key)


def rotation(*names: str, **more: Any) -> RotationSet:
    members = tuple(disk(name) for name in names)
    return RotationSet(**{"name": "offsite", "disks": members, **more})
