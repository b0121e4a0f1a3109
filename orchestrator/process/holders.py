"""The processes that hold a file, a mount or a device, as a message names them."""

import os
import signal
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from orchestrator.domain.answers import split_lines, text_lines
from orchestrator.domain.fast_dataclass import dataclass

_MOST_SIGNS = 100
_LONGEST = 1 << 17  # Linux allows no longer argument
_KILLED = 1 << (signal.SIGKILL - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHolder:
    """A process that has a file open. `waits`: in the kernel, where no signal reaches it; `since`: its start; `at`: the file."""

    pid: int
    line: str
    waits: bool
    since: datetime | None
    at: str = ""

    def __str__(self) -> str:
        since = f", since {self.since.astimezone():%Y-%m-%d %H:%M}" if self.since else ""
        return f"`{self.line}` (process {self.pid}{since})"


def find_file_holders(path: str) -> list[FileHolder]:
    """Return the other processes that have the file open, as far as this user may see them. Raises: OSError: no such file."""
    wanted = os.stat(path)
    file = (wanted.st_dev, wanted.st_ino)
    return [_holder(pid) for pid in _processes() if int(pid) != os.getpid() and _has_open(pid, file)]


def find_mount_holders(mounts: Collection[str]) -> list[FileHolder]:
    """Return the processes, this one too, that keep one of the mounts from being unmounted: by a file or a folder.

    Why by names: a look at the file itself waits for ever where it lies on a server that is gone.
    """
    found = []
    for pid in _processes():
        if at := _use_of(pid, mounts):
            found.append(_holder(pid, at))
    return found


def find_namespace_holders(device: int) -> list[FileHolder]:
    """Return a process of each other mount namespace in which a block device is mounted. `device`: its number, as st_rdev."""
    mounted = f" {os.major(device)}:{os.minor(device)} "
    found: list[FileHolder] = []
    with suppress(OSError):
        seen = {os.readlink("/proc/self/ns/mnt")}
        for pid in sorted(_processes(), key=int):
            with suppress(OSError):
                namespace = os.readlink(f"/proc/{pid}/ns/mnt")
                if namespace not in seen and any(mounted in line for line in _lines(f"/proc/{pid}/mountinfo")):
                    found.append(_holder(pid))
                seen.add(namespace)
    return found


def _processes() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]


def _use_of(pid: str, mounts: Collection[str]) -> str:
    """Return what below the mounts a process uses; empty: nothing, as far as this user may see it."""

    def is_below(path: str) -> bool:
        return any(path == mount or path.startswith(f"{mount}/") for mount in mounts)

    folder = f"/proc/{pid}"
    for name in ("cwd", "root"):
        with suppress(OSError):
            if is_below(path := os.readlink(f"{folder}/{name}")):
                return path
    with suppress(OSError):
        for name in os.listdir(f"{folder}/fd"):
            with suppress(OSError):
                if is_below(path := os.readlink(f"{folder}/fd/{name}")):
                    return path
    return _mapped(folder, is_below)


def _mapped(folder: str, is_below: Callable[[str], bool]) -> str:
    """Return a file that the process has in its memory. Source: proc(5): maps, the path is the sixth field."""
    for line in _lines(f"{folder}/maps"):
        fields = line.split(None, 5)
        if len(fields) == 6 and is_below(fields[5]):
            return fields[5]
    return ""


def _lines(path: str) -> list[str]:
    with suppress(OSError), open(path, "rb") as file:
        return text_lines(file.read())
    return []


def _has_open(pid: str, wanted: tuple[int, int]) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        for descriptor in os.listdir(folder):
            opened = os.stat(f"{folder}/{descriptor}")
            if (opened.st_dev, opened.st_ino) == wanted:
                return True
    except OSError:  # it has ended, or belongs to another user
        return False
    return False


def _holder(pid: str, at: str = "") -> FileHolder:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(_LONGEST).decode(errors="replace").rstrip("\0").split("\0")
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace", newline="\n") as held:
            waits = parse_waits(held.read())
        since = _since(pid)
    except (OSError, LookupError, ValueError):
        words, waits, since = [], False, None
    line = parse_line(words) or "a program without a command line"
    return FileHolder(pid=int(pid), line=line, waits=waits, since=since, at=at)


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
    told = dict(line.split(":", 1) for line in split_lines(status) if ":" in line)
    pending = int(told["SigPnd"], 16) | int(told["ShdPnd"], 16)
    return told["State"].split()[0] == "D" or bool(pending & _KILLED)


def _since(pid: str) -> datetime:
    """Return the start of the process. Source: proc(5): field 22 of stat, in ticks since the boot (/proc/stat)."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        ticks = int(file.read().rpartition(b")")[2].split()[19])
    with open("/proc/stat", "rb") as file:
        booted = next(int(line.split()[1]) for line in file if line.startswith(b"btime "))
    return datetime.fromtimestamp(booted + ticks / os.sysconf("SC_CLK_TCK"), UTC)
