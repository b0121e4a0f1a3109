"""A folder of our own for the data of a restore test, removed afterwards."""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.units import show_size
from orchestrator.process.stop import StopRequest
from orchestrator.runner.locks import lock_destination
from orchestrator.trees.beneath import Folder, writable_by_others

MARKER = "poolferry-drill"
_SPARE = 64 << 20


def folder_of(job: Job, state: str) -> str:
    """Return the folder for restore tests of this job alone."""
    return f"{job.drill.scratch or f'{state}/drill'}/poolferry-drill-{job.name}"


@contextlib.contextmanager
def scratch_folder(folder: str, state: str, *, stop: StopRequest, patience: float) -> Iterator[tuple[int, ...]]:
    """Make the folder, empty except our marker; remove it at the end. Yields lock descriptors for children.

    Raises: NotNow while another restore test uses it; OrchestratorError for a folder that is not ours.
    """
    with lock_destination(Location(path=folder), state, wait=stop.wait, patience=patience) as inherit:
        sweep_scratch(folder)
        try:
            os.makedirs(folder, mode=0o700)
        except FileExistsError:
            raise OrchestratorError(
                f"{folder} has come to be there meanwhile, and no drill made it",
                hint="look who made it, or name another [drill] scratch",
            ) from None
        with open(f"{folder}/{MARKER}", "x", encoding="utf-8") as file:
            file.write("poolferry drills here, and removes this folder afterwards\n")
        try:
            yield inherit
        finally:
            sweep_scratch(folder)


def sweep_scratch(folder: str) -> None:
    """Remove the remains of a restore test, also of a killed one. Raises: OrchestratorError for a folder that is not ours."""
    if not os.path.isdir(folder) or os.path.islink(folder):
        return
    if os.listdir(folder) and not os.path.isfile(f"{folder}/{MARKER}"):
        raise OrchestratorError(
            f"{folder} was not made by a drill, so it is not touched",
            hint="move it away, or name another [drill] scratch",
        )
    if os.geteuid() != 0:  # permissions of the restored data may forbid even its owner to remove it
        for path, _, _ in os.walk(folder):
            os.chmod(path, 0o700)
    with Folder(os.path.dirname(folder)) as above, above.enter(os.path.basename(folder)) as opened:
        if os.fstat(opened.fd).st_uid != os.geteuid():
            raise OrchestratorError(
                f"{folder} belongs to another user, so no drill made it", hint="name another [drill] scratch"
            )
        for name in [each for each in os.listdir(opened.fd) if each != MARKER]:
            _remove(name, opened.fd)
    shutil.rmtree(folder)  # the marker is removed last: after an interruption the rest is still recognized as ours


def _remove(name: str, folder: int) -> None:
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        shutil.rmtree(name, dir_fd=folder)
    else:
        os.unlink(name, dir_fd=folder)


def refuse_place(job: Job, folder: str) -> Refusal | None:
    """Refuse a folder within the source, where it would be copied, or within the copies, where it would be one."""
    if not folder.startswith("/"):
        why = f"[drill] scratch is {job.drill.scratch}, a dataset, and {job.name} copies files"
        return Refusal(why=why, evidence=(), hint='name a folder: [drill] scratch = "/srv/scratch"')
    if found := next(writable_by_others((folder,)), None):
        why = f"{found.file} {found.what}, so the scratch folder {folder} could be exchanged for a link"
        return Refusal(
            why=why, evidence=(), hint=f'{found.expected}; or name another: [drill] scratch = "/srv/scratch"'
        )
    real = os.path.realpath(folder)
    places = [("the source", folder) for folder in job.tree.folders]
    for called, place in (*places, ("the copies", job.target.location)):
        if place.host is None and f"{real}/".startswith(f"{os.path.realpath(place.path).rstrip('/')}/"):
            why = f"the scratch folder {folder} lies within {called} of {job.name}, {place}"
            return Refusal(why=why, evidence=(), hint='name another: [drill] scratch = "/srv/scratch"')
    return None


def refuse_space(folder: str, needed: int, job: Job) -> Refusal | None:
    """Refuse a restore test when the folder has not enough free space."""
    free = shutil.disk_usage(folder).free
    if needed + needed // 50 + _SPARE <= free:
        return None
    smaller = ", or make [drill] size smaller" if free > _SPARE and needed > free - _SPARE else ""
    return Refusal(
        why=f"the drill brings back {show_size(needed)}, and {show_size(free)} are free in {folder}, of which {show_size(_SPARE)} are to stay free",
        evidence=(f"[drill] size = {show_size(job.drill.size)}",),
        hint=f"free space there, or name a folder with more space as [drill] scratch{smaller}",
    )
