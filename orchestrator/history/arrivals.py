"""The ledger of arrivals: when each point came through a gate, by this machine's clock. One file for each gate.

Points that are folders are numbered in it, too: nothing else tells in which order they came, whatever the clock said.

Why no SQLite: a gate writes one line, from many processes at once, when it can open and import nothing any more. A line that is
lost costs nothing: its point counts as come when it was first seen, and stays rather longer. So each line ends with its check
sum, and one that went bad counts as lost: with another time or number, a point would be removed in the place of an older one.
"""

import os
import zlib
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from orchestrator.domain.answers import parse_count, parse_instant
from orchestrator.trees.beneath import new_file_at

FOLDER = "arrivals"
SEEN = "~seen"  # the file of points that no gate recorded; no gate has such a name
_SUM = b"\t~"  # no bit of it away from a digit, which would make a sum a number
_MOST = 64 << 20  # bytes of one file: where nobody prunes, nobody reads it
Key = tuple[str, str]


class _Arrival(NamedTuple):
    at: datetime
    number: int  # 0: none


class ArrivalLedger:
    """A gate's file, open to write at its end, also from a process that can open nothing any more."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def note(self, arrivals: Iterable[tuple[str, str, datetime]]) -> None:
        """Write when points came: series, mark, time. Each line in one write, as others write too. Raises: OSError."""
        for series, mark, at in arrivals:
            if os.fstat(self._descriptor).st_size < _MOST:
                os.write(self._descriptor, _line(series, mark, at))

    def note_numbered(self, series: str, marks: Sequence[str], at: datetime, *, after: int) -> None:
        """Write that points came now, in this order, with the numbers after this one. Raises: OSError."""
        for number, mark in enumerate(marks, after + 1):
            if os.fstat(self._descriptor).st_size < _MOST:
                os.write(self._descriptor, _line(series, mark, at, number))

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
    Where they are numbered, the last counts: none can come again while it is there.
    """
    return {key: each.at for key, each in _all(state).items()}


def read_numbers(state: str, series: str) -> dict[str, int]:
    """Return the numbers of a series' points by their marks, where they are numbered. Raises: OSError."""
    return {mark: each.number for (name, mark), each in _all(state).items() if name == series and each.number}


def note_unknown(
    state: str,
    name: str,
    series: str,
    marks: Sequence[str],
    at: datetime,
    *,
    recorded: Collection[Key] | None = None,
    again: str = "",
) -> None:
    """Number those of the points that are in no ledger, in this order, as come now; and one that surely came now, `again`. Raises: OSError."""
    known = read_arrivals(state) if recorded is None else recorded
    fresh = [mark for mark in marks if (series, mark) not in known or mark == again]
    if fresh:
        after = max(read_numbers(state, series).values(), default=0)
        with open_ledger(state, name) as file:
            file.note_numbered(series, fresh, at, after=after)


def _all(state: str) -> dict[Key, "_Arrival"]:
    found: dict[Key, _Arrival] = {}
    for name in _files(state):
        _merge(found, _parse(_content(f"{state}/{FOLDER}/{name}")))
    return found


def _merge(found: dict[Key, "_Arrival"], lines: Iterable[tuple[Key, "_Arrival"]]) -> None:
    for key, each in lines:
        known = found.get(key)
        if known is None or (each.number > known.number if each.number or known.number else each.at < known.at):
            found[key] = each


def forget_arrivals(state: str, keeps: Callable[[str, str], bool]) -> None:
    """Drop the lines that are not kept, by series and mark, where they are more than half of a file. Raises: OSError."""
    for name in _files(state):
        path = f"{state}/{FOLDER}/{name}"
        lines = _parse(_content(path))
        kept: dict[Key, _Arrival] = {}
        _merge(kept, (line for line in lines if keeps(*line[0])))
        if len(lines) > 2 * len(kept) + 100:
            with new_file_at(path, mode=0o600) as file:
                file.writelines(_line(series, mark, each.at, each.number) for (series, mark), each in kept.items())


def _files(state: str) -> list[str]:
    try:
        return sorted(os.listdir(f"{state}/{FOLDER}"))
    except FileNotFoundError:
        return []


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        return file.read(min(os.fstat(descriptor).st_size, 2 * _MOST))


def _line(series: str, mark: str, at: datetime, number: int = 0) -> bytes:
    numbered = f"\t{number}" if number else ""
    told = f"{at.isoformat(timespec='seconds')}\t{mark}\t{series}{numbered}".encode("utf-8", "surrogateescape")
    return told + _SUM + b"%08x\n" % zlib.crc32(told)


def _parse(content: bytes) -> list[tuple[Key, "_Arrival"]]:
    """Return what the lines say. Those of earlier versions, which stand before all others, have no sum."""
    found, summed = list[tuple[Key, _Arrival]](), False
    for line in content.split(b"\n")[:-1]:
        told, mark_of_sum, check = line.rpartition(_SUM)
        summed = summed or bool(mark_of_sum)
        if summed and check != b"%08x" % zlib.crc32(told):
            continue
        try:
            at, mark, series, *number = (told if summed else line).decode("utf-8", "surrogateescape").split("\t")
            counted = parse_count(*number) if number else 0
            found.append(((series, mark), _Arrival(parse_instant(at), counted)))
        except (ValueError, TypeError):
            continue
    return found
