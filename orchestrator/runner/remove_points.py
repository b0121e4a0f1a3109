"""The removal of points that a gate added to a folder here: out of sight by one rename each, kept apart from the gate's own writes."""

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator

from orchestrator.domain.errors import LookAgain, NotNow, OrchestratorError, Stopped
from orchestrator.domain.gate import ADDING
from orchestrator.domain.plan import PointsRemoval
from orchestrator.runner.kit_digests import OWN_FOLDER
from orchestrator.runner.run_recorder import RunRecorder
from orchestrator.trees.beneath import Folder, Untrusted
from orchestrator.trees.removal import empty_folder

_TRASH, _POINTS = "trash", "points"
_PATIENCE, _PAUSE = 60.0, 0.2  # seconds: for a request of the gate that writes, and between two looks


def remove_points(work: PointsRemoval, journal: RunRecorder) -> None:
    """Remove the points, and what a cut removal left. Raises: NotNow while a copy comes in · LookAgain · Stopped · OSError."""
    stop = journal.tools.stop
    try:
        with Folder.at_place(work.root.path) as root, root.enter(OWN_FOLDER) as ours:
            if work.points:
                with _alone(ours, work, journal), root.enter(_POINTS) as points, ours.make_folder(_TRASH) as trash:
                    for name, number in work.points:
                        _move_away(points, trash, name, number)
                    for folder in (trash, points):
                        os.fsync(folder.fd)
                    for name, _ in work.points:  # after the tree: a gate removes a manifest without one by itself
                        _remove_notes(points, name)
            with contextlib.suppress(FileNotFoundError):
                with ours.enter(_TRASH) as trash:
                    empty_folder(trash, stops=lambda: stop.reason is not None)
                if stop.reason is None:
                    os.rmdir(_TRASH, dir_fd=ours.fd)
    except Untrusted as error:
        why = f"{error.filename} {error.strerror}"
        raise OrchestratorError(
            why, hint=f"look at {work.root} with `findmnt -R` and `ls -la`; then run again"
        ) from error
    if stop.reason is not None:
        raise Stopped(stop.reason)


@contextlib.contextmanager
def _alone(ours: Folder, work: PointsRemoval, journal: RunRecorder) -> Iterator[None]:
    """Keep the gate from writing there meanwhile. Raises: NotNow where it writes for longer than a short wait."""
    stop, clock = journal.tools.stop, journal.tools.monotonic
    with contextlib.suppress(FileExistsError):
        ours.create_file(ADDING, b"")
    lock, until = ours.open_file(ADDING, change=True), clock() + _PATIENCE
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if clock() > until:
                    why = f"another machine is copying to {work.root} just now, and what it copies from must not go meanwhile"
                    raise NotNow(why, hint="the next run removes what is to go") from None
                if stop.wait(_PAUSE):
                    raise Stopped(stop.reason or "") from None
        yield
    finally:
        os.close(lock)


def _move_away(points: Folder, trash: Folder, name: str, number: str) -> None:
    """Move one point into the trash, if it is the one that was judged; one that is gone is fine. Raises: LookAgain · OSError."""
    try:
        found = os.stat(name, dir_fd=points.fd, follow_symlinks=False)
    except FileNotFoundError:
        return
    if str(found.st_ino) != number:
        raise LookAgain(f"point {name} is another one than the look found")
    try:
        os.rename(name, name, src_dir_fd=points.fd, dst_dir_fd=trash.fd)
    except OSError as error:
        if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
            raise
        os.rename(name, f"{name}.{number}", src_dir_fd=points.fd, dst_dir_fd=trash.fd)


def _remove_notes(points: Folder, name: str) -> None:
    for end in (".manifest.gz", ".damaged"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{name}{end}", dir_fd=points.fd)
