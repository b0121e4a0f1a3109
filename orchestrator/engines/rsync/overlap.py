"""The overlap of source and target that their paths do not show: a folder that is mounted twice has two of them."""

import os

from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location
from orchestrator.engines.rsync.options import options_of
from orchestrator.process.mounted import find_inner_path, find_mounts_below, read_mounts


def find_overlap(job: Job) -> str:
    """Return how source and target of this machine overlap by mounts, such as "lies inside the source /srv"; empty: they do not.

    What rsync does not enter is no overlap: another filesystem with one-file-system, and a mount below the source that a pattern leaves
    out.
    """
    target, options = job.target.location, options_of(job)
    if job.source.host is not None or target.host is not None:
        return ""
    try:
        mounts = read_mounts()
    except OSError:
        return ""
    if (copy := find_inner_path(target.path, mounts)) is None:
        return ""
    for folder in job.tree.folders:
        if (source := find_inner_path(folder.path, mounts)) is None:
            continue
        entered = not options.one_file_system or copy.number == source.number
        if source.lies_in(copy):
            how = "is" if source == copy else "holds"
            return f"{how} the source {folder} by another mount"
        if copy.lies_in(source) and entered:
            below = copy.path.removeprefix(source.path).strip("/")
            if _is_left_out(job, folder, below):
                continue
            return f"lies inside the source {folder} by another mount"
        if not entered:
            continue
        for where, mounted in find_mounts_below(folder.path, mounts):
            below = f"{where}{copy.path.removeprefix(mounted.path)}"
            if copy.lies_in(mounted) and not _is_left_out(job, folder, below):
                return f"lies in what is mounted inside the source, at {show_name(f'{folder.path}/{where}')}"
    return ""


def _is_left_out(job: Job, folder: Location, below: str) -> bool:
    """Return whether the job's patterns leave out a folder below one of its own; of several each is copied by its whole path."""
    from orchestrator.engines.rsync.patterns import is_left_out  # most targets lie apart from their source

    top = folder.path.strip("/") if job.parts else ""
    path = f"{top}/{below}" if top else below
    return is_left_out(options_of(job).excludes, os.fsencode(path.strip("/")), folder=True, top=os.fsencode(top))
