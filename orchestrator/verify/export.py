"""Digests as a file for sha256sum -c, so that a copy can be proved where poolferry is not installed.

Changes things.
"""

import os
import re
from collections.abc import Iterable

from orchestrator.verify.manifest import rename_whole

_SPECIAL = re.compile(rb"[\\\n\r]")
_ESCAPED = re.compile(rb"\\(.?)", re.DOTALL)
_SHORT = {b"\\": b"\\\\", b"\n": b"\\n", b"\r": b"\\r"}
_LONG = {b"\\": b"\\", b"n": b"\n", b"r": b"\r"}


def write_sums(path: str, digests: Iterable[tuple[bytes, str]]) -> int:
    """Writes a file as sha256sum does, for `sha256sum -c` in the root of the tree; returns how many lines.

    `digests`: paths and "sha256:…". Raises: ValueError for another algorithm · OSError.
    """
    part = f"{path}.part"
    count = 0
    with open(part, "wb") as file:
        for name, digest in digests:
            file.write(format_sum(name, digest))
            count += 1
        file.flush()
        os.fsync(file.fileno())
    rename_whole(part, path)
    return count


def format_sum(name: bytes, digest: str) -> bytes:
    """One line, newline included; a backslash in front says that the name is escaped."""
    algorithm, _, plain = digest.partition(":")
    if algorithm != "sha256":
        raise ValueError(f"sha256sum knows nothing of {algorithm}")
    shown = _SPECIAL.sub(lambda match: _SHORT[match[0]], name)
    return b"%b%b  ./%b\n" % (b"\\" if shown != name else b"", plain.encode("ascii"), shown)


def parse_sum(line: bytes) -> tuple[bytes, str]:
    """The path and the digest of one line without its newline. Raises: ValueError."""
    escaped = line.startswith(b"\\")
    digest, gap, name = line.removeprefix(b"\\").partition(b"  ./")
    if not gap or not re.fullmatch(rb"[0-9a-f]{64}", digest):
        raise ValueError(f"not a digest and a name: {line!r}")
    return _ESCAPED.sub(_long, name) if escaped else name, f"sha256:{digest.decode('ascii')}"


def _long(match: re.Match[bytes]) -> bytes:
    try:
        return _LONG[match[1]]
    except KeyError:
        raise ValueError(f"a backslash that begins no escape: {match[0]!r}") from None
