"""The end of a visit: flush, switch off, and whether the device is quiet, so that it may be pulled out. Changes things."""

from orchestrator.domain.device import Device
from orchestrator.process.executor import Reader, Writer
from orchestrator.targets import commands
from orchestrator.targets.hands import attempt, do, says
from orchestrator.targets.presence import survey_devices


def let_go(device: Device, writer: Writer, *, power_off: bool) -> str:
    """Why it may not be pulled out yet; empty: it may. Raises: OrchestratorError.

    A disk whose neighbour in the same case is in use is not switched off: only what is on the medium counts then.
    """
    do(writer, commands.flush(device.path))
    if power_off and device.external:
        attempt(writer, commands.switch_off(device.disk))
    return why_not(device, writer)


def why_not(device: Device, reader: Reader) -> str:
    """What still happens on a device; empty: nothing, it is quiet or gone."""
    here = next((each for each in survey_devices(reader, (device.path,)) if each.name == device.name), None)
    if here is None or here.uuid != device.uuid:
        return ""
    if here.at:
        return f"it is mounted at {here.at[0]}"
    if here.above:
        return f"it is in use by {', '.join(here.above)}"
    if not here.answers:
        return "it does not answer"
    told = says(reader, commands.in_flight(device.disk))
    if told is not None and any(int(number) for number in told.split()):
        return "it still works"
    return ""
