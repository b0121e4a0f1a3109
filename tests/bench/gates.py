"""(h) Runs through gates of folders, against the same runs by a plain login, over loopback: the processor time of both sides."""

import ctypes
import json
import os
import shutil
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.bench.ferry import Ferry
from tests.bench.rows import Row, worked
from tests.bench.trees import Trees
from tests.processes import argv_of, children, lives
from tests.whole.sshd import Sshd

_MOST = 1 / 0.95
_WAYS = ("gated", "plain")
_JOB = 'engine = "rsync"\nsource = "{source}"\ntarget = "far"\n[pipe]\nssh-options = ["-F", "{client}"]\n'
_ADOPT = 36  # prctl: whoever is left behind below us becomes our child, and its processor time ours


def gates(trees: Trees, rounds: int) -> Iterator[Row]:
    """(h) Folders through a gate that adds, and through one that reads, to a plain login; in turns."""
    source = trees.small()
    trees.need(3 * trees.files * 8192)
    ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
    for right in ("adds", "reads"):
        folder = trees.folder / "gates"
        shutil.rmtree(folder, ignore_errors=True)
        try:
            ways = [_Way(folder / way, source, right, gated=way == "gated") for way in _WAYS]
            for what, first in (("a first copy", True), ("nothing changed", False)):
                took = [
                    [each.run(first=first) for each in _in_turns(ways, turn)][:: 1 - turn % 2 * 2]
                    for turn in range(rounds)
                ]
                yield _row(
                    f"{what} of {trees.files:,} small files, through a gate that {right}, to a plain login", took
                )
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _in_turns(ways: list["_Way"], turn: int) -> list["_Way"]:
    return ways if turn % 2 == 0 else ways[::-1]


def _row(what: str, took: list[list[tuple[float, float]]]) -> Row:
    seconds = statistics.median(gated[1] / plain[1] for gated, plain in took)
    used = [statistics.median(pair[which][0] for pair in took) for which in (0, 1)]
    values = tuple(gated[0] / plain[0] for gated, plain in took)
    note = f"processor {used[0]:.2f} s : {used[1]:.2f} s; time {seconds:.2f}"
    return Row(part="h", what=what, values=values, most=_MOST, note=note)


class _Way:
    """A job over loopback, with an sshd of its own."""

    def __init__(self, folder: Path, source: Path, right: str, *, gated: bool) -> None:
        folder.mkdir(parents=True, mode=0o700)
        self._ferry, self._sshd, self._far = Ferry(folder), Sshd(folder / "sshd"), folder / "far"
        there = self._sshd.url(self._far), str(source)
        target, copied = there if right == "adds" else (str(self._far), self._sshd.url(source))
        (self._ferry.config / "targets.toml").write_text(f'[place.far]\npath = "{target}"\n')
        text = _JOB.format(source=copied, client=self._sshd.folder / "client")
        (self._ferry.config / "jobs/bench.toml").write_text(text)
        if gated:
            keys = self._sshd.folder / "authorized_keys"
            keys.unlink()
            what = str(self._far if right == "adds" else source)
            key = (self._sshd.folder / "user_key.pub").read_text()
            self._ferry.call("setup", "gate", "bench", f"--{right}", what, "--key", key, "--into", str(keys))

    def run(self, *, first: bool) -> tuple[float, float]:
        """Run the job; return the processor time of both sides, and the time, in seconds."""
        if first:
            self._forget()
        before, began = worked(), 0.0
        self._sshd.start()
        try:
            began = time.perf_counter()
            outcome = json.loads(self._ferry.call("run", "bench", "--json")[0])["outcome"]
            took = time.perf_counter() - began
        finally:
            self._sshd.stop()
            _end_left(self._ferry.folder.parent)
        if outcome != ("done" if first else "nothing-to-do"):
            raise RuntimeError(f"the run ended {outcome}")
        return worked() - before, took

    def _forget(self) -> None:
        shutil.rmtree(self._ferry.state, ignore_errors=True)
        for each in self._far.iterdir() if self._far.is_dir() else ():
            shutil.rmtree(each) if each.is_dir() and not each.is_symlink() else each.unlink()


def _end_left(folder: Path) -> None:
    """End the process that a gate's first request left behind, and wait for it, so that its processor time counts."""
    for child in children(os.getpid()):
        if str(folder) in " ".join(argv_of(child)) or not lives(child):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)
