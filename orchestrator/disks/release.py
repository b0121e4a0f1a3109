"""End of a visit: flush, switch off, and the check that the device is idle and may be pulled out."""

import time

from orchestrator.disks import commands
from orchestrator.disks.detect import list_devices, survey_devices
from orchestrator.disks.run import read_if_any, run_flush, try_run
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.process.executor import Reader, Writer

_TRIES, _PAUSE = (
    50,
    0.2,
)  # s; requests of others, such as udev's look at a disk that was just unmounted, end within seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseResult:
    """Result of releasing a disk. `hinders`: why it may not be pulled out yet; empty: it may.

    `beside`: other devices in the same case that are in use, so that the case must stay plugged in; empty: none.
    """

    hinders: str
    beside: str = ""


def release_disk(device: BlockDevice, writer: Writer, *, power_off: bool) -> ReleaseResult:
    """Flush the disk and switch it off. Raises: OrchestratorError.

    A disk of which another part is in use is neither switched off nor safe to remove.
    """
    run_flush(writer, commands.flush(device.path), f"/sys/class/block/{device.name}/stat")
    others = [each for each in list_devices(writer) if each.at or each.above]
    part = next((each for each in others if each.disk == device.disk and each.name != device.name), None)
    if part is not None:
        hinders = why_still_busy(device, writer) or f"{part.path}, another part of the same disk, {_used(part)}"
        return ReleaseResult(hinders=hinders)
    if power_off and device.external:
        try_run(writer, commands.switch_off(device.disk))
    told = [
        f"{each.path} {_used(each)}"
        for each in others
        if device.case and each.case == device.case and each.disk != device.disk
    ]
    return ReleaseResult(hinders=why_still_busy(device, writer), beside="; ".join(told))


def _used(device: BlockDevice) -> str:
    return f"is mounted at {device.at[0]}" if device.at else f"is in use by {', '.join(device.above)}"


def why_still_busy(device: BlockDevice, reader: Reader) -> str:
    """Return the activity on a device as text; empty when it is idle or gone."""
    here = next((each for each in survey_devices(reader, (device.path,)) if each.name == device.name), None)
    if here is None or here.uuid != device.uuid:
        return ""
    if here.at:
        return f"it is mounted at {here.at[0]}"
    if here.above:
        return f"it is in use by {', '.join(here.above)}"
    if not here.answers:
        return "it does not answer"
    for _ in range(_TRIES):
        requests = read_if_any(reader, commands.in_flight(device.disk))
        if requests is None or not any(number.strip(b"0") for number in requests.split()):
            return ""
        time.sleep(_PAUSE)
    return "it still works"
