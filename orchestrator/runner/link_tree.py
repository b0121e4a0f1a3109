"""The links of a new point to the one before it, made before the copy."""

import errno
import os

from orchestrator.domain.errors import LookAgain, Stopped
from orchestrator.domain.plan import TreeLinking
from orchestrator.runner.run_recorder import RunRecorder
from orchestrator.trees.beneath import Folder, Untrusted
from orchestrator.trees.linked_tree import LinkedTree, find_names_of


def link_tree(work: TreeLinking, journal: RunRecorder) -> None:
    """Link into the work tree what the source has unchanged. Raises: Stopped · LookAgain · OSError."""
    stop = journal.tools.stop
    left_out = {os.fsdecode(path) for path in work.differing}
    try:
        if work.joined:
            with Folder.at_place(work.source.root.path) as source:
                left_out |= find_names_of(source, map(os.fsdecode, work.joined), below=work.source.parts)
        tree = LinkedTree(left_out, reserved=work.reserved, stops=lambda: stop.reason is not None)
        with Folder.at_place(work.point.tree.path) as old, Folder.at_place(work.tree.path) as new:
            tree.make(old, new)
    except Untrusted as error:
        # What is there now is no new work tree: another survey sees it, and the copy goes on without this step.
        raise LookAgain(f"nothing more is linked from point {work.point.name}: {error}") from error
    except OSError as error:
        if error.errno != errno.EMLINK:
            raise
        raise LookAgain(f"a file of point {work.point.name} can have no more names on this filesystem") from error
    if stop.reason is not None:
        raise Stopped(stop.reason)
