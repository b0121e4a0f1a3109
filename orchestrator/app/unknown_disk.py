"""A disk that is not one of ours, plugged in while a set waits for one: said, shown by `disks`, and reported once."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from orchestrator import compose
from orchestrator.app.settings import Settings
from orchestrator.config.models import Configuration
from orchestrator.domain.answers import parse_instant, parse_json
from orchestrator.domain.errors import OrchestratorError, OutsideError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.notice import MessageChannel, NoticeType
from orchestrator.domain.rotation import RotationSet
from orchestrator.domain.units import Seconds
from orchestrator.history.views import HistoryReader
from orchestrator.planners.health import JobState
from orchestrator.planners.identify_disk import IdentifiedDevice, identify_devices
from orchestrator.planners.notifications import CopyStatus, Notice
from orchestrator.views.notification_text import notices_message

_UNKNOWN = "unknown disk "  # before an identity: a small fact of no job
_RULE = "Rule: a disk that is not one of ours is reported once, when it is plugged in while a set waits for a disk."
_PATIENCE = Seconds(10)
_EVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownDisk:
    """A disk that was plugged in while a set waited. `set`: the name of that set."""

    set: str
    says: str
    hint: str
    at: datetime


def note_unknown_disk(settings: Settings, known: Configuration, identity: str) -> None:
    """Say what was plugged in, when a set waits for a disk; record and report it when it is here for the first time."""
    with settings.views() as views:
        waiting = next((each for each in known.sets if waits_for_disk(each, known, views, compose.now())), None)
        found = _find_stranger(settings, known, views, identity.lower()) if waiting else None
        told = f"{_UNKNOWN}{identity.lower()}" in views.memory("")
    if waiting is None or found is None:
        return
    settings.say(f"{found.says}; {found.hint}; the set {waiting.name} waits for a disk of its own")
    if told:
        return
    record = UnknownDisk(set=waiting.name, says=found.says, hint=found.hint, at=compose.now())
    value = json.dumps({"set": record.set, "says": record.says, "hint": record.hint, "at": record.at.isoformat()})
    with compose.open_history(settings.where) as history:
        history.remember("", f"{_UNKNOWN}{identity.lower()}", value)
    _report(settings, known, record)


def _report(settings: Settings, known: Configuration, found: UnknownDisk) -> None:
    """Send one message about a disk to each channel of the waiting set's jobs. A channel that fails makes nothing fail."""
    from orchestrator.app.notify_queue import DeliveryContext, deliver_messages, host_name, make_sender_context

    channels = compose.read_machine_config(settings.where).notice
    users = [job.name for job in known.jobs if job.target.rotates and job.target.name == found.set]
    ours = [each for each in channels if isinstance(each, MessageChannel)]
    ours = [each for each in ours if not each.jobs or set(each.jobs) & set(users)]
    if not ours:
        return
    seen = CopyStatus(
        job=users[0], target=found.set, called=f"the set {found.set}", whole=True, state=JobState.WAITING, why=found.says, cause="",
        hint=found.hint,
    )  # fmt: skip
    notice = Notice(kind=NoticeType.TROUBLE, seen=seen, since=found.at)
    letter = notices_message(NoticeType.TROUBLE, [notice], host=host_name(), states=(), now=found.at, rule=_RULE)
    try:
        with compose.open_history(settings.where) as history:
            for channel in ours:
                history.notifications.queue(channel.name, letter)
            post = DeliveryContext(channels=channels, means=make_sender_context(settings.where), say=settings.say)
            deliver_messages(post, history.notifications, found.at, within=_PATIENCE)
    except OrchestratorError as error:
        settings.say(f"notices: {error}")


def waits_for_disk(rotation: RotationSet, known: Configuration, views: HistoryReader, now: datetime) -> bool:
    """Return True while no disk of a set is here, and a run of it waits for one, or its copies are late."""
    from orchestrator.app.disk_visits import survey_set
    from orchestrator.app.hotplug import find_plugged_in
    from orchestrator.runner.disk.state import is_disk_awaited, jobs_of_set

    jobs = jobs_of_set(rotation, known.jobs)
    if not rotation.disks or not jobs or find_plugged_in(rotation):
        return False
    stands = survey_set(rotation, jobs, views, now=now, here=())
    return bool(
        stands.health.late
        or stands.health.overdue
        or is_disk_awaited(jobs, views, stands.disk_request.visited or _EVER)
    )


def _find_stranger(
    settings: Settings, known: Configuration, views: HistoryReader, identity: str
) -> IdentifiedDevice | None:
    """Return the plugged-in device of that identity, when it is none of ours; None also where no look was possible."""
    from orchestrator.disks.detect import survey_devices
    from orchestrator.process.executor import Reader

    disks = [disk for each in known.sets for disk in each.disks]
    try:
        found = identify_devices(survey_devices(Reader(log=settings.log)), disks, views.disks.known())
    except OutsideError:  # udev reports each filesystem: a unit of a disk that nobody asked for does not fail
        return None
    return next((each for each in found if each.disk is None and each.device.uuid == identity), None)


def unknown_disk_lines(
    rotation: RotationSet, known: Configuration, views: HistoryReader, now: datetime, here: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return a line for the last unknown disk that came while this set waited, as long as it waits still.

    `here`: the lines about those that are plugged in, of which nothing is said twice.
    """
    facts = views.memory("")
    found = [_parse(value) for key, value in facts.items() if key.startswith(_UNKNOWN)]
    own = [each for each in found if each is not None and each.set == rotation.name and each.at <= now]
    if not own or not waits_for_disk(rotation, known, views, now):
        return ()
    last = max(own, key=lambda each: each.at)
    if any(line.startswith(last.says) for line in here):
        return ()
    return (f"{last.says} (plugged in {last.at.astimezone():%Y-%m-%d %H:%M}); {last.hint}",)


def _parse(text: str) -> UnknownDisk | None:
    """Return the record of an unknown disk; None for a damaged one, which is only a memory."""
    try:
        value = parse_json(text)
        if not isinstance(value, Mapping):
            return None
        return UnknownDisk(
            set=str(value["set"]), says=str(value["says"]), hint=str(value["hint"]), at=parse_instant(str(value["at"]))
        )
    except (KeyError, ValueError):
        return None
