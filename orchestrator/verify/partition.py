"""Distribution of manifest entries to workers: every worker computes the same result by itself."""

from collections.abc import Iterable, Iterator

from orchestrator.verify.entry import UNKNOWN, ManifestEntry, parse_line, path_below, unescape

_PER_FILE = 64 << 10  # cost of opening a file, in bytes read in that time
_PER_NAME = 4 << 10
_BLOCK = 8 << 20
_BLOCK_ENTRIES = 256
_UNKNOWN = UNKNOWN.encode()


def worker_share(
    lines: Iterable[bytes], *, worker: int, of: int, prefix: bytes = b"", unknown_only: bool = False
) -> Iterator[list[tuple[int, ManifestEntry]]]:
    """Yield the blocks of one worker, each in inode order: entries with their number in the manifest.

    Each block goes to the worker with the least data so far, so that a few large files are distributed as well as many small
    ones. Why inodes: on many filesystems their order is nearly that of the disk.
    """
    loads = [0] * of
    owner = filled = names = 0
    block: list[tuple[int, ManifestEntry]] = []
    for number, line in enumerate(lines):
        if (prefix and not _inside(line, prefix)) or (unknown_only and not line.startswith(_UNKNOWN)):
            continue
        if filled >= _BLOCK or names >= _BLOCK_ENTRIES:
            if block:
                yield sorted(block, key=_inode)
                block = []
            loads[owner] += filled
            owner = loads.index(min(loads))
            filled = names = 0
        names += 1
        if owner == worker:
            entry = parse_line(line)
            filled += _PER_FILE + entry[2] if entry[1] == "f" else _PER_NAME
            block.append((number, _seen_from(prefix, entry) if prefix else entry))
            continue
        _, kind, size, _ = line.split(b"\t", 3)
        filled += _PER_FILE + int(size) if kind == b"f" else _PER_NAME
    if block:
        yield sorted(block, key=_inode)


def _inode(numbered: tuple[int, ManifestEntry]) -> int:
    return numbered[1].inode


def _inside(line: bytes, prefix: bytes) -> bool:
    return path_below(unescape(line.split(b"\t", 10)[9]), prefix) is not None


def _seen_from(prefix: bytes, entry: ManifestEntry) -> ManifestEntry:
    return entry._replace(path=path_below(entry.path, prefix) or b"")
