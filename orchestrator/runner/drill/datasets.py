"""Restore tests of datasets: clones of a copy, or a real receive, compared with the source's snapshots file by file."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.domain.answers import parse_count
from orchestrator.domain.drill import DrillDataset, DrillPlan
from orchestrator.domain.errors import OrchestratorError, VerificationFailed
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Pipeline, Plan, Step
from orchestrator.engines.contract.drills import DatasetDriller
from orchestrator.engines.contract.engine import implements
from orchestrator.planners.drill import SampleFile, choose_sample
from orchestrator.process.executor import Writer
from orchestrator.process.stop import StopRequest
from orchestrator.runner.run_recorder import RunRecorder
from orchestrator.runner.steps import StepExecutor
from orchestrator.runner.verify.compare_sides import ComparisonResult, output_file, run_comparison
from orchestrator.verify.entry import split_records

_PIECE = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillSample:
    """The files to read in a restore test. `names`: by part, the local file with the paths; for a whole part none."""

    pieces: tuple[tuple[DrillDataset, SampleFile], ...]
    names: Mapping[int, str]
    of_files: int
    of_bytes: int

    @property
    def size(self) -> int:
        """Return the number of bytes to read."""
        return sum(piece.size for _, piece in self.pieces)


def dataset_driller(journal: RunRecorder) -> DatasetDriller:
    """Return the engine, if its copies can be tested by a restore. Raises: OrchestratorError."""
    engine = journal.tools.engine
    if not implements(engine, DatasetDriller):
        raise OrchestratorError(f"copies of the engine {engine.name} cannot be drilled", hint="restore to a path")
    return engine


@contextlib.contextmanager
def make_scratch_datasets(drill_plan: DrillPlan, journal: RunRecorder, writer: Writer, notes: str) -> Iterator[None]:
    """Make the clones, or receive; first remove the remains of a killed restore test, and at the end all of it."""
    _do((drill_plan.drop,), journal, writer, notes)
    tried = tuple((step,) for step in drill_plan.encrypted_steps)
    actions = [stage[0] for stage in (*drill_plan.make, *tried) if "if it is not there" not in stage[0].action]
    summary = f"drill: {'; '.join(action.action for action in actions[:3])}"
    journal.decided(Plan(summary=summary, stages=(*drill_plan.make, *tried, (drill_plan.drop,))))
    if drill_plan.left_out:
        journal.warn(f"not all datasets are drilled: {drill_plan.left_out}")
    try:
        for stage in (*drill_plan.make, *tried):
            _do(stage, journal, writer, notes)
        yield
    finally:
        _drop(drill_plan, journal, writer)


def _drop(drill_plan: DrillPlan, journal: RunRecorder, writer: Writer) -> None:
    """Drop the test copy, also after a request to stop. The next restore test removes what cannot be removed now."""
    work = drill_plan.drop.work
    if isinstance(work, Pipeline):
        result = writer.stream(work, stop=StopRequest())
        if not result.well:
            journal.warn(f"{drill_plan.where} is left behind: {' '.join(result.last_output)}; the next drill drops it")


def choose_files(
    drill_plan: DrillPlan, journal: RunRecorder, writer: Writer, notes: str, *, whole: bool, seed: int
) -> DrillSample:
    """Choose files of all parts, alternating between their folders. Raises: OrchestratorError."""
    job, engine = journal.job, dataset_driller(journal)
    found: dict[bytes, tuple[DrillDataset, SampleFile]] = {}
    for part in drill_plan.parts:
        step = engine.drill_listing(job, drill_plan, part, f"{notes}/files-{part.number}")
        _empty(output_file(step))
        _do((step,), journal, writer, notes)
        for piece in _pieces(output_file(step)):
            found[b"%d/%b" % (part.number, piece.path)] = (part, piece)
    of_bytes = sum(piece.size for _, piece in found.values())
    if whole:
        return DrillSample(pieces=tuple(found.values()), names={}, of_files=len(found), of_bytes=of_bytes)
    offered = (SampleFile(path=path, size=piece.size) for path, (_, piece) in found.items())
    sample = choose_sample(offered, files=job.drill.files, size=job.drill.size, seed=seed)
    taken = tuple(found[each.path] for each in sample)
    names = {}
    for part in drill_plan.parts:
        if own := [piece.path for owner, piece in taken if owner is part]:
            names[part.number] = _names(f"{notes}/names-{part.number}", own)
    return DrillSample(pieces=taken, names=names, of_files=len(found), of_bytes=of_bytes)


def damage_files(
    drill_plan: DrillPlan, chosen: DrillSample, journal: RunRecorder, writer: Writer, notes: str
) -> tuple[bytes, ...]:
    """Damage up to three files of one clone, never the copy; return their names as findings show them."""
    full = [(part, piece) for part, piece in chosen.pieces if piece.size and b"\n" not in piece.path]
    if not full:
        return ()
    part = full[0][0]
    paths = [piece.path for owner, piece in full if owner is part][:3]
    _do(
        (dataset_driller(journal).drill_damage(journal.job, drill_plan, part, _names(f"{notes}/harm", paths)),),
        journal,
        writer,
        notes,
    )
    return tuple(part.name + b"/" + path for path in paths)


def compare_files(
    seen: Any, drill_plan: DrillPlan, chosen: DrillSample, journal: RunRecorder, writer: Writer, notes: str
) -> ComparisonResult:
    """Compare the restored data with the source's snapshots. Raises: OrchestratorError."""
    plan = dataset_driller(journal).plan_drill_comparison(journal.job, seen, drill_plan, chosen.names, notes)
    return run_comparison(plan, journal, writer, notes)


def _pieces(file: str) -> Iterator[SampleFile]:
    with open(file, "rb") as kept:
        try:
            for record in split_records(iter(lambda: kept.read(_PIECE), b"")):
                size, _, path = record.partition(b"\t")
                yield SampleFile(path=path, size=parse_count(size))
        except ValueError as error:
            raise VerificationFailed(
                f"the list of what came back cannot be read: {error}", hint="run the drill again"
            ) from error


def _names(file: str, paths: list[bytes]) -> str:
    with open(file, "wb") as kept:
        kept.writelines(b"./" + path + b"\0" for path in paths)
    return file


def _empty(file: str) -> None:
    if os.path.exists(file):
        os.unlink(file)


def _do(stage: tuple[Step, ...], journal: RunRecorder, writer: Writer, notes: str) -> None:
    StepExecutor(journal, writer, notes).do(stage)
