"""The notes of runs in the state directory: what stays of them after a run that failed, so that they do not fill it."""

import contextlib
import os
import re

from orchestrator.domain.errors import Evidence, OrchestratorError, OutsideError
from orchestrator.domain.units import show_size

_KEPT = ("moved-", "earlier-")  # what a cut copy wrote: the next run goes on with it
_WORTH = 1 << 20  # bytes; fewer help nobody, and without notes all that was copied is read again


def keep_little(notes: str) -> None:
    """Remove what a run that failed noted for itself alone, such as lists of names; what the next run goes on with stays."""
    for name in _names(notes):
        if not name.startswith(_KEPT):
            remove_notes(f"{notes}/{name}")


def give_up_room(notes: str, error: OrchestratorError) -> OrchestratorError:
    """Remove all notes of a run that ended as the state directory was full, if they hold much; return the error that says so.

    Why: every other job records there, too, and nobody else would ever remove them.
    """
    held = sum(_size(f"{notes}/{name}") for name in _names(notes))
    if held < _WORTH:
        keep_little(notes)
        return error
    remove_notes(notes)
    evidence = error.evidence if isinstance(error, OutsideError) else None
    lasting = evidence or Evidence(lines=(), exits=(), last_output=())
    told = f"its notes in {notes} held {show_size(held)}, and are removed, so that other jobs find room: the next run needs as much again"
    return OutsideError(f"{error.why}; {told}", evidence=lasting, hint=error.hint)


def remove_notes(path: str) -> None:
    """Remove notes, be it a folder or a file. Why not by shutil: it takes 6 ms of a short restore."""
    with contextlib.suppress(OSError):
        if os.path.isdir(path) and not os.path.islink(path):
            for name in _names(path):
                remove_notes(f"{path}/{name}")
            os.rmdir(path)
        else:
            os.unlink(path)


def sweep_restores(state: str, job: str, begun: frozenset[int]) -> None:
    """Remove the notes of restores of a job that were killed. `begun`: the runs that go on."""
    ours = re.compile(re.escape(f"restore-{job}-") + r"(\d+)")
    for name in _names(f"{state}/notes"):
        if (match := ours.fullmatch(name)) and int(match[1]) not in begun:
            remove_notes(f"{state}/notes/{name}")


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_blocks * 512
    except OSError:
        return 0
