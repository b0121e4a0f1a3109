"""Scratch copies: clones of a point's snapshots, below a place beside the copy, mounted apart, destroyed by name.

Only datasets in that place with our mark are ever destroyed.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from orchestrator.domain.answers import bound_instant, text_lines
from orchestrator.domain.dataset_restore import DatasetRestoreRequest
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import check_zfs_names, point_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect, Pipeline, Plan, Refusal, Step
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.drills import ScratchClone
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import command_host
from orchestrator.engines.zfs.model import DatasetType, SideSurvey
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.restore.plan import cut_to_point, make_restore_job
from orchestrator.engines.zfs.survey.survey import parse_result, run_read_command, survey
from orchestrator.process.executor import Reader

PLACE = "poolferry-try"
MARK = "poolferry:try"  # on each scratch copy's root: the job, and the point that it shows
UNTIL = "poolferry:until"
FOLDER = "/run/poolferry/try"


def scratch_place(job: Job) -> Location:
    """Return the location of a job's scratch copies: beside its copy."""
    copy = job.target.location
    return Location(path=f"{copy.path.rpartition('/')[0] or copy.path}/{PLACE}", host=copy.host)


def plan_try(
    job: Job, below: str, until: RestorePoint, keep: datetime | None, run_request: RunRequest, reader: Reader
) -> Plan | Refusal:
    """Plan clones of the point in all datasets, mounted below a folder of their own. Raises: OrchestratorError."""
    dataset_request = DatasetRestoreRequest(to=scratch_place(job), below=below, until=until)
    back = make_restore_job(job, dataset_request)
    world, _ = cut_to_point(
        replace(survey(back, run_request, reader, whole=True), returning=job.target.location.path), until
    )
    copy = world.source
    if "" not in copy.datasets or not copy.datasets[""].snapshots:
        return Refusal(why=f"{copy.root} holds no snapshot that old", evidence=(), hint=f"poolferry points {job.name}")
    name = f"{job.name}-{point_name(run_request.now)}"
    made = tuple(_make(job, copy, scratch_place(job).path, name, until, keep))
    count = show_count(len(copy.datasets), "dataset")
    return Plan(summary=f"try {count} as of {until.name}: {FOLDER}/{name}", stages=tuple((step,) for step in made))


def _make(
    job: Job, copy: SideSurvey, place: str, name: str, until: RestorePoint, keep: datetime | None
) -> Iterator[Step]:
    where = command_host(copy)
    made = commands.zfs_command("create", "-p", "-u", "-o", "canmount=off", "-o", "mountpoint=none", place, effect=Effect.WRITES, where=where)  # fmt: skip
    yield _step(f"make {place}, if it is not there", "scratch copies lie there", made)
    marks = ("-o", f"{MARK}={job.name}@{until.name}", "-o", f"{UNTIL}={'' if keep is None else keep.isoformat()}")
    mounts: list[str] = []
    for below, dataset in sorted(copy.datasets.items()):
        newest = dataset.newest
        whole = f"{place}/{name}/{below}" if below else f"{place}/{name}"
        if newest is None:
            words: tuple[str, ...] = ("create", "-u", "-o", "canmount=off", whole)
        else:
            words = ("clone", *_options(dataset.kind, name, below), *(marks if not below else ()), f"{copy.full(below)}{newest.mark}", whole)  # fmt: skip
            mounts += (
                [whole]
                if dataset.kind is DatasetType.FILESYSTEM and (not dataset.encrypted or dataset.key_loaded)
                else []
            )
        yield _step(
            f"clone {copy.full(below)} to {whole}",
            "to be tried",
            commands.zfs_command(*words, effect=Effect.WRITES, where=where),
        )
    if mounts:
        command = commands.script_command("mount-scratch.sh", FOLDER, *mounts, effect=Effect.WRITES, where=where)
        yield _step(f"mount them below {FOLDER}/{name}", "nothing else is mounted there", command)


def _options(kind: DatasetType, name: str, below: str) -> tuple[str, ...]:
    """Return the clone's options: writable; a filesystem has its own folder, and is not mounted automatically."""
    if kind is DatasetType.VOLUME:
        return ("-o", "readonly=off")
    folder = f"{FOLDER}/{name}/{below}".rstrip("/")
    return ("-o", "readonly=off", "-o", "canmount=noauto", "-o", f"mountpoint={folder}", "-o", "sharenfs=off", "-o", "sharesmb=off")  # fmt: skip


def survey_scratch(job: Job, reader: Reader) -> tuple[ScratchClone, ...]:
    """Return the scratch copies in a job's place for them. Raises: OrchestratorError."""
    place = scratch_place(job)
    command = commands.script_command(
        "list-scratch.sh", place.path, effect=Effect.READS, where=commands.CommandHost(host=place.host)
    )
    result = run_read_command(reader, command)
    lines = text_lines(result.stdout)
    return parse_result(command, result, lambda: tuple(parse_scratch(lines, place)))


def parse_scratch(lines: Iterable[str], place: Location) -> Iterator[ScratchClone]:
    """Yield each scratch copy that has our mark. Raises: ValueError, also where a property of one has a value of several lines."""
    told = set[str]()
    for line in lines:
        whole, used, mountpoint, mark, until, again = (*line.split("\t"), "", "", "", "", "")[:6]
        job, at_sign, point = mark.partition("@")
        if whole != again or whole in told:
            raise ValueError(f"a property below {place.path} has a value of several lines")
        told.add(whole)
        if at_sign and whole.startswith(f"{place.path}/"):
            check_zfs_names((whole,))
            yield ScratchClone(
                name=whole.rpartition("/")[2], at=Location(path=whole, host=place.host), job=job, of=point,
                until=_time(until), used=int(used) if used.isdigit() else 0, mountpoint=mountpoint,
            )  # fmt: skip


def _time(text: str) -> datetime | None:
    try:
        return bound_instant(datetime.fromisoformat(text).astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def drop_step(job: Job, scratch: ScratchClone) -> Step:
    """Build the step that destroys one scratch copy with all data in it."""
    side = SideSurvey(root=scratch.at, pool_guid=0, version=(), sudo=options_of(job).sudo)
    command = commands.script_command(
        "drop-scratch.sh", scratch.at.path, MARK, effect=Effect.DESTROYS, where=command_host(side)
    )
    return _step(f"drop {scratch.at}", "requested, or its time is over", command)


def _step(action: str, why: str, command: Command) -> Step:
    return Step(action=action, why=why, worker="try", work=Pipeline(stages=(command,)), expected=None)
