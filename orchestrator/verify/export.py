"""Digests as a file for sha256sum -c, so that a copy can be verified where poolferry is not installed."""

import os
import re
from collections.abc import Iterable

from orchestrator.verify.manifest import rename_whole

_SPECIAL = re.compile(rb"[\\\n\r]")
_SHORT = {b"\\": b"\\\\", b"\n": b"\\n", b"\r": b"\\r"}


def write_sums(path: str, digests: Iterable[tuple[bytes, str]]) -> int:
    """Write a file as sha256sum does, for `sha256sum -c` in the root of the tree; return the number of lines.

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
    """Return one line, newline included; a backslash at its start marks an escaped name."""
    algorithm, _, plain = digest.partition(":")
    if algorithm != "sha256":
        raise ValueError(f"sha256sum knows nothing of {algorithm}")
    shown = _SPECIAL.sub(lambda match: _SHORT[match[0]], name)
    return b"%b%b  ./%b\n" % (b"\\" if shown != name else b"", plain.encode("ascii"), shown)
