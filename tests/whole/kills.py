"""Find where a run is, which process of it to kill, and what may be left of it."""

import os
import subprocess

from tests.processes import family
from tests.whole.house import House, kill, rsyncs

MIB = 1 << 20


def half_copied(house: House) -> int:
    """Return how much of the largest file in the work tree is there."""
    sizes = [0]
    for folder, _, names in os.walk(house.target / ".poolferry/work"):
        for name in names:
            try:
                sizes.append(os.lstat(os.path.join(folder, name)).st_size)
            except FileNotFoundError:
                continue
    return max(sizes)


def only_ours(house: House) -> None:
    """Nothing is left in the target but points, each with its manifest, and our own few files."""
    assert sorted(os.listdir(house.target)) == [".poolferry", "latest", "points"]
    assert {"work", "trash"}.isdisjoint(os.listdir(house.target / ".poolferry"))
    assert sorted(os.listdir(house.target / "points")) == sorted(
        name + end for name in house.points() for end in ("", ".manifest.gz")
    )


def strike(process: "subprocess.Popen[str]", victim: str) -> None:
    """Kills; the sender is rsync's eldest process, the receiver its youngest."""
    chosen = {
        "poolferry": [process.pid],
        "sender": rsyncs(process)[:1],
        "receiver": rsyncs(process)[-1:],
        "all": [process.pid, *(pid for pid, _ in family(process.pid))],
    }[victim]
    for pid in chosen:
        kill(pid)
