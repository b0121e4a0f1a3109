"""The reason for a busy lock: the run that took it goes on, or programs still run after their run has ended; or a cut rename."""

import json

from orchestrator.domain.answers import open_sealed
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import NotNow
from orchestrator.domain.problem import SAME_COMMAND
from orchestrator.process.holders import find_file_holders


def explain_busy_lock(path: str, usually: str) -> NotNow:
    """Return why the lock at `path` is busy: `usually`, or the names of programs that a dead run left behind."""
    taker, holders = _taker(path), find_file_holders(path)
    if not holders or taker is None or any(holder.pid == taker for holder in holders):
        return NotNow(usually, hint=f"`poolferry status` shows that one; once it has ended, {SAME_COMMAND}")
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


def refuse_half_renamed(record: str, job: str) -> None:
    """Refuse a run of a job whose rename was cut: half of what is known of it has the other name. Raises: NotNow."""
    try:
        with open(record, encoding="utf-8", newline="\n") as file:
            told = json.loads(open_sealed(file.read()))
        before, now = str(told["before"]), str(told["now"])
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise NotNow(
            f"a rename of a job was cut, and its record cannot be read: {error}", hint=f"rm {quoted(str(record))}"
        ) from None
    if job in (before, now):
        raise NotNow(f"the rename of {before} to {now} was cut", hint=f"`poolferry rename {before} {now}` finishes it")
