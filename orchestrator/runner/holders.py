"""Who holds a lock: the run that took it, or programs that outlived their run. Reads."""

import os
import signal

from orchestrator.domain.errors import NotNow
from orchestrator.domain.quick import dataclass

_WORDS = 100
_KILLED = 1 << (signal.SIGKILL - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """A process that has a lock's file open. `waits`: in the kernel, where no signal reaches it."""

    pid: int
    line: str
    waits: bool


def busy(path: str, usually: str) -> NotNow:
    """Why the lock at `path` cannot be had: `usually`, or the programs that a dead run left behind, by name."""
    taker, holders = _taker(path), _holders(path)
    if not holders or taker is None or any(holder.pid == taker for holder in holders):
        return NotNow(usually, cure="it goes on by itself; `poolferry status` shows it")
    told = ", ".join(f"`{holder.line}` (process {holder.pid})" for holder in holders)
    if any(holder.waits for holder in holders):
        return NotNow(
            f"an earlier run has ended, but a program of it waits in the kernel and cannot be ended: {told}",
            cure="`zpool status` tells whether a pool is suspended: bring its disk back and `zpool clear` it, or restart the machine",
        )
    return NotNow(
        f"an earlier run has ended, but a program of it still runs: {told}",
        cure=f"wait for it, or end it: kill {' '.join(str(holder.pid) for holder in holders)}",
    )


def _taker(path: str) -> int | None:
    """The process that took the lock last, as it noted in the file."""
    try:
        with open(path, "rb") as file:
            return int(file.read(20) or b"x")
    except (OSError, ValueError):
        return None


def _holders(path: str) -> list[Holder]:
    """The other processes that have the file open, as far as this user may see them."""
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
    except OSError:  # it has ended, or belongs to somebody else
        return False
    return False


def _holder(name: str) -> Holder:
    """Source: proc(5). In the state D it waits in the kernel; or in another, where even SIGKILL stays pending."""
    try:
        with open(f"/proc/{name}/cmdline", "rb") as file:
            words = file.read(4096).replace(b"\0", b" ").decode(errors="replace").strip()
        with open(f"/proc/{name}/status", "rb") as file:
            told = dict(line.split(b":", 1) for line in file if b":" in line)
        pending = int(told[b"SigPnd"], 16) | int(told[b"ShdPnd"], 16)
        waits = told[b"State"].split()[0] == b"D" or bool(pending & _KILLED)
    except (OSError, LookupError, ValueError):
        words, waits = "", False
    line = words if len(words) <= _WORDS else words[:_WORDS] + "…"
    return Holder(pid=int(name), line=line or "a program without a command line", waits=waits)
