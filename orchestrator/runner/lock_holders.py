"""The reason for a busy lock: the run that took it goes on, or programs still run after their run has ended."""

from orchestrator.domain.errors import NotNow
from orchestrator.process.holders import find_file_holders


def explain_busy_lock(path: str, usually: str) -> NotNow:
    """Return why the lock at `path` is busy: `usually`, or the names of programs that a dead run left behind."""
    taker, holders = _taker(path), find_file_holders(path)
    if not holders or taker is None or any(holder.pid == taker for holder in holders):
        return NotNow(usually, hint="it continues by itself; `poolferry status` shows it")
    told = ", ".join(map(str, holders))
    if any(holder.waits for holder in holders):
        return NotNow(
            f"an earlier run has ended, but a program of it waits in the kernel and cannot be ended: {told}",
            hint="`zpool status` shows whether a pool is suspended: bring its disk back and `zpool clear` it, or restart the machine",
        )
    return NotNow(
        f"an earlier run has ended, but a program of it still runs: {told}",
        hint=f"wait for it, or end it: kill {' '.join(str(holder.pid) for holder in holders)}",
    )


def _taker(path: str) -> int | None:
    """Return the process that took the lock last, as recorded in the file."""
    try:
        with open(path, "rb") as file:
            return int(file.read(20) or b"x")
    except (OSError, ValueError):
        return None
