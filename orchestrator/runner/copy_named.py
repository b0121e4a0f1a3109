"""The small files that differ, and the times of folders, as far as system calls bring them: the rest is left to the copy's program."""

from collections.abc import Callable

from orchestrator.domain.errors import LookAgain, Stopped
from orchestrator.domain.plan import FolderTimes, SmallFileCopy
from orchestrator.runner.run_recorder import RunRecorder
from orchestrator.trees.beneath import Folder, Untrusted
from orchestrator.trees.named_entries import give_folder_times, write_named_files


def copy_small_files(
    work: SmallFileCopy, journal: RunRecorder, progress: Callable[[int], object]
) -> tuple[list[bytes], int]:
    """Copy what system calls can; return the paths that are left, and the bytes that were written. `progress`: takes these so far.

    Raises: Stopped · LookAgain · OSError, such as for notes that cannot be written.
    """
    stop = journal.tools.stop
    try:
        with (
            open(work.moved, "wb") as notes,
            Folder.at_place(work.source.path) as source,
            Folder.at_place(work.tree.path) as copy,
        ):

            def told(lines: bytes) -> None:
                notes.write(lines)
                notes.flush()  # a file without room for all of it is an error
                progress(int(lines.rpartition(b"\n")[0].rpartition(b"\n")[2].split()[0]))

            left, count = write_named_files(
                work.paths, source.fd, copy.fd, tell=told, stops=lambda: stop.reason is not None
            )
    except Untrusted as error:
        raise LookAgain(f"nothing more is copied by name: {error}") from error
    if stop.reason is not None:
        raise Stopped(stop.reason)
    return left, count


def give_times(work: FolderTimes) -> list[bytes]:
    """Give folders their times; return those that are left. Raises: LookAgain · OSError."""
    try:
        with Folder.at_place(work.source.path) as source, Folder.at_place(work.tree.path) as copy:
            return give_folder_times(work.paths, source.fd, copy.fd)
    except Untrusted as error:
        raise LookAgain(f"folders get no times: {error}") from error
