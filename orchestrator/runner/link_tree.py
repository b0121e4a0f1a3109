"""The links of a new point to the one before it, and clones of its large files, made before the copy."""

import os
import stat
from collections.abc import Callable

from orchestrator.domain.errors import LookAgain, Stopped
from orchestrator.domain.plan import FileCloning, TreeLinking
from orchestrator.domain.units import show_count
from orchestrator.process.forks import Answer, ForkedHelpers
from orchestrator.runner.run_recorder import RunRecorder
from orchestrator.trees.beneath import Folder, Untrusted
from orchestrator.trees.file_clone import clone_file
from orchestrator.trees.large_copies import ClonesRefused
from orchestrator.trees.linked_tree import LinkedTree, find_names_of

_LONGEST_COUNT = 16  # digits


def link_tree(work: TreeLinking, journal: RunRecorder, meanwhile: Callable[[], object]) -> None:
    """Link into the work tree what the source has unchanged. Raises: Stopped · LookAgain · OrchestratorError · OSError.

    `meanwhile`: is called once other processes link, where they do: then this one only waits.
    """
    stop = journal.tools.stop

    def start(answer: Answer) -> ForkedHelpers | None:
        if (helpers := ForkedHelpers.start(answer)) is not None:
            meanwhile()
        return helpers

    left_out = {os.fsdecode(path) for path in work.differing}
    try:
        if work.joined:
            with Folder.at_place(work.source.root.path) as source:
                left_out |= find_names_of(source, map(os.fsdecode, work.joined), below=work.source.parts)
        tree = LinkedTree(left_out, reserved=work.reserved, stops=lambda: stop.reason is not None, start=start)
        with Folder.at_place(work.point.tree.path) as old, Folder.at_place(work.tree.path) as new:
            tree.make(old, new)
    except Untrusted as error:
        # What is there now is no new work tree: another survey sees it, and the copy goes on without this step.
        raise LookAgain(f"nothing more is linked from point {work.point.name}: {error}") from error
    if stop.reason is not None:
        raise Stopped(stop.reason)


class LinkProgress:
    """The entries that a host says it has linked so far, one number a line, told once a minute. `after`: seconds to the first time."""

    def __init__(self, say: Callable[[str], None], monotonic: Callable[[], float], *, after: float = 60.0) -> None:
        self._say, self._monotonic, self._after = say, monotonic, after
        self._told, self._rest = monotonic(), b""

    def feed(self, chunk: bytes) -> None:
        """Take output, cut anywhere. What is no number is ignored: nothing depends on it."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[-_LONGEST_COUNT:]
        now = self._monotonic()
        if not lines or now - self._told < self._after:
            return
        count = lines[-1]
        if count.isdigit() and len(count) < _LONGEST_COUNT:
            self._told = now
            self._say(f"{show_count(int(count), 'entry', 'entries')} are linked so far")


def clone_files(work: FileCloning, journal: RunRecorder) -> None:
    """Clone what may be cloned. Raises: Stopped · OSError, such as for a full disk; else a file is left to the copy."""
    stop = journal.tools.stop
    with (
        Folder.at_place(work.source.path) as source,
        Folder.at_place(work.point.tree.path) as old,
        Folder.at_place(work.tree.path) as new,
    ):
        for path in work.paths:
            if stop.reason is not None:
                raise Stopped(stop.reason)
            large = _is_large(source, path, work.least) and _is_large(old, path, work.least)
            if not large or _is_large(new, path, 0):  # or it is there by now
                continue
            try:
                clone_file(old, new, path, partial=work.partial)
            except ClonesRefused:
                return


def _is_large(tree: Folder, path: bytes, least: int) -> bool:
    """Return whether a regular file of at least so many bytes lies there."""
    try:
        seen = tree.status(path)
    except OSError:
        return False
    return stat.S_ISREG(seen.st_mode) and seen.st_size >= least
