"""End of a visit: flush, switch off, and the check that the device is idle and may be pulled out."""

import errno
import os
import shlex
import time

from orchestrator.disks import commands
from orchestrator.disks.detect import list_devices, survey_devices
from orchestrator.disks.run import read_if_any, run_flush, try_run
from orchestrator.domain.device import BlockDevice
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.process.executor import Reader, Writer
from orchestrator.process.holders import find_namespace_holders

_TRIES, _PAUSE = (
    50,
    0.2,
)  # s; requests of others, such as udev's look at a disk that was just unmounted, end within seconds


_WAIT = "wait a minute"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseResult:
    """Result of releasing a disk. `hinders`: why it may not be pulled out yet; empty: it may. `hint`: what helps then.

    `beside`: other devices in the same case that are in use, so that the case must stay plugged in; empty: none.
    """

    hinders: str
    beside: str = ""
    hint: str = _WAIT


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
    if own := next((each for each in others if each.name == device.name and each.at), None):
        return ReleaseResult(hinders=f"it {_used(own)}", hint=f"unmount that (`umount {shlex.quote(own.at[0])}`)")
    holder, hint = _held_by(device.path)
    if holder:
        return ReleaseResult(hinders=holder, hint=hint)
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


def _held_by(path: str) -> tuple[str, str]:
    """Return as text who still holds the device's filesystem, empty when nobody does or the device is gone, and what ends that.

    Why not by lsblk: it shows the mounts of this mount namespace alone. A process with a namespace of its own keeps a filesystem
    open that is unmounted here. Source: open(2), O_EXCL on a block device fails with EBUSY while it is in use by the system.
    """
    for attempt in range(_TRIES):
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
        except OSError as error:
            if error.errno != errno.EBUSY:
                return "", ""
        else:
            return "", ""
        if attempt < _TRIES - 1:
            time.sleep(_PAUSE)
    if not (holders := find_namespace_holders(os.stat(path).st_rdev)):
        return "the kernel still has it in use, though it is mounted nowhere", _WAIT
    return (
        f"{holders[0]} still has it mounted, in a mount namespace of its own",
        f"end it, where it is not needed (`kill {holders[0].pid}`)",
    )


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
