"""Other processes as /proc tells of them. Each may end, or close what it has open, between any two looks: then there is nothing to tell."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


def living() -> Iterator[int]:
    """Each process that there is, those that ended and wait for their parent included."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def told(pid: int, file: str) -> bytes:
    """Return a file of /proc about a process; nothing where it is gone."""
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""


def argv_of(pid: int) -> list[str]:
    """Return its argv; nothing where it is gone, or has ended and waits for its parent."""
    return told(pid, "cmdline").decode(errors="surrogateescape").split("\0")[:-1]


def fields(pid: int) -> list[str]:
    """Return what /proc/PID/stat tells behind the program's name: state, parent, group, session, ...; `X` alone where it is gone."""
    return told(pid, "stat").decode(errors="replace").rpartition(")")[2].split() or ["X"]


def program(pid: int) -> str:
    return told(pid, "comm").decode(errors="replace").rstrip("\n")


def state(pid: int) -> str:
    """Return one letter: R, S, D, T, Z, ...; X where it is gone."""
    return fields(pid)[0]


def lives(pid: int) -> bool:
    """Return whether it is there and has not ended: a zombie has."""
    return state(pid) not in "ZX"


def is_there(pid: int) -> bool:
    """Return whether it is there, be it as a zombie."""
    return os.path.exists(f"/proc/{pid}")


def links(pid: int) -> list[str]:
    """Return what each of its descriptors is open on, as `socket:[7]` or a path, by their numbers."""
    found = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for number in sorted(os.listdir(f"/proc/{pid}/fd"), key=int):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # closed meanwhile
                found.append(os.readlink(f"/proc/{pid}/fd/{number}"))
    return found


def figure(pid: int, file: str, name: str) -> int:
    """Return the bytes that a file of /proc about it tells under the name, as `VmHWM:` of status; 0 where it is gone."""
    lines = told(pid, file).decode(errors="replace").splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(name)), 0)


def threads(pid: int) -> int:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return len(os.listdir(f"/proc/{pid}/task"))
    return 0


def folder_of(pid: int) -> Path | None:
    """Return the folder that it works in; None where it is gone."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/cwd").readlink()
    return None


def children(pid: int) -> list[int]:
    """Return those that it, or a thread of it, started and that are there, be it as zombies."""
    return [one for one in living() if fields(one)[1:2] == [str(pid)]]


def family(pid: int) -> list[tuple[int, str]]:
    """(pid, program) of every living descendant of a process."""
    parents = {one: int(rest[0]) for one in living() for letter, *rest in [fields(one)] if letter not in "ZX"}
    found: set[int] = set()
    while new := {one for one, parent in parents.items() if parent in found | {pid}} - found:
        found |= new
    return [(one, program(one)) for one in sorted(found)]


def members(session: int) -> list[int]:
    """The processes of a session."""
    return [one for one in living() if fields(one)[3:4] == [str(session)]]


def strays(folder: Path | str) -> list[str]:
    """Command lines of living processes, this one aside, that name the folder."""
    lines = (" ".join(argv_of(one)) for one in living() if one != os.getpid())
    return [line for line in lines if os.fspath(folder) in line]
