"""The copying stages of a first copy whose files are written ahead: the very programs of the plan, in trees that are there."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline, Plan, Step
from orchestrator.domain.units import Bytes
from orchestrator.engines.rsync.parallel import ParallelCopies, ParallelCopy
from orchestrator.engines.rsync.parse import parse_moved
from orchestrator.engines.rsync.plan import plan
from orchestrator.engines.rsync.write_ahead import LEAST_AHEAD_OF_COPY
from tests.engines.rsync.builders import ASKED, EMPTY, FIRST, job, world

MANY = replace(FIRST, entries_now=LEAST_AHEAD_OF_COPY)
LANES = ParallelCopies(
    parallel_copies=(
        ParallelCopy(paths=(b"a", b"left", b"loose", b"swapped"), size=Bytes(1), entries=9),
        ParallelCopy(paths=(b"b", b"inherits", b"other", b"plain"), size=Bytes(1), entries=9),
    )
)


def takes_missing_names(folder: Path) -> bool:
    """Return whether this rsync removes what is named and is not there; Debian 12's ends instead, and another attempt goes on without those names."""
    for name in ("from/in", "to"):
        (folder / name).mkdir(parents=True)
    words = ("rsync", "-a", "--files-from=-", "--delete-missing-args", f"{folder}/from/", f"{folder}/to/")
    return subprocess.run(words, input=b"in/gone\n", capture_output=True).returncode == 0


class Copying:
    """The copying stages of a plan for trees that are there, run as they are."""

    def __init__(self, folder: Path, *, lanes: bool, ahead: int = 2, crosses: bool = False, **more: Any) -> None:
        self.source, self.work, self.notes = folder / "source", folder / "target/.poolferry/work", folder / "notes"
        for made in (self.source, self.work, self.notes):
            made.mkdir(parents=True)
        (folder / "target/.poolferry").chmod(0o700)
        self.work.chmod(0o700)
        asked = replace(ASKED, notes=str(self.notes))
        sides = {"source": Location(path=str(self.source)), "target": Location(path=str(folder / "target"))}
        of = job(**sides, one_file_system=not crosses)
        seen = world(EMPTY, MANY, ahead=ahead, parallel_copies=LANES if lanes else None, **more)
        made_plan = plan(of, seen, asked)
        assert isinstance(made_plan, Plan)
        # Of small files: what is left of them by name, and before that copies of all, which run only where a program gave up.
        self.ahead, self.copies, *others = [stage for stage in made_plan.stages if stage[0].copies]
        self.named = others[0] if others else ()
        assert all(step.ahead for step in self.ahead)
        assert not any(step.ahead for step in (*self.copies, *self.named))

    def run(self, steps: Iterable[Step]) -> None:
        """Run the programs of some steps, one after the other."""
        for step in steps:
            assert isinstance(step.work, Pipeline)
            for path, content in step.needs:
                Path(path).write_bytes(content)
            command = step.work.stages[-1]
            names = Path(step.work.reads or os.devnull).read_bytes()
            if step.work.stages[:-1]:
                names = subprocess.check_output(step.work.stages[0].argv)
            with open(str(step.work.keeps), "ab") as told:
                environment = {**os.environ, **dict(command.environment)}
                subprocess.run(command.argv, env=environment, input=names, stdout=told, check=True)

    def gave_up(self) -> bool:
        """Return whether a program came to no end of its own, so that the copies of all run."""
        return any(os.path.getsize(path) for step in self.copies for path in step.spare)

    def told(self, kind: str) -> dict[bytes, str]:
        """Return the digests that notes name; the later note counts."""
        found: dict[bytes, str] = {}
        for note in sorted(self.notes.glob(kind), key=lambda each: each.stat().st_mtime_ns):
            with open(note, "rb") as lines:
                found.update(parse_moved(lines))
        return found
