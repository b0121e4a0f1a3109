"""Files of a copy at a restore point: the snapshot that holds them, and the steps that mount it read-only in a folder."""

import os.path
from hashlib import sha256

from orchestrator.domain.answers import text_lines
from orchestrator.domain.dataset_restore import SnapshotView
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect, Pipeline, Refusal, Step
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.survey.survey import run_read_command, survey_points
from orchestrator.process.executor import Reader

_FOLDER = "/run/poolferry/points"


def survey_files(job: Job, path: bytes, point: RestorePoint, reader: Reader) -> SnapshotView | Refusal:
    """Return the snapshot of a path's dataset as of the point, and the steps to mount it. Raises: OrchestratorError."""
    root = job.target.location
    below = [name[len(root.path) + 1 :] for name in _filesystems(root, reader)]
    owner = max((name for name in below if _holds(name, path)), key=len, default=None)
    if owner is None:
        return Refusal(why=f"{root} is not there, or no filesystem", evidence=(), hint="import its pool")
    dataset = root / owner if owner else root
    rest = path[len(os.fsencode(owner)) :].lstrip(b"/")
    snapshot = _as_of(_points(job, dataset, reader), point)
    if snapshot is None:
        why = f"{dataset} has no snapshot as old as {point.name}"
        return Refusal(why=why, evidence=(), hint="choose a newer --point")
    left_out = tuple(name for name in below if name != owner and _holds_below(path, name))
    return _shown(job, snapshot, rest, left_out)


def _filesystems(root: Location, reader: Reader) -> list[str]:
    words = ("list", "-Hp", "-r", "-t", "filesystem", "-o", "name", root.path)
    result = run_read_command(
        reader, commands.zfs_command(*words, effect=Effect.READS, where=CommandHost(host=root.host))
    )
    return text_lines(result.stdout)


def _holds(dataset: str, path: bytes) -> bool:
    return not dataset or (path + b"/").startswith(os.fsencode(dataset) + b"/")


def _holds_below(path: bytes, dataset: str) -> bool:
    return not path or os.fsencode(dataset).startswith(path + b"/")


def _points(job: Job, dataset: Location, reader: Reader) -> tuple[RestorePoint, ...]:
    from orchestrator.domain.fast_dataclass import replace

    return survey_points(replace(job, target=replace(job.target, location=dataset)), reader)


def _as_of(points: tuple[RestorePoint, ...], wanted: RestorePoint) -> RestorePoint | None:
    """Return the snapshot of the same name, else the newest that is not later."""
    same = next((each for each in points if each.name == wanted.name), None)
    return same or next((each for each in reversed(points) if each.taken <= wanted.taken), None)


def _shown(job: Job, snapshot: RestorePoint, rest: bytes, left_out: tuple[str, ...]) -> SnapshotView:
    whole = snapshot.tree
    folder = f"{_FOLDER}/{sha256(whole.path.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
    sudo = "sudo -n" if options_of(job).sudo else ""
    where = CommandHost(host=whole.host)
    show = commands.script_command(
        "show-snapshot.sh", whole.path, folder, sudo, effect=Effect.WRITES, where=where,
        with_functions=commands.MOUNT_FUNCTIONS,
    )  # fmt: skip
    hide = commands.script_command("hide-snapshot.sh", folder, sudo, effect=Effect.WRITES, where=where)
    return SnapshotView(
        point=snapshot, tree=Location(path=folder, host=whole.host), rest=rest, left_out=left_out,
        show=_step(f"mount {whole} read-only", f"{show_name(rest) or 'all'} of it is requested", show),
        hide=_step(f"unmount {whole}", "it is not needed any more", hide),
    )  # fmt: skip


def _step(action: str, why: str, command: Command) -> Step:
    return Step(action=action, why=why, worker="show", work=Pipeline(stages=(command,)), expected=None)
