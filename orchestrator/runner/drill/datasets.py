"""Restore tests of datasets: clones of a copy, or a real receive, compared with the source's snapshots file by file."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from orchestrator.domain.drill_plan import Part, Rehearsal
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Command, Pipeline, Plan, Refusal, Step
from orchestrator.engines.contract import Asked, Comparison
from orchestrator.planners.drill import Piece, choose_sample
from orchestrator.process.executor import Reader, Writer
from orchestrator.process.stop import Stop
from orchestrator.runner.run_recorder import Journal
from orchestrator.runner.steps import Hands
from orchestrator.runner.verify.compare_sides import Compared, compare, kept_by
from orchestrator.verify.entry import split_records

_PIECE = 1 << 18


@runtime_checkable
class Rehearser(Protocol):
    """An engine of datasets whose copies can be tested by a restore."""

    def survey_both(self, job: Job, asked: Asked, reader: Reader, *, content: bool) -> Any:
        """Return a survey of both sides."""
        ...

    def survey_copy(self, job: Job, reader: Reader, *, away: str) -> Any:
        """Return a survey of the copy alone, like `survey_both`, if the source cannot be read: `away` is the reason."""
        ...

    def plan_rehearsal(self, job: Job, seen: Any, asked: Asked, *, whole: bool, kit: str | None) -> Rehearsal | Refusal:
        """Plan the test copy. `kit`: the newest recovery kit, which lists guids that the source has lost."""
        ...

    def rehearsal_check(self, job: Job, rehearsal: Rehearsal, folder: str, owner: Command) -> Command | Refusal:
        """Build the command of the owner's check on the restored data, mounted below a private folder."""
        ...

    def rehearsal_listing(self, job: Job, rehearsal: Rehearsal, part: Part, keeps: str) -> Step:
        """Return the step that lists the files of a part: size, TAB, path, NUL."""
        ...

    def rehearsal_harm(self, job: Job, rehearsal: Rehearsal, part: Part, names: str) -> Step:
        """Return the step that damages files of a part."""
        ...

    def plan_rehearsal_reading(
        self, job: Job, seen: Any, rehearsal: Rehearsal, names: Mapping[int, str], notes: str
    ) -> Comparison:
        """Return the comparison that reads the chosen files of each part, or all of it, on both sides."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """The files to read in a restore test. `names`: by part, the local file with the paths; for a whole part none."""

    pieces: tuple[tuple[Part, Piece], ...]
    names: Mapping[int, str]
    of_files: int
    of_bytes: int

    @property
    def size(self) -> int:
        """Return the number of bytes to read."""
        return sum(piece.size for _, piece in self.pieces)


def rehearser(journal: Journal) -> Rehearser:
    """Return the engine, if its copies can be tested by a restore. Raises: OrchestratorError."""
    engine = journal.tools.engine
    if not isinstance(engine, Rehearser):
        raise OrchestratorError(f"copies of the engine {engine.name} cannot be drilled", cure="restore to a path")
    return engine


@contextlib.contextmanager
def made(rehearsal: Rehearsal, journal: Journal, writer: Writer, notes: str) -> Iterator[None]:
    """Make the clones, or receive; first remove what a killed restore test left, and at the end all of it."""
    _do((rehearsal.drop,), journal, writer, notes)
    tried = tuple((step,) for step in rehearsal.sealed)
    deeds = [stage[0] for stage in (*rehearsal.make, *tried) if "if it is not there" not in stage[0].does]
    summary = f"drill: {'; '.join(deed.does for deed in deeds[:3])}"
    journal.decided(Plan(summary=summary, stages=(*rehearsal.make, *tried, (rehearsal.drop,))))
    if rehearsal.left_out:
        journal.warn(f"not all datasets are drilled: {rehearsal.left_out}")
    try:
        for stage in (*rehearsal.make, *tried):
            _do(stage, journal, writer, notes)
        yield
    finally:
        _drop(rehearsal, journal, writer)


def _drop(rehearsal: Rehearsal, journal: Journal, writer: Writer) -> None:
    """Drop the test copy, also after a request to stop. The next restore test removes what cannot go now."""
    work = rehearsal.drop.work
    if isinstance(work, Pipeline):
        result = writer.stream(work, stop=Stop())
        if not result.well:
            journal.warn(f"{rehearsal.where} is left behind: {' '.join(result.last_words)}; the next drill drops it")


def choose(rehearsal: Rehearsal, journal: Journal, writer: Writer, notes: str, *, whole: bool, seed: int) -> Chosen:
    """Choose files of all parts, alternating between their folders. Raises: OrchestratorError."""
    job, engine = journal.job, rehearser(journal)
    found: dict[bytes, tuple[Part, Piece]] = {}
    for part in rehearsal.parts:
        step = engine.rehearsal_listing(job, rehearsal, part, f"{notes}/files-{part.number}")
        _empty(kept_by(step))
        _do((step,), journal, writer, notes)
        for piece in _pieces(kept_by(step)):
            found[b"%d/%b" % (part.number, piece.path)] = (part, piece)
    of_bytes = sum(piece.size for _, piece in found.values())
    if whole:
        return Chosen(pieces=tuple(found.values()), names={}, of_files=len(found), of_bytes=of_bytes)
    offered = (Piece(path=path, size=piece.size) for path, (_, piece) in found.items())
    sample = choose_sample(offered, files=job.drill.files, size=job.drill.size, seed=seed)
    taken = tuple(found[each.path] for each in sample)
    names = {}
    for part in rehearsal.parts:
        if own := [piece.path for owner, piece in taken if owner is part]:
            names[part.number] = _names(f"{notes}/names-{part.number}", own)
    return Chosen(pieces=taken, names=names, of_files=len(found), of_bytes=of_bytes)


def harm(rehearsal: Rehearsal, chosen: Chosen, journal: Journal, writer: Writer, notes: str) -> tuple[bytes, ...]:
    """Damage up to three files of one clone, never the copy; return their names as findings show them."""
    full = [(part, piece) for part, piece in chosen.pieces if piece.size and b"\n" not in piece.path]
    if not full:
        return ()
    part = full[0][0]
    paths = [piece.path for owner, piece in full if owner is part][:3]
    _do(
        (rehearser(journal).rehearsal_harm(journal.job, rehearsal, part, _names(f"{notes}/harm", paths)),),
        journal,
        writer,
        notes,
    )
    return tuple(part.name + b"/" + path for path in paths)


def read(seen: Any, rehearsal: Rehearsal, chosen: Chosen, journal: Journal, writer: Writer, notes: str) -> Compared:
    """Compare the restored data with the source's snapshots. Raises: OrchestratorError."""
    plan = rehearser(journal).plan_rehearsal_reading(journal.job, seen, rehearsal, chosen.names, notes)
    return compare(plan, journal, writer, notes)


def _pieces(file: str) -> Iterator[Piece]:
    with open(file, "rb") as kept:
        for record in split_records(iter(lambda: kept.read(_PIECE), b"")):
            size, _, path = record.partition(b"\t")
            yield Piece(path=path, size=int(size))


def _names(file: str, paths: list[bytes]) -> str:
    with open(file, "wb") as kept:
        kept.writelines(b"./" + path + b"\0" for path in paths)
    return file


def _empty(file: str) -> None:
    if os.path.exists(file):
        os.unlink(file)


def _do(stage: tuple[Step, ...], journal: Journal, writer: Writer, notes: str) -> None:
    Hands(journal, writer, notes).do(stage)
