"""Measures reading again and writing manifests against what the machine can do at all; prints ratios, judges nothing.

python -m tests.bench.verify_bench [--tree TREE] [--large MiB] [--entries N] [--rounds N]

Cold rounds empty the page cache as root; without root only files of these trees are dropped from it.
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline
from orchestrator.verify.build import DigestSpool, build_manifest, draft_of, finish_manifest, sorted_records
from orchestrator.verify.entry import split_records
from orchestrator.verify.manifest import ManifestHeader, read_manifest, read_rows
from orchestrator.verify.pipelines import listing_command, worker_pipeline
from orchestrator.verify.results import ResultCollector, Taken

FLOOR = """
import os, sys
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        fd = os.open(folder + "/" + name, os.O_RDONLY)
        os.read(fd, 1 << 16)
        os.close(fd)
"""


def header() -> ManifestHeader:
    return ManifestHeader(job="bench", source="/bench", point="bench", digest="xxh128", created=datetime.now(UTC))


def took(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def make_small(root: Path, count: int) -> None:
    """Files of 200 to 8000 bytes, a hundred in a folder."""
    for folder in range(count // 100):
        here = root / f"d{folder % 20}" / f"e{folder}"
        here.mkdir(parents=True)
        for number in range(100):
            (here / f"f{number}").write_bytes(os.urandom(200 + (folder * 7919 + number * 104729) % 7800))


def make_large(root: Path, mebibytes: int) -> None:
    root.mkdir()
    for number in range(4):
        with (root / f"large{number}").open("wb") as file:
            for _ in range(mebibytes // 4):
                file.write(os.urandom(1 << 20))


def chill(tree: Path) -> None:
    """Empties the page cache."""
    os.sync()
    if os.geteuid() == 0:
        Path("/proc/sys/vm/drop_caches").write_text("3")
        return
    for folder, _, names in os.walk(tree):
        for name in names:
            fd = os.open(os.path.join(folder, name), os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)


def start(pipeline: Pipeline) -> subprocess.Popen[bytes]:
    stage = pipeline.stages[0]
    return subprocess.Popen(stage.argv, stdout=subprocess.PIPE, env={**os.environ, **dict(stage.environment)})


def read_again(
    tree: Path, manifest: Path, workers: int, *, mode: str = "check", keep: bool = False, taken: Taken | None = None
) -> None:
    """All workers to their end; raises when one did not tell its sum."""
    collector = ResultCollector(workers, taken=taken)
    process = start(worker_pipeline(str(tree), str(manifest), workers=workers, mode=mode, keep_cache=keep))
    assert process.stdout
    collector.feed(process.stdout.read())
    process.stdout.close()
    process.wait()
    reading = collector.reading(took_s=0)
    assert reading.sound, reading.findings[:3]


def listed(tree: Path, folder: Path) -> Iterator[bytes]:
    raw = subprocess.run(listing_command(Location(path=str(tree))).argv, stdout=subprocess.PIPE, check=True).stdout
    return sorted_records(split_records([raw]), folder=str(folder))


def make_manifest(tree: Path, manifest: Path) -> None:
    built = build_manifest(str(manifest), header(), listing=listed(tree, manifest.parent))
    with DigestSpool(str(manifest.parent)) as spool:
        read_again(tree, Path(draft_of(str(manifest))), 2, mode="fill", taken=spool.take)
        finish_manifest(str(manifest), built, spool.numbered())


def compare(
    what: str,
    floor: Callable[[], object],
    ours: dict[str, Callable[[], object]],
    before: Callable[[], object],
    rounds: int,
) -> None:
    """Prints medians, each with its range and the CPU time of its children; ratios are of medians.

    Why the order turns: who reads first after the cache was emptied may pay for caches below this machine.
    """
    contestants = list({"floor": floor, **ours}.items())
    times: dict[str, list[float]] = {name: [] for name, _ in contestants}
    busy: dict[str, list[float]] = {name: [] for name, _ in contestants}
    for turn in range(rounds):
        first = turn % len(contestants)
        for name, work in contestants[first:] + contestants[:first]:
            before()
            start = os.times()
            times[name].append(took(work))
            end = os.times()
            busy[name].append(end[2] - start[2] + end[3] - start[3])
    base = statistics.median(times["floor"])
    for name, walls in times.items():
        middle = statistics.median(walls)
        print(
            f"{what}, {name}: {middle:.2f} s ({min(walls):.2f} to {max(walls):.2f}), {middle / base:.2f} x the floor; "
            f"CPU {statistics.median(busy[name]):.2f} s; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


def bench_reading(tree: Path, manifest: Path, floor: list[str], what: str, rounds: int) -> None:
    def run_floor() -> None:
        subprocess.run(floor, stdout=subprocess.DEVNULL, check=True)

    def ours(keep: bool) -> dict[str, Callable[[], object]]:
        return {
            f"{workers} workers": lambda workers=workers: read_again(tree, manifest, workers, keep=keep)  # type: ignore[misc]
            for workers in (1, 2, 4, 8)
        }

    compare(f"{what}, cold", run_floor, ours(False), lambda: chill(tree), rounds)
    run_floor()
    compare(f"{what}, cached", run_floor, ours(True), lambda: None, rounds)


def bench_manifest(tree: Path, folder: Path) -> None:
    records = list(listed(tree, folder))
    whole = folder / "whole"
    first = took(lambda: build_manifest(str(whole), header(), listing=records, moved=_moves(records)))
    finish_manifest(str(whole), build_manifest(str(whole), header(), listing=records, moved=_moves(records)))
    linked = took(lambda: build_manifest(str(whole), header(), listing=records, linked=read_rows(str(whole))))
    print(f"a manifest of {len(records)} entries: all moved {first:.2f} s, all linked {linked:.2f} s", flush=True)


def _moves(records: list[bytes]) -> Iterator[tuple[bytes, str]]:
    for record in records:
        path, _, rest = record.partition(b"//")
        if rest.startswith(b"f"):
            yield path, "xxh128:00000000000000000000000000000000"


def bench_memory(entries: int, folder: Path) -> None:
    """In a child, so that only this counts: sorting, merging and reading again so many entries that do not exist."""
    child = subprocess.run(
        [sys.executable, "-m", "tests.bench.verify_bench", "--only-memory", str(entries), "--folder", str(folder)],
        stdout=subprocess.PIPE, check=True, text=True,
    )  # fmt: skip
    print(child.stdout, end="", flush=True)


def only_memory(entries: int, folder: Path) -> None:
    def listing() -> Iterator[bytes]:
        yield b"//d\t4096\t1700000000.1234567890\t755\t0\t0\t2\t1\t"
        for at in range(entries):
            number = at * 7919 % entries
            name = b"folder-%05d/a file with a name of middling length %07d.dat" % (number % 9973, number)
            yield b"%b//f\t%d\t1700000000.1234567890\t644\t1000\t1000\t2\t%d\t" % (
                name,
                number % 5000,
                10_000_000 + number,
            )

    manifest = str(folder / "many")
    empty = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    first = took(lambda: _finished(manifest, sorted_records(listing(), folder=str(folder))))
    again = took(lambda: build_manifest(
        manifest, header(), listing=sorted_records(listing(), folder=str(folder)), linked=read_rows(manifest)
    ))  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{entries} entries: first {first:.1f} s, linked {again:.1f} s, {peak // 1024} MiB ({empty // 1024} before)")


def _finished(manifest: str, records: Iterator[bytes]) -> None:
    built = build_manifest(manifest, header(), listing=records)
    finish_manifest(manifest, built, _zeros(manifest))


def _zeros(manifest: str) -> Iterator[tuple[int, str]]:
    for number, entry in enumerate(read_manifest(draft_of(manifest))[1]):
        if entry.digest == "?":
            yield number, f"xxh128:{number:032x}"


def main() -> None:
    words = argparse.ArgumentParser()
    words.add_argument("--tree")
    words.add_argument("--files", type=int, default=20_000)
    words.add_argument("--large", type=int, default=1024)
    words.add_argument("--entries", type=int, default=1_000_000)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("--only-memory", type=int)
    words.add_argument("--folder")
    told = words.parse_args()
    if told.only_memory:
        return only_memory(told.only_memory, Path(told.folder))
    folder = Path(tempfile.mkdtemp(prefix="poolferry-bench-"))
    try:
        _bench(told, folder)
    finally:
        shutil.rmtree(folder)
    return None


def _bench(told: argparse.Namespace, folder: Path) -> None:
    small = Path(told.tree) if told.tree else folder / "small"
    if not told.tree:
        make_small(small, told.files)
    make_large(folder / "large", told.large)
    make_manifest(small, folder / "small.gz")
    make_manifest(folder / "large", folder / "large.gz")
    larges = [str(path) for path in sorted((folder / "large").iterdir())]
    bench_reading(folder / "large", folder / "large.gz", ["cat", *larges], f"{told.large} MiB in 4 files", told.rounds)
    bench_reading(small, folder / "small.gz", [sys.executable, "-c", FLOOR, str(small)], "small files", told.rounds)
    bench_manifest(small, folder)
    bench_memory(told.entries, folder)


if __name__ == "__main__":
    main()
