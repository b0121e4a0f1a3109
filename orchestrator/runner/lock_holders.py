"""The processes that hold a lock: the run that took it, or programs that still run after their run has ended."""

import os
import signal
from collections.abc import Sequence
from datetime import UTC, datetime

from orchestrator.domain.errors import NotNow
from orchestrator.domain.fast_dataclass import dataclass

_MOST_SIGNS = 100
_LONGEST = 1 << 17  # Linux allows no longer argument
_KILLED = 1 << (signal.SIGKILL - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHolder:
    """A process that has a lock's file open. `waits`: in the kernel, where no signal reaches it; `since`: its start."""

    pid: int
    line: str
    waits: bool
    since: datetime | None

    def __str__(self) -> str:
        since = f", since {self.since.astimezone():%Y-%m-%d %H:%M}" if self.since else ""
        return f"`{self.line}` (process {self.pid}{since})"


def explain_busy_lock(path: str, usually: str) -> NotNow:
    """Return why the lock at `path` is busy: `usually`, or the names of programs that a dead run left behind."""
    taker, holders = _taker(path), _holders(path)
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


def _holders(path: str) -> list[LockHolder]:
    """Return the other processes that have the file open, as far as this user may see them."""
    wanted = os.stat(path)
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid() and _has_open(name, (wanted.st_dev, wanted.st_ino)):
            found.append(_holder(name))
    return found


def _has_open(name: str, wanted: tuple[int, int]) -> bool:
    folder = f"/proc/{name}/fd"
    try:
        for descriptor in os.listdir(folder):
            opened = os.stat(f"{folder}/{descriptor}")
            if (opened.st_dev, opened.st_ino) == wanted:
                return True
    except OSError:  # it has ended, or belongs to another user
        return False
    return False


def _holder(name: str) -> LockHolder:
    try:
        with open(f"/proc/{name}/cmdline", "rb") as file:
            words = file.read(_LONGEST).decode(errors="replace").rstrip("\0").split("\0")
        with open(f"/proc/{name}/status", encoding="utf-8", errors="replace") as held:
            waits = parse_waits(held.read())
        since = _since(name)
    except (OSError, LookupError, ValueError):
        words, waits, since = [], False, None
    return LockHolder(
        pid=int(name), line=parse_line(words) or "a program without a command line", waits=waits, since=since
    )


def parse_line(words: Sequence[str]) -> str:
    """Return a command line for a message. When it is too long, its options are cut: program and object stay.

    Why the last argument: it names the dataset or the directory that zfs, rsync or mount writes.
    """
    line = " ".join(words)
    if len(line) <= _MOST_SIGNS:
        return line
    first = " ".join(words[: 2 if len(words) > 2 else 1])[: _MOST_SIGNS // 2]
    left = _MOST_SIGNS - len(first) - 3
    last = words[-1] if len(words) > 1 else line
    return f"{first} … {last}" if len(last) <= left else f"{first} …{last[-left:]}"


def parse_waits(status: str) -> bool:
    """Return True when no signal reaches a process, from its `status`.

    Source: proc(5). In the state D it waits in the kernel; or in another, where even SIGKILL stays pending.
    """
    told = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    pending = int(told["SigPnd"], 16) | int(told["ShdPnd"], 16)
    return told["State"].split()[0] == "D" or bool(pending & _KILLED)


def _since(name: str) -> datetime:
    """Return the start of the process. Source: proc(5): field 22 of stat, in ticks since the boot (/proc/stat)."""
    with open(f"/proc/{name}/stat", "rb") as file:
        ticks = int(file.read().rpartition(b")")[2].split()[19])
    with open("/proc/stat", "rb") as file:
        booted = next(int(line.split()[1]) for line in file if line.startswith(b"btime "))
    return datetime.fromtimestamp(booted + ticks / os.sysconf("SC_CLK_TCK"), UTC)
