"""The ledger of arrivals: when each point came through a gate, by this machine's clock. One file for each gate.

Why no SQLite: a gate writes one line, from many processes at once, when it can open and import nothing any more. A line that is
lost costs nothing: its point counts as come when it was first seen, and stays rather longer.
"""

import os
from collections.abc import Callable, Iterable
from datetime import datetime

from orchestrator.domain.answers import parse_instant
from orchestrator.trees.beneath import new_file_at

FOLDER = "arrivals"
SEEN = "~seen"  # the file of points that no gate recorded; no gate has such a name
_MOST = 64 << 20  # bytes of one file: where nobody prunes, nobody reads it
Key = tuple[str, str]


class ArrivalLedger:
    """A gate's file, open to write at its end, also from a process that can open nothing any more."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def note(self, arrivals: Iterable[tuple[str, str, datetime]]) -> None:
        """Write when points came: series, mark, time. Each line in one write, as others write too. Raises: OSError."""
        for series, mark, at in arrivals:
            if os.fstat(self._descriptor).st_size < _MOST:
                os.write(self._descriptor, _line(series, mark, at))

    def __enter__(self) -> "ArrivalLedger":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def open_ledger(state: str, name: str) -> ArrivalLedger:
    """Open the ledger of a gate. Raises: OSError."""
    os.makedirs(f"{state}/{FOLDER}", mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return ArrivalLedger(os.open(f"{state}/{FOLDER}/{name}", flags, 0o600))


def read_arrivals(state: str) -> dict[Key, datetime]:
    """Return when each point came, by its series and mark; a line that cannot be read counts as not written. Raises: OSError.

    Why the earliest of several: whoever sends can be told of as having sent again, and must not move a point to another day by it.
    """
    found: dict[Key, datetime] = {}
    for name in _files(state):
        for key, at in _parse(_content(f"{state}/{FOLDER}/{name}")):
            found[key] = min(at, found.get(key, at))
    return found


def forget_arrivals(state: str, keeps: Callable[[str, str], bool]) -> None:
    """Drop the lines that are not kept, by series and mark, where they are more than half of a file. Raises: OSError."""
    for name in _files(state):
        path = f"{state}/{FOLDER}/{name}"
        lines = _parse(_content(path))
        kept: dict[Key, datetime] = {}
        for key, at in lines:
            if keeps(*key):
                kept[key] = min(at, kept.get(key, at))
        if len(lines) > 2 * len(kept) + 100:
            with new_file_at(path, mode=0o600) as file:
                file.writelines(_line(series, mark, at) for (series, mark), at in kept.items())


def _files(state: str) -> list[str]:
    try:
        return sorted(os.listdir(f"{state}/{FOLDER}"))
    except FileNotFoundError:
        return []


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        return file.read(min(os.fstat(descriptor).st_size, 2 * _MOST))


def _line(series: str, mark: str, at: datetime) -> bytes:
    return f"{at.isoformat(timespec='seconds')}\t{mark}\t{series}\n".encode("utf-8", "surrogateescape")


def _parse(content: bytes) -> list[tuple[Key, datetime]]:
    found = list[tuple[Key, datetime]]()
    for line in content.decode("utf-8", "surrogateescape").split("\n")[:-1]:
        try:
            at, mark, series = line.split("\t")
            found.append(((series, mark), parse_instant(at)))
        except ValueError:
            continue
    return found
