"""python -m tests.bench.zfs: measures datasets on real OpenZFS, in the lab, next to the bare programs and to others'. Judges nothing.

Every number comes from one run of this on one machine: ratios of what was measured in turns, in one restored machine (two
for what travels). A promise that is not kept is a word in the table and no failure.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tests.bench.__main__ import size
from tests.bench.machine import machine, told
from tests.bench.rows import Row, left_out, table
from tests.bench.zfs_gates import gates
from tests.bench.zfs_planner import planning
from tests.bench.zfs_runs import running
from tests.bench.zfs_streams import restoring, streaming
from tests.bench.zfs_tools import PEERS
from tests.bench.zfs_visit import visiting
from tests.lab.common import LabError
from tests.lab.emulator import qemu_version
from tests.lab.laboratory import Lab, missing

PARTS = ("a", "b", "c", "d", "e", "f")
_HOW = """\
A ratio is ours over theirs. The machines are emulated: a program's start weighs more in them than on a real machine, and
seconds depend on what else this one does ("load before"); commands do not. Processor: what the whole machine used."""


def measure(requested: argparse.Namespace) -> Iterator[Row]:
    """The rows as they come. What cannot be measured here is a row that says why."""
    parts: dict[str, Callable[[Lab], Iterable[Row]]] = {
        "a": lambda lab: streaming(lab, local=requested.local, far=requested.far, rounds=requested.rounds),
        "b": lambda lab: running(
            lab,
            sizes=requested.datasets,
            snapshots=requested.snapshots,
            rounds=requested.rounds,
            enough=requested.enough,
            peers=[peer for peer in PEERS if peer.name in requested.against],
        ),
        "d": lambda lab: restoring(lab, local=requested.local, far=requested.far, rounds=requested.rounds),
        "e": lambda lab: visiting(lab, rounds=requested.rounds),
        "f": lambda lab: gates(lab, far=requested.far, datasets=requested.gated, rounds=requested.rounds),
    }
    if "c" in requested.only:
        yield from planning(requested.rounds)
    chosen = [name for name in requested.only if name in parts]
    if not chosen:
        return
    if why := missing():
        yield from (left_out(name, "in the lab", why) for name in chosen)
        return
    with Lab() as lab:
        lab.prepare()
        for name in chosen:
            try:
                yield from parts[name](lab)
            except (LabError, RuntimeError, OSError) as error:
                yield left_out(name, "stopped", str(error))


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of "10,100". Raises: ValueError."""
    return tuple(int(one) for one in text.split(","))


def names_among(known: Sequence[str]) -> Callable[[str], list[str]]:
    """Reads "b,c", of what there is. Raises: ArgumentTypeError."""

    def read(text: str) -> list[str]:
        requested = text.split(",")
        if unknown := [name for name in requested if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: there is {', '.join(known)}")
        return requested

    return read


def arguments(words: list[str]) -> argparse.Namespace:
    """Return what was asked for."""
    requested = argparse.ArgumentParser(prog="python -m tests.bench.zfs", description="Measures; judges nothing.")
    requested.add_argument(
        "--datasets", type=numbers, default=(10, 100, 500), help="how many, again and again (10,100,500)"
    )
    names = [peer.name for peer in PEERS]
    requested.add_argument("--against", type=names_among(names), default=names, help=",".join(names))
    requested.add_argument(
        "--enough",
        type=float,
        default=0,
        help="stop another after so many times what ours took, 5 minutes at least (never)",
    )
    requested.add_argument("--snapshots", type=int, default=20, help="of each dataset (20)")
    requested.add_argument("--local", type=size, default=1 << 30, help="bytes of a stream within one machine (1G)")
    requested.add_argument("--far", type=size, default=256 << 20, help="bytes of a stream between two: 10 MB/s (256M)")
    requested.add_argument("--gated", type=int, default=100, help="datasets through a gate (100)")
    requested.add_argument("--rounds", type=int, default=3, help="turns; fewer for many datasets (3)")
    requested.add_argument("--only", type=names_among(PARTS), default=list(PARTS), help=",".join(PARTS))
    requested.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    return requested.parse_args(words)


def main(words: list[str]) -> int:
    """Measures and prints; 0 whatever the numbers are."""
    requested = arguments(words)
    os.environ["POOLFERRY_LAB_COLD"] = "1"  # how long a start takes is part of what is measured
    about = {**machine(Path(tempfile.gettempdir())), "lab": qemu_version() if not missing() else missing()}
    rows = []
    for row in measure(requested):
        rows.append(row)
        said = row.note if row.middle is None else f"{row.middle:.3g} {row.unit} ({row.note})"
        print(f"({row.part}) {row.what}: {said}", file=sys.stderr, flush=True)
    if requested.json:
        print(json.dumps({"format": 1, "machine": about, "rows": [row.value for row in rows]}, indent=2))
    else:
        print(f"{told(about)}\n\n{table(rows)}\n\n{_HOW}")
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(sys.argv[1:]))
