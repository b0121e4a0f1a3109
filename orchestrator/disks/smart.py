"""What a disk says of its own health, as smartctl reads it. Many a USB bridge hands nothing on: that is silence, and no news."""

import json
from collections.abc import Iterator
from typing import Any

from orchestrator.domain.device import Device
from orchestrator.domain.plan import Effect, Pipeline, alone
from orchestrator.domain.units import Seconds
from orchestrator.process.executor import Reader

_PATIENCE = Seconds(20)


def health_pipeline(disk: str) -> Pipeline:
    """-H: its verdict, -A: its attributes, -j: as JSON. Nothing is switched on, and no test is begun.

    Why no -d: a bridge that smartctl does not know may not bear what it would be asked.
    """
    return alone("smartctl", "-j", "-H", "-A", f"/dev/{disk}", effect=Effect.READS)


def ask_health(device: Device, reader: Reader) -> str | None:
    """What the disk says is wrong with it; empty: it says that it is well. None: it says nothing, or smartctl is not here."""
    return parse_health(reader.read(health_pipeline(device.disk), timeout=_PATIENCE).stdout)


def parse_health(text: bytes) -> str | None:
    """The verdict in smartctl's JSON, with what it is based on. Its exit status tells no more, and much besides.

    Source: smartctl(8), and smartmontools 7.5, ataprint.cpp, nvmeprint.cpp and scsiprint.cpp.
    """
    try:
        told = json.loads(text)
        status = told.get("smart_status", {})
        causes = "; ".join((*_attributes(told), *_warnings(status)))
        passed = status.get("passed")
    except (ValueError, AttributeError, TypeError, KeyError):  # cut off, or of a version to come
        return None
    if passed is False:
        return f"SMART says FAILED: {causes}" if causes else "SMART says FAILED"
    if causes:
        return f"SMART says that it may fail soon: {causes}"
    return "" if passed else None


def _attributes(told: dict[str, Any]) -> Iterator[str]:
    """ATA: what has reached the threshold at which its maker expects it to fail. Not what merely ages, nor what is past."""
    for each in told.get("ata_smart_attributes", {}).get("table", ()):
        if each.get("when_failed") == "now" and each["flags"]["prefailure"]:
            yield f"{each['name']} is at {each['value']} (threshold {each['thresh']}, counted {each['raw']['string']})"


def _warnings(status: dict[str, Any]) -> Iterator[str]:
    """NVMe: its critical warnings by name. SCSI: its own words."""
    for name, raised in status.get("nvme", {}).items():
        if raised is True:
            yield name.replace("_", " ")
    if "scsi" in status:
        yield str(status["scsi"]["ie_string"])
