"""A writer of large files as tests call it, and what lies in its trees."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from orchestrator.trees.large_copies import LargeFileWriter

LEAST = 1 << 20
CONTENT = os.urandom(LEAST) + b"end"
PARTIAL = "partial"


def write(
    old: Path, new: Path, *paths: str, holes: bool = False, base: Path | None = None,
    tell: Callable[[bytes], object] = lambda _: None,
) -> list[bytes]:  # fmt: skip
    """Copy files; return what was reported."""
    told = list[bytes]()

    def hear(lines: bytes) -> None:
        told.append(lines)
        tell(lines)

    one, other, point = (os.open(each, os.O_RDONLY | os.O_DIRECTORY) for each in (old, new, base or new))
    try:
        device = os.fstat(one).st_dev
        below = point if base else -1
        writer = LargeFileWriter(("ours",), PARTIAL, hear, device, least=LEAST, holes=holes, base=below)
        for path in paths:
            writer.write(path, one, other)
    finally:
        for each in (one, other, point):
            os.close(each)
    return told


def large(file: Path, content: bytes = CONTENT) -> Path:
    file.write_bytes(content)
    return file


def aged(folder: Path) -> None:
    """Wait until no file was changed just now."""
    last = max(each.stat().st_ctime_ns for each in folder.rglob("*") if each.is_file())
    while time.time_ns() < last + 200_000_000:
        os.sched_yield()


def there(new: Path) -> list[str]:
    return sorted(str(each.relative_to(new)) for each in new.rglob("*") if not each.is_dir())
