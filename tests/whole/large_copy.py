"""A large file that is on its way, so that its copy can be cut in the middle."""

import os
from pathlib import Path

from tests.whole.house import House, wait_until

AT_ONCE = {"attempts": 4, "wait": "1s", "wait-at-most": "1s"}


def random_file(path: Path, size: int) -> Path:
    """A file that no compression makes smaller."""
    with open(path, "wb") as file:
        file.writelines(os.urandom(10_000_000) for _ in range(size // 10_000_000))
    return path


def in_the_middle(house: House, size: int) -> None:
    """Waits until about a third has arrived."""
    wait_until(lambda: arrived(house) > 0.3 * size)
    assert arrived(house) < 0.85 * size, "the cut comes too late to prove anything"


def arrived(house: House) -> int:
    """Bytes of the large file that lie in the work tree, under whatever name."""
    work = house.target / ".poolferry" / "work"
    return max((path.stat().st_size for path in work.rglob("*disk.img*") if path.is_file()), default=0)
