"""Health of a disk as smartctl reads it. Many USB bridges pass on no data: no answer means neither good nor bad."""

from collections.abc import Iterator
from typing import Any

from orchestrator.domain.answers import NOT_READ, parse_json
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.plan import Effect, Pipeline, single_command
from orchestrator.domain.units import Seconds
from orchestrator.process.executor import Reader

_PATIENCE = Seconds(20)


def health_pipeline(disk: str) -> Pipeline:
    """Return the command for SMART data. -H: verdict, -A: attributes, -j: JSON. It enables nothing, starts no test.

    Why no -d: a bridge that smartctl does not know may fail on such requests.
    """
    return single_command("smartctl", "-j", "-H", "-A", f"/dev/{disk}", effect=Effect.READS)


def ask_health(device: BlockDevice, reader: Reader) -> str | None:
    """Return the problems that the disk reports; empty: none. None: no report, or smartctl is missing."""
    return parse_health(reader.read(health_pipeline(device.disk), timeout=_PATIENCE).stdout)


def parse_health(text: bytes) -> str | None:
    """Parse the verdict in smartctl's JSON, with its causes. The exit status says no more, and includes much else.

    Source: smartctl(8), and smartmontools 7.5, ataprint.cpp, nvmeprint.cpp and scsiprint.cpp.
    """
    try:
        told = parse_json(text)
        status = told.get("smart_status", {})
        causes = "; ".join((*_attributes(told), *_warnings(status)))
        passed = status.get("passed")
    except NOT_READ:  # incomplete, or of a future version
        return None
    if passed is False:
        return f"SMART says FAILED: {causes}" if causes else "SMART says FAILED"
    if causes:
        return f"SMART says that it may fail soon: {causes}"
    return "" if passed else None


def _attributes(told: dict[str, Any]) -> Iterator[str]:
    """Yield ATA attributes that are at their failure threshold now; not those that only age, or failed in the past."""
    for each in told.get("ata_smart_attributes", {}).get("table", ()):
        if each.get("when_failed") == "now" and each["flags"]["prefailure"]:
            yield f"{each['name']} is at {each['value']} (threshold {each['thresh']}, counted {each['raw']['string']})"


def _warnings(status: dict[str, Any]) -> Iterator[str]:
    """Yield the critical warnings of NVMe by name, and the device's own text for SCSI."""
    for name, raised in status.get("nvme", {}).items():
        if raised is True:
            yield name.replace("_", " ")
    if "scsi" in status:
        yield str(status["scsi"]["ie_string"])
