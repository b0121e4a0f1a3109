"""Restore tests of trees: files of a point are restored to a scratch folder and compared with its manifest."""

import os
from itertools import chain

from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Plan, Refusal, TreeVerification
from orchestrator.domain.point import RestorePoint, VerificationResult
from orchestrator.domain.units import Bytes, show_count, show_size
from orchestrator.engines.contract.restore import RestoreRequest
from orchestrator.planners.drill import SampleFile, choose_sample
from orchestrator.process.executor import Writer
from orchestrator.runner.context import file_restorer
from orchestrator.runner.drill.scratch_dir import refuse_space
from orchestrator.runner.manifests import require_authentic
from orchestrator.runner.problems import look_for_points
from orchestrator.runner.run_recorder import RunRecorder, fetch_file
from orchestrator.runner.steps import StepExecutor, told_where_full
from orchestrator.runner.verify.read_files import read_part, read_tree
from orchestrator.trees.beneath import Folder
from orchestrator.verify.entry import UNREAD, ManifestEntry
from orchestrator.verify.manifest import read_manifest, write_manifest

_WHEN_FULL = "free space there, or name another place: scratch, or a smaller size, in [drill] of the job's file"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSample:
    """The files of a point to restore, and the local manifest that lists them."""

    point: RestorePoint
    manifest: str
    pieces: tuple[SampleFile, ...]
    of_files: int
    of_bytes: int
    whole: bool

    @property
    def size(self) -> int:
        """Return the number of bytes to restore."""
        return sum(piece.size for piece in self.pieces)


def choose_files(journal: RunRecorder, writer: Writer, notes: str, *, whole: bool, seed: int) -> FileSample | Refusal:
    """Choose files of the newest point with a manifest. Raises: OrchestratorError."""
    job = journal.job
    points = look_for_points(journal, writer)
    point = next((each for each in reversed(points) if each.manifest is not None), None)
    if point is None or point.manifest is None:
        why = "there is no restore point with a manifest, so nothing that is restored could be verified"
        return Refusal(why=why, evidence=(), hint=f"poolferry run {job.name}")
    manifest = fetch_file(point.manifest, journal, writer, notes)
    require_authentic(point, manifest, journal, writer, notes)
    files, size, held = 0, 0, list[SampleFile]()

    def pieces() -> "chain[SampleFile]":
        return chain.from_iterable(map(_piece, read_manifest(manifest)[1]))

    for piece in pieces():
        files, size = files + 1, size + piece.size
        if whole:
            held.append(piece)
    taken = tuple(held) if whole else choose_sample(pieces(), files=job.drill.files, size=job.drill.size, seed=seed)
    if not taken:
        why = f"point {point.name} holds no file that could be restored and verified"
        return Refusal(why=why, evidence=(), hint="look what the source holds")
    expected = manifest if whole else _write_manifest(manifest, taken, f"{notes}/drill.manifest.gz")
    return FileSample(point=point, manifest=expected, pieces=taken, of_files=files, of_bytes=size, whole=whole)


def _piece(entry: ManifestEntry) -> tuple[SampleFile, ...]:
    """Return the entry as a piece if it can be verified after a restore: a file with known contents."""
    if entry.kind != "f" or entry.digest == UNREAD:
        return ()
    return (SampleFile(path=entry.path, size=entry.size),)


def _write_manifest(manifest: str, pieces: tuple[SampleFile, ...], path: str) -> str:
    """Write a manifest of these files and of the folders above them; return its path."""
    wanted = {b""}
    for piece in pieces:
        parts = piece.path.split(b"/")
        wanted.update(b"/".join(parts[:length]) for length in range(1, len(parts) + 1))
    header, entries = read_manifest(manifest)
    write_manifest(path, header, (entry for entry in entries if entry.path in wanted))
    return path


def restore_files(lot: FileSample, journal: RunRecorder, writer: Writer, tree: str, notes: str) -> float | Refusal:
    """Restore the files to an empty folder, as a restore does; return the time it took. Raises: OrchestratorError."""
    job, tools, to = journal.job, journal.tools, Location(path=tree)
    refused = refuse_space(os.path.dirname(tree), lot.size, job)
    if refused:
        return refused
    what = "all files" if lot.whole else f"{len(lot.pieces)} of {show_count(lot.of_files, 'file')}"
    summary = f"drill: bring {what} of point {lot.point.name} back to {tree}, {show_size(lot.size)}"
    if lot.whole:
        wanted = RestoreRequest(point=lot.point, path=b"", to=to)
        engine = file_restorer(tools.engine, lot.point)
        plan = engine.plan_restore(job, wanted, engine.survey_restore(job, wanted, writer), aside=None)
        own = [stage for stage in plan.stages if not any(isinstance(step.work, TreeVerification) for step in stage)]
        plan = replace(plan, summary=summary, stages=tuple(own))
    else:
        paths = tuple(piece.path for piece in lot.pieces)
        step = replace(tools.trees.plan_sample(job, lot.point, paths, to, notes), expected=Bytes(lot.size))
        plan = Plan(summary=summary, stages=((step,),))
    journal.decided(plan)
    began = tools.monotonic()
    with told_where_full(f"the sample does not fit into {tree}", _WHEN_FULL):
        for stage in plan.stages:
            StepExecutor(journal, writer, notes).do(stage)
    return tools.monotonic() - began


def compare_files(lot: FileSample, journal: RunRecorder, writer: Writer, tree: str, notes: str) -> VerificationResult:
    """Compare the restored data with the manifest. Raises: OrchestratorError."""
    work = journal.tools.trees.comparison_of(journal.job, lot.point, Location(path=tree))
    return read_tree(work, lot.manifest, journal, writer, notes)


def compare_copy(lot: FileSample, journal: RunRecorder, writer: Writer, notes: str) -> VerificationResult:
    """Read the same files in the point itself, to see whether the copy is damaged; damage is recorded."""
    journal.say(f"the same files are read in point {lot.point.name} itself")
    point = lot.point
    work = TreeVerification(point=point, tree=point.tree, apart=point.apart, workers=journal.job.verify.workers)
    return read_part(work, lot.manifest, journal, writer, notes)


def damage_files(lot: FileSample, tree: str, seed: int) -> tuple[bytes, ...]:
    """Damage the restored data, never the copy: one bit, one missing file, one cut short; return the files."""
    full = [piece for piece in lot.pieces if piece.size]
    first = seed % max(len(full), 1)
    chosen = [*full[first:], *full[:first]][:3]
    with Folder(tree) as folder:
        for piece, way in zip(chosen, (_flip, _remove, _cut), strict=False):
            way(folder, piece.path)
    return tuple(piece.path for piece in chosen)


def _flip(tree: Folder, path: bytes) -> None:
    with open(tree.open_file(path, change=True), "r+b", buffering=0) as file:
        before = os.fstat(file.fileno())
        byte = file.read(1)[0]
        file.seek(0)
        file.write(bytes((byte ^ 1,)))
        os.utime(file.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))


def _remove(tree: Folder, path: bytes) -> None:
    with tree.enter(os.path.dirname(path)) as folder:
        before = os.fstat(folder.fd)
        folder.remove_file(os.path.basename(path))
        os.utime(folder.fd, ns=(before.st_atime_ns, before.st_mtime_ns))


def _cut(tree: Folder, path: bytes) -> None:
    with open(tree.open_file(path, change=True), "r+b", buffering=0) as file:
        before = os.fstat(file.fileno())
        os.ftruncate(file.fileno(), before.st_size - 1)
        os.utime(file.fileno(), ns=(before.st_atime_ns, before.st_mtime_ns))
