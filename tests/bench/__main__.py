"""python -m tests.bench: measures poolferry against bare programs on the same trees, and prints a table. Judges nothing.

Trees are made once and stay in the folder. Every number comes from one run of this on one machine: ratios of times
measured in turns. A promise that is not kept is a word in the table and no failure.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.bench.back import back
from tests.bench.clock import clock
from tests.bench.copy import first_copies, nothing_changed
from tests.bench.far import far
from tests.bench.gates import gates
from tests.bench.images import images
from tests.bench.machine import filesystem, machine, told
from tests.bench.memory import memory
from tests.bench.others import others
from tests.bench.rows import Row, left_out, table
from tests.bench.start import starting
from tests.bench.trees import Trees
from tests.bench.verify import reading

PARTS: dict[str, Callable[[Trees, int], Iterable[Row]]] = {
    "a": nothing_changed, "b": first_copies, "c": reading, "d": memory, "e": starting, "f": others, "g": clock,
    "h": gates, "i": far, "j": back, "k": images,
}  # fmt: skip
_UNITS = {"K": 10, "M": 20, "G": 30}


def measure(parts: Iterable[str], trees: Trees, rounds: int) -> Iterator[Row]:
    """The rows as they come. What cannot be measured here is a row that says why."""
    trees.folder.mkdir(parents=True, exist_ok=True)
    for part in parts:
        try:
            yield from PARTS[part](trees, rounds)
        except (RuntimeError, OSError) as error:
            yield left_out(part, (PARTS[part].__doc__ or "").splitlines()[0][4:], str(error))


def size(text: str) -> int:
    """Bytes of "4G", "500M" or a number. Raises: ValueError."""
    unit = text[-1:].upper()
    return int(text[:-1]) << _UNITS[unit] if unit in _UNITS else int(text)


def usual_folder() -> Path:
    """The system's folder for temporary files, or the other one where that lies in memory."""
    folder = Path(tempfile.gettempdir())
    lies_in_memory = filesystem(folder).startswith("tmpfs")
    return (Path("/var/tmp") if lies_in_memory else folder) / "poolferry-bench"


def arguments(words: list[str]) -> argparse.Namespace:
    """Return what was asked for."""
    requested = argparse.ArgumentParser(prog="python -m tests.bench", description="Measures; judges nothing.")
    requested.add_argument("--files", type=int, default=100_000, help="small files (100000)")
    requested.add_argument("--large", type=size, default="4G", help="bytes in large files; half of it is copied (4G)")
    requested.add_argument("--entries", type=int, default=1_000_000, help="tiny files for the peak of memory (1000000)")
    requested.add_argument("--rounds", type=int, default=5, help="pairs; quick ones are repeated more often (5)")
    requested.add_argument(
        "--only", type=lambda text: text.split(","), default=list(PARTS), help="a,b,c,d,e,f,g,h,i,j,k"
    )
    requested.add_argument("--folder", type=Path, help="where the trees are made and stay")
    requested.add_argument("--gentle", action="store_true", help="drop only these files from memory, also as root")
    requested.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    found = requested.parse_args(words)
    if unknown := set(found.only) - set(PARTS):
        requested.error(f"--only knows {', '.join(PARTS)}, not {', '.join(sorted(unknown))}")
    return found


def main(words: list[str]) -> int:
    """Measures and prints; 0 whatever the numbers are."""
    requested = arguments(words)
    folder = (requested.folder or usual_folder()).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    trees = Trees(
        folder=folder, files=requested.files, entries=requested.entries, large=requested.large, gentle=requested.gentle
    )
    about = machine(folder)
    rows = []
    for row in measure(requested.only, trees, requested.rounds):
        rows.append(row)
        print(
            f"({row.part}) {row.what}: {row.note if row.middle is None else f'{row.middle:.3g} {row.unit}'}",
            file=sys.stderr,
            flush=True,
        )
    if requested.json:
        print(json.dumps({"format": 1, "machine": about, "rows": [row.value for row in rows]}, indent=2))
    else:
        print(f"{told(about)}\n\n{table(rows)}\n\nA ratio is ours over theirs in time. Trees stay in {folder}.")
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(sys.argv[1:]))
