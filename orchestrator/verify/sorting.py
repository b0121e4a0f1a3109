"""Sorts more records than memory holds: what is too much lies in nameless files of a folder meanwhile.

Changes things.
"""

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Self

from orchestrator.verify.listing import split_records

_FAN = 64  # spilled files open at once
_PIECE = 1 << 18
_CHUNK_BYTES = 32 << 20


def sorted_records(records: Iterable[bytes], *, chunk: int = 200_000, folder: str) -> Iterator[bytes]:
    """The records (without NUL in them) in byte order, equal ones in the order they came."""
    spills: list[IO[bytes]] = []
    held: list[bytes] = []
    try:
        for full in _chunks(records, chunk):
            if held:
                spills.append(_spill(held, folder))
            held = full
            held.sort()
            if len(spills) == _FAN:
                whole = _spill(heapq.merge(*map(_unspill, spills)), folder)
                for spill in spills:
                    spill.close()
                spills = [whole]
        yield from heapq.merge(*map(_unspill, spills), held) if spills else held
    finally:
        for spill in spills:
            spill.close()


def _chunks(records: Iterable[bytes], count: int) -> Iterator[list[bytes]]:
    chunk: list[bytes] = []
    size = 0
    for record in records:
        chunk.append(record)
        size += len(record)
        if len(chunk) >= count or size >= _CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _spill(records: Iterable[bytes], folder: str) -> IO[bytes]:
    file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed by whoever merges it
    batch: list[bytes] = []
    for record in records:
        batch.append(record)
        if len(batch) == 4096:
            file.write(b"\0".join(batch) + b"\0")
            batch = []
    if batch:
        file.write(b"\0".join(batch) + b"\0")
    file.seek(0)
    return file


def _unspill(file: IO[bytes]) -> Iterator[bytes]:
    return split_records(iter(lambda: file.read(_PIECE), b""))


def sorted_moves(moves: Iterable[tuple[bytes, str]], *, folder: str) -> Iterator[tuple[bytes, str]]:
    """Names and digests in the order of manifests; of several for one name the last one told."""
    told = (b"%b//%015d\t%b" % (path, number, digest.encode()) for number, (path, digest) in enumerate(moves))
    name, digest = None, ""
    for record in chain(sorted_records(told, folder=folder), (None,)):
        path, _, rest = record.partition(b"//") if record is not None else (None, b"", b"")
        if name is not None and path != name:
            yield name, digest
        name, digest = path, rest[16:].decode()


class Spool:
    """Keeps the digests that workers tell in any order, on disk, and gives them back in the manifest's order."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # lives as long as the spool

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def take(self, number: int, digest: str, path: bytes) -> None:
        """Keeps one digest."""
        self._file.write(b"%015d\t%b\t%b\0" % (number, digest.encode(), path))

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Numbers in the manifest and digests."""
        return ((int(number), digest.decode()) for number, digest, _ in self._records())

    def named(self) -> Iterator[tuple[bytes, str]]:
        """Paths and digests."""
        return ((path, digest.decode()) for _, digest, path in self._records())

    def _records(self) -> Iterator[list[bytes]]:
        self._file.seek(0)
        records = sorted_records(_unspill(self._file), folder=self._folder)
        return (record.split(b"\t", 2) for record in records)
