"""Manifests on disk: what each entry of a point was, readable with zless, sorted, whole or refused.

Changes things.
"""

import os
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import chain

from orchestrator.domain.errors import ProofFailed
from orchestrator.domain.quick import dataclass
from orchestrator.verify.entry import Entry, escape, format_line, parse_line, unescape
from orchestrator.verify.packed import FORMAT, Damaged, packed_lines

SUFFIX = ".manifest.gz"
_COLUMNS = b"# columns: digest kind size mtime_ns mode uid gid nlink inode path target\n"
_BATCH = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a manifest says of itself. `digest`: the algorithm of the point's own choice."""

    job: str
    source: str
    point: str
    digest: str
    created: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """How much a manifest promises."""

    entries: int
    files: int
    bytes: int


def write_manifest(path: str, header: Header, entries: Iterable[Entry]) -> Totals:
    """Writes the entries, which come sorted, as one whole file that appears at once. Raises: ValueError · OSError."""
    part = f"{path}.part"
    count = files = size = 0
    last = b""
    pack = zlib.compressobj(1, wbits=31)
    with open(part, "wb") as file:
        file.write(pack.compress(_heading(header)))
        batch: list[bytes] = []
        for entry in entries:
            key = entry[0] + b"//"
            if key <= last:
                raise ValueError(f"entries out of order, or twice: {entry.path!r}")
            last = key
            count += 1
            if entry[1] == "f":
                files += 1
                size += entry[2]
            batch.append(format_line(entry))
            if len(batch) == _BATCH:
                file.write(pack.compress(b"".join(batch)))
                batch = []
        batch.append(b"# end entries=%d files=%d bytes=%d\n" % (count, files, size))
        file.write(pack.compress(b"".join(batch)) + pack.flush())
        file.flush()
        os.fsync(file.fileno())
    rename_whole(part, path)
    return Totals(entries=count, files=files, bytes=size)


def rename_whole(old: str, new: str) -> None:
    """Renames so that the new name survives a power cut."""
    os.rename(old, new)
    folder = os.open(os.path.dirname(new) or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_manifest(path: str, *, prefix: bytes = b"") -> tuple[Header, Iterator[Entry]]:
    """The heading, and the entries as they are read; `prefix`: only what lies there, as seen from there.

    Raises: ProofFailed (also while the entries are read: a cut manifest shows at its end) · OSError.
    """
    try:
        lines = packed_lines(path)
        told, first = _read_heading(lines)
        header = Header(
            job=told["job"], source=told["source"], point=told["point"], digest=told["digest"],
            created=datetime.fromisoformat(told["created"]).astimezone(UTC),
        )  # fmt: skip
    except (Damaged, KeyError, ValueError) as error:
        raise _failed(path, error) from error
    return header, _entries(path, chain(first, lines), prefix)


def _entries(path: str, lines: Iterable[bytes], prefix: bytes) -> Iterator[Entry]:
    last = b""
    inside = prefix + b"/"
    try:
        for line in lines:
            entry = parse_line(line)
            key = entry[0] + b"//"
            if key <= last:
                raise Damaged(f"{path}: entries out of order, or twice: {entry.path!r}")
            last = key
            if not prefix:
                yield entry
            elif key.startswith(inside):
                yield entry._replace(path=entry.path[len(inside) :])
    except ValueError as error:
        raise _failed(path, error) from error


def _failed(path: str, error: Exception) -> ProofFailed:
    why = str(error) if isinstance(error, Damaged) else f"{path}: the manifest is damaged: {error}"
    return ProofFailed(
        why, cure="the copy itself may be sound: bring the manifest back from another place, if there is one"
    )


def _heading(header: Header) -> bytes:
    told = {"job": header.job, "source": header.source, "point": header.point, "digest": header.digest}
    lines = [f"# {name}: ".encode() + escape(os.fsencode(value)) for name, value in told.items()]
    created = f"# created: {header.created.astimezone(UTC).isoformat()}".encode()
    return b"\n".join([FORMAT, *lines, created, _COLUMNS])


def _read_heading(lines: Iterator[bytes]) -> tuple[dict[str, str], list[bytes]]:
    """What the heading tells, and the line that was read too far."""
    told: dict[str, str] = {}
    for line in lines:
        if not line.startswith(b"#"):
            return told, [line]
        name, _, value = line[2:].partition(b": ")
        told[name.decode("ascii", "replace")] = os.fsdecode(unescape(value))
    return told, []
