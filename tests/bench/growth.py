"""python -m tests.bench.growth: how processor time grows with files, points, jobs and runs, as a plot beside this page.

Processor time of the command and all that it starts, as other work on the machine changes it least. Judges nothing.
"""

import argparse
import contextlib
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.domain.names import point_name
from orchestrator.history.store import open_history
from tests.bench.ferry import Ferry, ferry
from tests.bench.machine import machine, told
from tests.bench.start import make_history
from tests.bench.trees import make_many

Series = dict[str, list[tuple[int, float]]]
"""Points of each line: (how many, seconds of processor time)."""
PICTURE = Path(__file__).with_name("growth.svg")
_WIDTH, _HEIGHT, _LEFT, _TOP, _GAP = 420, 280, 64, 48, 40
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd")


def worked(house: Ferry, *words: str) -> float:
    """Return the processor time of a command and all that it starts, in seconds. Raises: RuntimeError when it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(house.argv(*words), capture_output=True, stdin=subprocess.DEVNULL, env=house.environment)
    if done.returncode not in (0, 4):  # 4: status found a job late
        raise RuntimeError(f"poolferry {' '.join(words)} ended with {done.returncode}: {done.stderr[-500:]!r}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_files(folder: Path, counts: Sequence[int]) -> Series:
    """Return the lines over the number of files: a first run, one with nothing changed, `verify`, a restore."""
    lines: Series = {"first run": [], "nothing changed": [], "verify": [], "restore": []}
    for count in counts:
        source = folder / "source"
        make_many(source, count)
        with ferry(folder) as house:
            house.job(source)
            lines["first run"].append((count, worked(house, "run", "bench")))
            lines["nothing changed"].append((count, worked(house, "run", "bench")))
            lines["verify"].append((count, worked(house, "verify", "bench")))
            back = str(house.folder / "back")
            lines["restore"].append((count, worked(house, "restore", "run", "bench", "--to", back)))
        shutil.rmtree(source)
    return lines


def of_points(folder: Path, counts: Sequence[int]) -> Series:
    """Return the lines over the number of points of one job: `run` with nothing changed, `points`, `status`."""
    lines: Series = {"nothing changed": [], "points": [], "status": []}
    for count in counts:
        with _small(folder) as house:
            house.run("done")
            newest = house.newest()
            points = house.target / "points"
            with open_history(str(house.state / "history.sqlite")) as history, history.together():
                for number in range(1, count):
                    at = datetime.now(UTC) - timedelta(hours=number)
                    shutil.copytree(newest, points / point_name(at), copy_function=os.link, symlinks=True)
                    shutil.copyfile(f"{newest}.manifest.gz", points / f"{point_name(at)}.manifest.gz")
                    history.point_made("bench", "bench", point_name(at), 1, entries=1, bytes=7, taken=at, now=at)
            for name, words in (
                ("nothing changed", ("run", "bench")),
                ("points", ("points", "bench")),
                ("status", ("status",)),
            ):
                lines[name].append((count, _best(house, *words)))
    return lines


def of_jobs(folder: Path, counts: Sequence[int]) -> Series:
    """Return the lines over the number of jobs: `run` of one with nothing changed, `status`, `check`."""
    lines: Series = {"run of one": [], "status": [], "check": []}
    for count in counts:
        with _small(folder) as house:
            for number in range(1, count):
                house.job(folder / "few", f"job{number}")
            house.run("done")
            for name, words in (("run of one", ("run", "bench")), ("status", ("status",)), ("check", ("check",))):
                lines[name].append((count, _best(house, *words)))
    return lines


def of_runs(folder: Path, counts: Sequence[int]) -> Series:
    """Return the lines over the number of runs in history: `run` with nothing changed, `status`, `history`."""
    lines: Series = {"nothing changed": [], "status": [], "history": []}
    for count in counts:
        with _small(folder) as house:
            house.run("done")
            make_history(house, ["bench"], count)
            for name, words in (
                ("nothing changed", ("run", "bench")),
                ("status", ("status",)),
                ("history", ("history",)),
            ):
                lines[name].append((count, _best(house, *words)))
    return lines


def _best(house: Ferry, *words: str) -> float:
    """Return the least of three: other work only adds to it. The first one brings what is needed into memory."""
    worked(house, *words)
    return min(worked(house, *words) for _ in range(3))


@contextlib.contextmanager
def _small(folder: Path) -> Iterator[Ferry]:
    """A house with one job of one file."""
    source = folder / "few"
    source.mkdir(exist_ok=True)
    (source / "file").write_bytes(b"content")
    with ferry(folder) as house:
        house.job(source)
        yield house


PARTS: dict[str, tuple[Callable[[Path, Sequence[int]], Series], tuple[int, ...]]] = {
    "files": (of_files, (10_000, 30_000, 100_000, 300_000, 1_000_000)),
    "points": (of_points, (10, 100, 1_000)),
    "jobs": (of_jobs, (1, 10, 100, 1_000)),
    "runs in history": (of_runs, (1_000, 10_000, 100_000, 1_000_000)),
}


def picture(found: dict[str, Series]) -> str:
    """Return the SVG: one plot for each part, both axes logarithmic; a line that rises with the dashed one is linear."""
    width = _GAP + len(found) * (_WIDTH + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {_HEIGHT + _TOP + 60}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{_HEIGHT + _TOP + 60}" fill="white"/>',
    ]
    for number, (what, lines) in enumerate(found.items()):
        parts += [f'<g transform="translate({_GAP + number * (_WIDTH + _GAP)},{_TOP})">', *_plot(what, lines), "</g>"]
    return "\n".join([*parts, "</svg>", ""])


def _plot(what: str, lines: Series) -> Iterator[str]:
    every = [point for line in lines.values() for point in line]
    left, right = (math.log10(edge(count for count, _ in every)) for edge in (min, max))
    low = math.floor(math.log10(min(took for _, took in every)))
    high = max(low + 1, math.ceil(math.log10(max(took for _, took in every))))

    def at(count: float, took: float) -> str:
        x = _LEFT + (math.log10(count) - left) / (right - left) * (_WIDTH - _LEFT)
        return f"{x:.1f},{_HEIGHT - (math.log10(took) - low) / (high - low) * _HEIGHT:.1f}"

    yield f'<text x="{_LEFT}" y="-28" font-weight="bold">processor seconds over the number of {what}</text>'
    for power in range(low, high + 1):
        y = _HEIGHT - (power - low) / (high - low) * _HEIGHT
        yield f'<path d="M{_LEFT} {y:.1f}H{_WIDTH}" stroke="#ddd"/><text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
    for count in sorted({count for count, _ in every}):
        x = at(count, 10.0**low).partition(",")[0]
        yield f'<text x="{x}" y="{_HEIGHT + 18}" text-anchor="middle">{count:,}</text>'
    steps = min(right - left, high - low)
    yield (
        f'<path d="M{at(10**left, 10.0**low)}L{at(10 ** (left + steps), 10.0 ** (low + steps))}" stroke="#999" stroke-dasharray="4" fill="none"/>'
    )
    for number, (name, line) in enumerate(lines.items()):
        colour = _COLOURS[number]
        yield f'<polyline points="{" ".join(at(*point) for point in line)}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield from (
            f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>' for x, y in (at(*each).split(",") for each in line)
        )
        yield f'<text x="{_LEFT - 30 + number * 112}" y="-8" fill="{colour}">{name}</text>'


def main(words: list[str]) -> int:
    """Measure, print the numbers, and draw them."""
    requested = argparse.ArgumentParser(prog="python -m tests.bench.growth", description="Measures; judges nothing.")
    requested.add_argument("--most", type=int, default=1_000_000, help="leave out larger numbers (1000000)")
    requested.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()), help="where the trees are made")
    requested.add_argument("--out", type=Path, default=PICTURE, help=f"the picture ({PICTURE})")
    found = requested.parse_args(words)
    measured = {}
    with tempfile.TemporaryDirectory(dir=found.folder, prefix="growth-") as folder:
        print(told(machine(Path(folder))))
        for what, (measure, counts) in PARTS.items():
            measured[what] = measure(Path(folder), [count for count in counts if count <= found.most])
            for name, line in measured[what].items():
                print(f"{what}: {name}:", ", ".join(f"{count:,}: {took:.3g} s" for count, took in line), flush=True)
    found.out.write_text(picture(measured), encoding="utf-8")
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(sys.argv[1:]))
