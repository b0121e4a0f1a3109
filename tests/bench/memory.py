"""(d) Peak memory of poolferry and all that it starts, rsync's own processes apart."""

import os
import subprocess
import threading
from collections.abc import Iterator

from tests.bench.ferry import Ferry, ferry
from tests.bench.rows import Row
from tests.bench.trees import Trees
from tests.processes import family, figure

_PAUSE = 0.1
_MOST_MIB = 150.0


def memory(trees: Trees, rounds: int) -> Iterator[Row]:
    """(d) A first run, one with nothing changed, one with one file changed, a verification. `rounds` is not used."""
    trees.need(trees.entries * 2048)
    source = trees.many()
    with ferry(trees.folder) as house:
        house.job(source, parallel=2)
        yield _row("first run, parallel = 2", house, trees, "run", "bench")
        yield _row("run, nothing changed", house, trees, "run", "bench")
        (source / "one more").write_bytes(os.urandom(8))
        try:
            yield _row("run, one file changed", house, trees, "run", "bench")
        finally:
            (source / "one more").unlink()
        yield _row("`verify`", house, trees, "verify", "bench")


def _row(what: str, house: Ferry, trees: Trees, *words: str) -> Row:
    peak = Peak(house, *words)
    note = f"peak beside rsync, whose own was {peak.rsync >> 20} MiB; the leading process alone {peak.leader >> 20} MiB"
    mib = max(peak.others, peak.leader) / (1 << 20)
    return Row(part="d", what=f"{what}, {trees.entries:,} files", values=(mib,), most=_MOST_MIB, unit="MiB", note=note)


class Peak:
    """Watches a command to its end. Bytes: proportional shares at one moment, summed; `leader`: VmHWM of the first process."""

    def __init__(self, house: Ferry, *words: str) -> None:
        self.rsync = self.others = self.leader = 0
        with subprocess.Popen(
            house.argv(*words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=house.environment,
        ) as process:
            ended = threading.Event()
            watcher = threading.Thread(target=self._watch, args=(process.pid, ended))
            watcher.start()
            assert process.stderr is not None
            said = process.stderr.read()
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # not collected while it is watched
            ended.set()
            watcher.join()
        if process.returncode:
            raise RuntimeError(f"poolferry {' '.join(words)} ended with {process.returncode}: {said.decode()[-500:]}")

    def _watch(self, leader: int, ended: threading.Event) -> None:
        while not ended.wait(_PAUSE):
            rsync = others = 0
            for pid, name in [(leader, ""), *family(leader)]:
                share = figure(pid, "smaps_rollup", "Pss:")
                rsync, others = (rsync + share, others) if name == "rsync" else (rsync, others + share)
            self.rsync, self.others = max(self.rsync, rsync), max(self.others, others)
            self.leader = max(self.leader, figure(leader, "status", "VmHWM:"))
