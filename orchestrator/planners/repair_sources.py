"""Repair of data that a pool cannot repair itself: the command of each job that has the same data elsewhere."""

import shlex
from collections.abc import Iterator, Sequence

from orchestrator.domain.job import Job
from orchestrator.domain.place import Location

DAMAGED = "damaged: "  # before each name, in the evidence of a pool check


def explain_pool_repair(evidence: Sequence[str], jobs: Sequence[Job], pool: Location) -> tuple[str, ...]:
    """Return a line for each damaged name and job that can repair it. `evidence`: from a run of the pool engine."""
    names = [line.removeprefix(DAMAGED) for line in evidence if line.startswith(DAMAGED)]
    copying = [job for job in jobs if job.copies]
    lines = [line for name in names for line in _of_name(name, copying, pool)]
    return tuple(dict.fromkeys(lines))


def _of_name(name: str, jobs: Sequence[Job], pool: Location) -> Iterator[str]:
    """Yield repair lines of a `zpool status -v` name: "tank/photos@a:/one", "tank/photos:/one", or a file's path."""
    if name.startswith("/"):
        yield from _of_path(name, jobs, pool)
        return
    what, colon, file = name.partition(":")
    dataset, at, snapshot = what.partition("@")
    if not colon or dataset.startswith("<"):
        return
    for job in jobs:
        for bad, good, called in (
            (job.source, job.target.location, "copy"),
            (job.target.location, job.source, "source"),
        ):
            below = _below(dataset, bad, pool)
            if below is None or good.path.startswith("/") or (called == "copy" and job.target.rotates):
                continue
            other = good.path + below
            if called == "copy" and file.startswith("/"):
                point = ("--point", snapshot) if at else ()
                words = ("poolferry", "restore", "run", job.name, *point, "--path", (below + file).lstrip("/"))
                yield f"{name}: job {job.name} has a copy in {other}: {shlex.join((*words, '--to', 'FOLDER'))}"
            else:
                told = f"`poolferry verify {job.name} --content` shows how to repair it"
                yield f"{name}: the {called} of job {job.name} is {other}: {told}"


def _of_path(path: str, jobs: Sequence[Job], pool: Location) -> Iterator[str]:
    for job in jobs:
        if any(_under(path, folder, pool) is not None for folder in job.tree.folders):
            rest = _under(path, job.source, pool) or ""
            command = ("poolferry", "restore", "run", job.name, "--path", rest, "--to", path, "--aside")
            yield f"{path}: job {job.name} has a copy: {shlex.join(command)}"
        if _under(path, job.target.location, pool) is not None:
            yield f"{path}: it belongs to the copies of job {job.name}: poolferry verify {job.name}, then poolferry run {job.name}"


def _under(path: str, place: Location, pool: Location) -> str | None:
    """Return the path relative to the folder that holds it; None when it lies elsewhere."""
    if place.host != pool.host or not place.path.startswith("/") or not path.startswith(place.path.rstrip("/") + "/"):
        return None
    return path[len(place.path.rstrip("/")) + 1 :]


def _below(dataset: str, place: Location, pool: Location) -> str | None:
    """Return the dataset relative to one that it is or lies in, such as "/sub"; None when it lies elsewhere."""
    if place.host != pool.host or not f"{dataset}/".startswith(f"{place.path}/"):
        return None
    return dataset[len(place.path) :]
