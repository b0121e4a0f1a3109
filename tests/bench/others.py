"""(f) Next to rsnapshot and restic on the same tree."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.ferry import ferry
from tests.bench.rows import Row, call, left_out, ratios, timed
from tests.bench.trees import Trees, change, warm

STAGES = ("first copy", "nothing changed", "1 % changed")
PEERS = ("rsnapshot", "restic")
_NOTE = "source warm; each with its own settings as shipped"


def others(trees: Trees, rounds: int) -> Iterator[Row]:
    """(f) Three stages, each tool in turn, so many times; ours over theirs."""
    here = [name for name in PEERS if shutil.which(name)]
    if here:
        trees.need(trees.files * 8192 * (1 + len(here)))
        took = _stages(trees, here, min(rounds, 3))
        for name in here:
            for stage in STAGES:
                pair = (took["poolferry", stage], took[name, stage])
                yield ratios("f", f"{stage}, {trees.files:,} small files, to {name}", pair, most=None, note=_NOTE)
    for name in PEERS:
        if name not in here:
            yield left_out("f", f"next to {name}", f"{name} is not installed")


def _stages(trees: Trees, peers: list[str], rounds: int) -> dict[tuple[str, str], list[float]]:
    source = trees.small()
    took: dict[tuple[str, str], list[float]] = {(tool, stage): [] for tool in ("poolferry", *peers) for stage in STAGES}
    for turn in range(rounds):
        with ferry(trees.folder) as house:
            house.job(source)
            outcome = dict(zip(STAGES, ("done", "nothing-to-do", "done"), strict=True))
            actions: dict[str, Callable[[str], object]] = {"poolferry": lambda stage: house.run(outcome[stage])}  # noqa: B023
            for name in peers:
                actions[name] = {"rsnapshot": _rsnapshot, "restic": _restic}[name](source, house.folder / name)
            for stage in STAGES:
                if stage == STAGES[2]:
                    change(source, turn)
                warm(source)
                for tool in sorted(actions, reverse=turn % 2 == 1):
                    os.sync()
                    took[tool, stage].append(timed(lambda: actions[tool](stage)))  # noqa: B023
    return took


def _rsnapshot(source: Path, folder: Path) -> Callable[[str], object]:
    folder.mkdir()
    programs = {"cmd_cp": "cp", "cmd_rm": "rm", "cmd_rsync": "rsync"}
    keys = [
        ("config_version", "1.2"), ("snapshot_root", f"{folder}/points/"), *((key, shutil.which(name) or name) for key, name in programs.items()),
        ("retain", "alpha", "6"), ("verbose", "1"), ("loglevel", "1"), ("logfile", f"{folder}/log"), ("lockfile", f"{folder}/lock"),
        ("backup", f"{source}/", "here/"),
    ]  # fmt: skip
    (folder / "conf").write_text("".join("\t".join(key) + "\n" for key in keys))
    return lambda _: call(("rsnapshot", "-c", f"{folder}/conf", "alpha"))


def _restic(source: Path, folder: Path) -> Callable[[str], object]:
    folder.mkdir()
    (folder / "password").write_text("bench\n")
    front = (
        "restic",
        "--quiet",
        "--repo",
        f"{folder}/repository",
        "--password-file",
        f"{folder}/password",
        "--cache-dir",
        f"{folder}/cache",
    )
    call((*front, "init"))
    return lambda _: call((*front, "backup", str(source)))
