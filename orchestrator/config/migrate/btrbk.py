"""Jobs from a btrbk.conf. btrfs send and receive is not carried: a job can only copy a live subvolume by rsync, by consent.

Source: btrbk.conf(5) 0.32.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from orchestrator.config.migrate.job_text import JobText, Value
from orchestrator.config.migrate.program_calls import (
    ImportedSettings,
    program_schedules,
    sections_of,
    tell_program_schedule,
    without_schedule,
)
from orchestrator.config.migrate.result import ImportBuilder, ImportResult, Lost
from orchestrator.config.models import parse_any_location
from orchestrator.config.parse_job import Engines
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location, url_of_ssh_place

_KINDS = {"h": "hourly", "d": "daily", "w": "weekly", "m": "monthly", "y": "yearly"}
_CARRIED = frozenset("target_preserve target_preserve_min ssh_identity ssh_port ssh_user".split())
_QUIET = frozenset(
    "timestamp_format snapshot_dir snapshot_name snapshot_create snapshot_preserve snapshot_preserve_min incremental incremental_clones "
    "incremental_prefs preserve_day_of_week preserve_hour_of_day transaction_log transaction_syslog lockfile group noauto cache_dir "
    "backend backend_local backend_remote backend_local_user btrfs_commit_delete stream_buffer stream_buffer_remote stream_compress "
    "stream_compress_level send_protocol warn_unknown_targets ssh_compression ssh_cipher_spec".split()
)
_NOT_CARRIED = (
    "poolferry carries no btrfs snapshots: btrbk does that well. With --live this becomes a job that copies the live subvolume by rsync, "
    "file by file"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BtrbkTarget:
    """One subvolume and where it goes, with all options that hold there. `wildcard`: the name stands for several subvolumes."""

    where: str
    source: str
    target: str
    options: Mapping[str, str]


def import_btrbk(settings: ImportedSettings, engines: Engines, *, live: bool) -> ImportResult:
    """Import btrbk's files. `live`: the consent to copy live subvolumes; else all is listed. Raises: ValueError."""
    work = ImportBuilder()
    schedules = list(program_schedules(work, settings, "btrbk"))
    times = schedules[0].keys if schedules else {}
    for file, text in settings.files:
        found, lost = parse_btrbk_conf(file, text)
        for where, why in lost:
            work.say(where, Lost(f"is not carried over: {why}"))
        for each in found:
            try:
                if not live:
                    raise ValueError(_NOT_CARRIED)
                _import_target(work, each, times)
            except ValueError as error:
                work.say(each.where, Lost(f"is not carried over: {error}"))
    jobs = [job.name for job in work.jobs]
    for schedule in schedules:
        tell_program_schedule(work, schedule, jobs)
    if jobs and not schedules:
        work.say(f"{settings.files[0][0]}:1", without_schedule("btrbk"))
    then = [
        "btrbk's snapshots and backups stay where they are; the first run of each job copies everything, into a folder of its own"
    ]
    return work.result(engines, then if jobs else ())


def parse_btrbk_conf(file: str, text: str) -> tuple[list[BtrbkTarget], list[tuple[str, str]]]:
    """Return each pair of a subvolume and a target, and (where, why) of what is lost in any case.

    Options hold for the section in which they stand and for those below it; a target of a volume is one of all its subvolumes.
    """
    top: dict[str, str] = {}
    volume, volume_options, above = "", dict[str, str](), list[tuple[str, str]]()
    subvolumes: list[_Subvolume] = []
    here: dict[str, str] = top
    lost: list[tuple[str, str]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        key, _, value = re.sub(r"(^|\s)#.*", "", line).strip().partition(" ")
        value, where = value.strip(), f"{file}:{number}"
        if key == "volume":
            volume, volume_options, above = value, dict(top), []
            here = volume_options
        elif key == "subvolume":
            path = value if value.startswith("/") or not volume else f"{volume.rstrip('/')}/{value}"
            subvolumes.append(
                _Subvolume(where=where, path=path, options=dict(volume_options or top), targets=list(above))
            )
            here = subvolumes[-1].options
        elif key == "target":
            kind, _, rest = value.partition(" ")
            place = rest.strip() if kind in ("send-receive", "raw") else value
            if here is top or here is volume_options:
                above.append((where, place))
            elif subvolumes:
                subvolumes[-1].targets.append((where, place))
        elif key in _CARRIED or key in _QUIET:
            here[key] = value
        elif key:
            lost.append((where, f"{key} has no equivalent in poolferry"))
    lost += [
        (each.where, f"{each.path} has no target: poolferry takes no btrfs snapshots")
        for each in subvolumes
        if not each.targets
    ]
    return list(_pairs(subvolumes)), lost


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subvolume:
    where: str
    path: str
    options: dict[str, str]
    targets: list[tuple[str, str]]


def _pairs(subvolumes: Sequence[_Subvolume]) -> Iterator[BtrbkTarget]:
    for each in subvolumes:
        for _, place in each.targets:
            yield BtrbkTarget(where=each.where, source=each.path, target=place, options=each.options)


def _import_target(work: ImportBuilder, each: BtrbkTarget, times: Mapping[str, Value]) -> None:
    """Make a job of one pair. Raises: ValueError."""
    source, base = _location(each.source), _location(each.target)
    if set("*?[") & set(source.path):
        raise ValueError(f"{each.source}: a job has one folder as its source: write a line for each subvolume")
    name = work.name(source, to=base.host.name if base.host else "disk")
    place = work.place(base / f"poolferry/{name}", f"{name}-copies")
    head: dict[str, Value] = {"engine": "rsync", "source": str(source), "target": place, **times}
    pipe = _ssh_options(each) if source.host or base.host else {}
    keep, notes = _keep(each.options.get("target_preserve", ""))
    sections = sections_of(head=head, keep=keep, pipe=pipe)
    work.add(each.where, JobText(name=name, origin=each.where, sections=sections), (_LIVE, *notes))


_LIVE = "copies the live subvolume, not a snapshot: a file that changes meanwhile is copied as it is then; nested subvolumes are left out"


def _location(text: str) -> Location:
    found = parse_any_location(text if "://" in text else url_of_ssh_place(text) or text)
    if not found.path.startswith("/"):
        raise ValueError(f"{text} is no whole path")
    return found


def _ssh_options(each: BtrbkTarget) -> dict[str, Value]:
    flags = (("ssh_identity", "-i"), ("ssh_port", "-p"), ("ssh_user", "-l"))
    words = [
        word
        for key, flag in flags
        if (value := each.options.get(key, "")) not in ("", "default", "no")
        for word in (flag, value)
    ]
    return {"ssh-options": tuple(words)} if words else {}


def _keep(text: str) -> tuple[dict[str, Value], list[str]]:
    """Return [keep] for "20d 10w *m": an * keeps all, which a job can only do by naming no number at all."""
    keep: dict[str, Value] = {}
    for number, kind in re.findall(r"([0-9]{1,5}|\*)([hdwmy])", text):
        if number == "*":
            return {}, ["target_preserve keeps some for ever, so all points stay: write [keep] to remove any"]
        if int(number):
            keep[_KINDS[kind]] = int(number)
    return keep, []
