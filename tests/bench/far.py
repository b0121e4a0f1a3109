"""(i) Runs over ssh on loopback, next to the bare rsync of the same work, and `verify` there next to one of a local copy."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.ferry import Ferry
from tests.bench.rows import Row, both_clocks, call, twice
from tests.bench.trees import Trees, change, warm
from tests.whole.sshd import Sshd

_MOST, _MOST_VERIFY = 1.15, 2.0
_NOTE = "source warm; the processor of both sides"
_JOB = 'engine = "rsync"\nsource = "{source}"\ntarget = "{name}"\n[pipe]\nssh-options = ["-F", "{client}"]\n'
_Took = list[tuple[float, float]]


def far(trees: Trees, rounds: int) -> Iterator[Row]:
    """(i) First copy, nothing changed, 1 % changed, `verify`, and large files, to a host over loopback; in turns."""
    trees.need(4 * trees.files * 8192)
    source, (large, _) = trees.small(), trees.halves()
    folder = trees.folder / "far"
    stages = ("first copy", "nothing changed", "1 % changed")
    took: dict[str, tuple[_Took, _Took]] = {name: ([], []) for name in (*stages, "large", "verify")}
    try:
        for turn in range(rounds):
            shutil.rmtree(folder, ignore_errors=True)
            sides = _Sides(folder, source, large)
            for number, stage in enumerate(stages):
                if stage == stages[2]:
                    change(source, turn)
                warm(source)
                outcome = "nothing-to-do" if number == 1 else "done"
                deeds = (lambda: sides.ours("small", outcome), lambda: sides.bare(source, number))  # noqa: B023
                _in_turns(took[stage], deeds, sides.sshd, turn)
            sides.ours("near", "done")
            deeds = (lambda: sides.ours("large", "done"), lambda: sides.bare(large, 3))  # noqa: B023
            _in_turns(took["large"], deeds, sides.sshd, turn)
            verified = (lambda: sides.ferry.call("verify", "small"), lambda: sides.ferry.call("verify", "near"))  # noqa: B023
            _in_turns(took["verify"], verified, sides.sshd, turn)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for stage in stages:
        what = f"over ssh: {stage} of {trees.files:,} small files, to the bare rsync of the same work"
        yield from twice("i", what, took[stage], most=_MOST, note=_NOTE)
    what = f"over ssh: first copy of {trees.large >> 21} MiB in large files, to the bare rsync of the same work"
    yield from twice("i", what, took["large"], most=_MOST, note=_NOTE)
    what = f"`verify` of {trees.files:,} small files over ssh, to that of a local copy"
    yield from twice("i", what, took["verify"], most=_MOST_VERIFY, note=_NOTE)


def _in_turns(
    took: tuple[_Took, _Took], deeds: tuple[Callable[[], object], Callable[[], object]], sshd: Sshd, turn: int
) -> None:
    """Do both, each with a server that is started for it and has ended after it, so that its processor time counts."""
    for which in (0, 1) if turn % 2 == 0 else (1, 0):

        def serve() -> None:
            sshd.start()
            try:
                deeds[which]()  # noqa: B023
            finally:
                sshd.stop()

        took[which].append(both_clocks(serve))


class _Sides:
    """A host on loopback, jobs that copy to it, one that copies the same within this machine, and a bare rsync to it."""

    def __init__(self, folder: Path, source: Path, large: Path) -> None:
        folder.mkdir(parents=True, mode=0o700)
        self.ferry, self.sshd, self._there = Ferry(folder), Sshd(folder / "sshd"), folder / "bare"
        self._client = self.sshd.folder / "client"
        places = {
            "small": self.sshd.url(folder / "small"),
            "large": self.sshd.url(folder / "large"),
            "near": folder / "near",
        }
        text = "".join(f'[place.{name}]\npath = "{path}"\n' for name, path in places.items())
        (self.ferry.config / "targets.toml").write_text(text)
        for name in places:
            job = _JOB.format(source=large if name == "large" else source, name=name, client=self._client)
            (self.ferry.config / f"jobs/{name}.toml").write_text(job)

    def ours(self, job: str, outcome: str) -> None:
        """Run a job. Raises: RuntimeError when it ends otherwise."""
        value = json.loads(self.ferry.call("run", job, "--json")[0])
        if value["outcome"] != outcome:
            raise RuntimeError(f"the run ended {value['outcome']}: {value['why']}")

    def bare(self, source: Path, number: int) -> None:
        """Copy as a script does, each time to a folder of its own that is linked to the one before, until it is on the disk."""
        self._there.mkdir(exist_ok=True)
        ssh = f"ssh -F {self._client} -p {self.sshd.port}"
        linked = [f"--link-dest=../{number - 1}"] if 0 < number < 3 else []
        there = f"{self.sshd.user}@127.0.0.1:{self._there}/{number}/"
        call(("rsync", "-aHAX", "--numeric-ids", *linked, "-e", ssh, f"{source}/", there))
        call(("sync", "-f", str(self._there)))
