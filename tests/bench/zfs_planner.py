"""(c) Planning a thousand datasets with five hundred snapshots each, on both sides: pure, so on this very machine."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.bench.rows import Row

DATASETS, SNAPSHOTS = 1_000, 500
_CHECKOUT = Path(__file__).resolve().parents[2]


def planning(rounds: int, *, datasets: int = DATASETS, snapshots: int = SNAPSHOTS) -> Iterator[Row]:
    """Seconds from what the two listings printed to the steps, and the peak of the process that does it."""
    for case in ("new", "nothing", "first"):
        argv = [sys.executable, "-m", __name__, case, str(datasets), str(snapshots)]
        told = [
            json.loads(subprocess.run(argv, cwd=_CHECKOUT, check=True, capture_output=True).stdout)
            for _ in range(rounds)
        ]
        what = f"{_CASES[case]}, {datasets:,} datasets × {snapshots} snapshots"
        seconds, memory = (
            tuple((one["read"] + one["plan"]) * 1000 for one in told),
            tuple(one["peak"] / (1 << 20) for one in told),
        )
        read = (
            f"{max(one['read'] for one in told) * 1000:.0f} ms of it to read both listings; {told[-1]['steps']:,} steps"
        )
        yield Row(part="c", what=f"planning: {what}", values=seconds, most=2500, unit="ms", note=read)
        yield Row(
            part="c",
            what=f"peak of that process: {what}",
            values=memory,
            most=250,
            unit="MiB",
            note="the listings in it",
        )


_CASES = {"new": "one new snapshot each", "nothing": "nothing to do", "first": "a first copy"}


def _measured(case: str, datasets: int, snapshots: int) -> dict[str, float]:
    """Within the process that is measured: what is imported before counts, as in a run."""
    import resource
    import time

    from orchestrator.engines.zfs.model import ZfsSurvey
    from orchestrator.engines.zfs.plan.plan import plan
    from orchestrator.engines.zfs.survey import parse
    from tests.engines.zfs.sides import ASKED, COPY, SOURCE, job

    began = time.process_time()
    there = 0 if case == "first" else snapshots - 1 if case == "new" else snapshots
    source = parse.make_side(parse.parse_survey(_listing(SOURCE.path, datasets, snapshots, 1)), SOURCE)
    target = parse.make_side(parse.parse_survey(_listing(COPY.path, datasets, there, 2)), COPY)
    read = time.process_time()
    decision = plan(job(), ZfsSurvey(source=source, target=target), ASKED)
    done = time.process_time()
    return {
        "read": read - began, "plan": done - read, "steps": sum(len(stage) for stage in getattr(decision, "stages", ())),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10,
    }  # fmt: skip


def _listing(root: str, datasets: int, snapshots: int, pool: int) -> Iterator[bytes]:
    """Return what a look prints of a side, line by line; without snapshots the root is not there."""
    names = [root, *(f"{root}/d{number:04}" for number in range(1, datasets))]
    yield b"=here 0 no mbuffer 2.3.9-1"
    yield f"=pool {pool} ONLINE".encode()
    yield b"=datasets"
    if not snapshots:
        yield from (b"=absent", b"=above", f"{root.partition('/')[0]}\t1000000\toff".encode(), b"=end")
        return
    told = {
        "type": "filesystem",
        "createtxg": "5",
        "origin": "-",
        "encryption": "off",
        "encryptionroot": "-",
        "keystatus": "-",
        "written": "0",
    }
    for number, name in enumerate(names):
        for key, value in {**told, "guid": str(pool << 40 | number)}.items():
            yield f"{name}\t{key}\t{value}\t-".encode()
    yield b"=snapshots"
    for number, name in enumerate(names):
        for taken in range(snapshots):
            yield f"{name}@s{taken:03}\t{number << 20 | taken + 1}\t{100 + taken}".encode()
    yield b"=end"


if __name__ == "__main__":
    print(json.dumps(_measured(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
