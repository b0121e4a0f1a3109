"""The overlap of source and target that their paths do not show: a folder that is mounted twice has two of them."""

import os

from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.engines.rsync.left_out import may_leave_out
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
            if may_leave_out(options.excludes, os.fsencode(copy.path.removeprefix(source.path).strip("/"))):
                continue
            return f"lies inside the source {folder} by another mount"
        if not entered:
            continue
        for where, mounted in find_mounts_below(folder.path, mounts):
            if copy.lies_in(mounted) and not may_leave_out(
                options.excludes, os.fsencode(f"{where}{copy.path.removeprefix(mounted.path)}")
            ):
                return f"lies in what is mounted inside the source, at {show_name(f'{folder.path}/{where}')}"
    return ""
