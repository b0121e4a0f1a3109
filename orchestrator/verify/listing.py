"""How a tree is listed, here or on a host: the command, and what its records mean.

GNU find ends each record with NUL and begins it with the path and `//`, which no path holds, so that sorting the raw
records sorts the entries.

Pure.
"""

import re
from collections.abc import Iterable, Iterator

from orchestrator.domain.command import Command, Effect
from orchestrator.domain.place import Location
from orchestrator.verify.entry import KINDS, NO_CONTENT, UNKNOWN, Entry, Line, new_entry, special

_FORMAT = r"%P//%y\t%s\t%T@\t%m\t%U\t%G\t%n\t%i\t%l\0"
_NAMES = r"%P//\0"
_PATTERN = re.compile(r"[\\*?\[\]]")


def listing_command(
    tree: Location,
    *,
    exclude: tuple[bytes, ...] = (),
    apart: tuple[bytes, ...] = (),
    one_filesystem: bool = False,
    names: bool = False,
) -> Command:
    """Lists every entry of a directory, itself first; `exclude`: names (no patterns) left out with all below them,
    wherever they are; `apart`: those left out in the root only.

    `one_filesystem`: what is mounted inside is left out, as rsync -x does. `names`: only the paths, a quarter of the
    work, as no file is looked at. It fails when a part cannot be read.
    """
    if not tree.path.startswith("/"):
        raise ValueError(f"not an absolute path: {tree.path}")
    skipped: list[str] = []
    for name in exclude:
        pattern = _PATTERN.sub(r"\\\g<0>", name.decode("utf-8", "surrogateescape"))
        skipped += ["-name", pattern, "-prune", "-o"]
    for name in apart:
        path = f"{tree.path.rstrip('/')}/./{name.decode('utf-8', 'surrogateescape')}"
        skipped += ["-path", _PATTERN.sub(r"\\\g<0>", path), "-prune", "-o"]
    return Command(
        # "/.": a root that is a symlink is entered, and its own name never meets an excluded one
        argv=(
            "find",
            tree.path.rstrip("/") + "/.",
            *(("-xdev",) * one_filesystem),
            *skipped,
            "-printf",
            _NAMES if names else _FORMAT,
        ),
        effect=Effect.READS,
        host=tree.host,
        environment=(("LC_ALL", "C"),),  # the decimal point of %T@, and patterns byte by byte
    )


def split_records(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The NUL-terminated records of an output that comes in pieces. Raises: ValueError when the last one is cut."""
    rest = b""
    for chunk in chunks:
        pieces = (rest + chunk).split(b"\0")
        rest = pieces.pop()
        yield from pieces
    if rest:
        raise ValueError(f"the output breaks off in the middle of a record: {rest[-200:]!r}")


def parse_listing(record: bytes) -> Entry:
    """The entry that one record tells; a regular file's digest is still unknown. Raises: ValueError."""
    path, _, rest = record.partition(b"//")
    kind, size, mtime, mode, uid, gid, nlink, inode, target = rest.split(b"\t", 8)
    seconds, nanos = mtime[:-11], mtime[-10:-1]  # find writes ten decimals, the last is 0
    mtime_ns = int(seconds) * 1_000_000_000 + int(nanos)  # also before 1970: -2.5 is second -2 and half a second more
    if kind not in KINDS:
        raise ValueError(f"an entry of unknown kind: {record!r}")
    plain = kind == b"f"
    return new_entry(Entry, (
        path, KINDS[kind], int(size) if plain else 0, mtime_ns, int(mode, 8), int(uid), int(gid), int(nlink),
        int(inode), target, UNKNOWN if plain else NO_CONTENT,
    ))  # fmt: skip


def plain_line(record: bytes, digest: str) -> Line | None:
    """The file of one record with its digest, as it is written; None where that takes more than moving text.

    Why: most files of a copy are such, and a line of text is half the work of an entry.
    """
    path, _, rest = record.partition(b"//")
    kind, size, mtime, others = rest.split(b"\t", 3)
    if kind != b"f" or mtime[0] in b"-0" or special(path):
        return None
    line = b"%b\tf\t%b\t%b%b\t%b%b\n" % (digest.encode(), size, mtime[:-11], mtime[-10:-1], others, path)
    return path + b"//", int(size), line
