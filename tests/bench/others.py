"""(f) Next to others' programs on the same tree: backup programs, and those that only copy."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.ferry import ferry
from tests.bench.rows import Row, both_clocks, call, left_out, twice
from tests.bench.trees import Trees, change, warm

STAGES = ("first copy", "nothing changed", "1 % changed")
_MOST = {
    ("rsnapshot", STAGES[2]): 0.75,
    ("restic", STAGES[2]): 0.3,
    ("rsync", STAGES[0]): 1.0,
    ("rsync", STAGES[1]): 0.5,
}
_NOTE = "source warm; each with its own settings as shipped"
_Stage = Callable[[str], object]
_Took = dict[tuple[str, str], list[tuple[float, float]]]
"""Of a tool and a stage: seconds by the clock, and of the processor."""


def others(trees: Trees, rounds: int) -> Iterator[Row]:
    """(f) Three stages, each tool in turn, so many times; ours over theirs."""
    here = [name for name in PEERS if shutil.which(name)]
    if here:
        trees.need(trees.files * 8192 * (1 + len(here)))
        took = _stages(trees, here, min(rounds, 3))
        for name in here:
            for stage in STAGES:
                ours, theirs = took["poolferry", stage], took[name, stage]
                what = f"{stage}, {trees.files:,} small files, to {name}"
                yield from twice("f", what, (ours, theirs), most=_MOST.get((name, stage)), note=_NOTE)
    for name in PEERS:
        if name not in here:
            yield left_out("f", f"next to {name}", f"{name} is not installed")


def _stages(trees: Trees, peers: list[str], rounds: int) -> _Took:
    source = trees.small()
    took: _Took = {(tool, stage): [] for tool in ("poolferry", *peers) for stage in STAGES}
    for turn in range(rounds):
        with ferry(trees.folder) as house:
            house.job(source, parallel=None)
            outcome = dict(zip(STAGES, ("done", "nothing-to-do", "done"), strict=True))
            actions: dict[str, _Stage] = {"poolferry": lambda stage: house.run(outcome[stage])}  # noqa: B023
            for name in peers:
                (house.folder / name).mkdir()
                actions[name] = PEERS[name](source, house.folder / name)
            for stage in STAGES:
                if stage == STAGES[2]:
                    change(source, turn)
                warm(source)
                for tool in sorted(actions, reverse=turn % 2 == 1):
                    os.sync()
                    took[tool, stage].append(both_clocks(lambda: actions[tool](stage)))  # noqa: B023
    return took


def _rsnapshot(source: Path, folder: Path) -> _Stage:
    programs = {"cmd_cp": "cp", "cmd_rm": "rm", "cmd_rsync": "rsync"}
    keys = [
        ("config_version", "1.2"), ("snapshot_root", f"{folder}/points/"), *((key, shutil.which(name) or name) for key, name in programs.items()),
        ("retain", "alpha", "6"), ("verbose", "1"), ("loglevel", "1"), ("logfile", f"{folder}/log"), ("lockfile", f"{folder}/lock"),
        ("backup", f"{source}/", "here/"),
    ]  # fmt: skip
    (folder / "conf").write_text("".join("\t".join(key) + "\n" for key in keys))
    return lambda _: call(("rsnapshot", "-c", f"{folder}/conf", "alpha"))


def _restic(source: Path, folder: Path) -> _Stage:
    (folder / "password").write_text("bench\n")
    where = ("--repo", f"{folder}/repository", "--cache-dir", f"{folder}/cache")
    front = ("restic", "--quiet", *where, "--password-file", f"{folder}/password")
    call((*front, "init"))
    return lambda _: call((*front, "backup", str(source)))


def _borg(source: Path, folder: Path) -> _Stage:
    own = {**os.environ, "BORG_BASE_DIR": str(folder), "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes"}
    call(("borg", "init", "--encryption", "none", f"{folder}/repository"), env=own)
    return lambda stage: call(("borg", "create", f"{folder}/repository::{stage.split()[0]}", str(source)), env=own)


def _fpsync(source: Path, folder: Path) -> _Stage:
    """A mirror, by two rsyncs; it removes nothing there."""
    return lambda _: call(("fpsync", "-t", f"{folder}/own", "-o", "-lptgoDHAX", f"{source}/", f"{folder}/copy/"))


def _rsync(source: Path, folder: Path) -> _Stage:
    """A mirror."""
    return lambda _: call(("rsync", "-aHAX", "--delete", f"{source}/", f"{folder}/copy/"))


def _tar(source: Path, folder: Path) -> _Stage:
    """An archive of all, then archives of what is newer than the list."""
    front = ("tar", "--create", "--acls", "--xattrs", f"--listed-incremental={folder}/list", f"--directory={source}")
    return lambda stage: call((*front, f"--file={folder}/{stage.split()[0]}.tar", "."))


def _cp(source: Path, folder: Path) -> _Stage:
    """A mirror; it removes nothing there."""
    return lambda _: call(("cp", "--archive", "--update", "--no-target-directory", str(source), f"{folder}/copy"))


PEERS: dict[str, Callable[[Path, Path], _Stage]] = {
    "rsnapshot": _rsnapshot, "restic": _restic, "borg": _borg, "fpsync": _fpsync, "rsync": _rsync, "tar": _tar, "cp": _cp,
}  # fmt: skip
