"""The disk whose kit a machine was taken over from: a restore uses it as ours, as a person named it by its device."""

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from orchestrator import compose
from orchestrator.disks.detect import find_path
from orchestrator.domain.errors import OrchestratorError
from orchestrator.process.executor import Reader

if TYPE_CHECKING:
    from orchestrator.app.session import Session
    from orchestrator.app.settings import Settings

MOVED = "moved"  # the key under which history remembers a takeover
_DEVICES = "devices"  # in that record: the identities on the device that was named, until each was accepted


def identities_at(place: str, log: Callable[[str], None]) -> tuple[str, ...]:
    """Return the identities of what lies on the device of that path; none where the place is no device."""
    if not place.startswith("/dev/"):
        return ()
    found, devices = find_path(place, Reader(log=log))
    if found is None:
        return ()
    return tuple(sorted({each.uuid for each in devices if each.disk == found.disk and each.uuid}))


def accept_kit_disk(settings: "Settings", session: "Session") -> None:
    """Accept the disk that the takeover named, when it is here and not accepted yet. Its copies are read, and it is ours from now on.

    A disk that is not here, or cannot be accepted now, is accepted by a later command.
    """
    moved = _moved(session.history.memory("").get(MOVED, ""))
    waiting = [str(each) for each in moved.get(_DEVICES, ())]
    if not waiting:
        return
    from orchestrator.app.disk_visits import make_visit_context
    from orchestrator.planners.identify_disk import DeviceState
    from orchestrator.runner.disk.enroll import readopt_disk

    sets = settings.configuration().sets
    used = make_visit_context(settings.where, session.history, say=settings.say, log=settings.log)
    for disk in (disk for each in sets for disk in each.disks if disk.identity in waiting):
        try:
            found = readopt_disk(disk, sets, used)
        except OrchestratorError as error:
            settings.say(f"disk {disk.called}: {error.why}")
            continue
        if found.state is DeviceState.READY:
            waiting.remove(disk.identity)
            settings.say(f"disk {disk.called} is this machine's now, as this machine was taken over from it")
            session.history.remember("", MOVED, json.dumps({**moved, _DEVICES: waiting}))


def record_of(host: str, place: str, log: Callable[[str], None]) -> str:
    """Return the record of a takeover, for history."""
    told = {"from": host, "to": os.uname().nodename, "at": compose.now().isoformat(), "kit": place}
    return json.dumps({**told, _DEVICES: identities_at(place, log)})


def _moved(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
