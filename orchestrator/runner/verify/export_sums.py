"""Export of a point's digests as a file for `sha256sum -c`; the digests of its manifest are verified meanwhile."""

import os
from collections.abc import Iterator

from orchestrator.domain.errors import OrchestratorError, ProofFailed
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import Point
from orchestrator.domain.run import Kind, Outcome, RunReport
from orchestrator.planners.restore import choose_point
from orchestrator.process.executor import Writer
from orchestrator.runner.context import Tools
from orchestrator.runner.manifests import run_workers
from orchestrator.runner.run_recorder import Journal, begin, fetched
from orchestrator.runner.verify.read_files import tell_counts
from orchestrator.verify.build import Spool
from orchestrator.verify.export import write_sums
from orchestrator.verify.manifest import read_manifest
from orchestrator.verify.pipelines import worker_pipelines
from orchestrator.verify.results import Collector


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A finished export; `lines`: number of files in it."""

    report: RunReport
    lines: int


def export_sums(job: Job, tools: Tools, *, point: str | None, to: str) -> Exported:
    """Write the sums to `to`. A manifest with sha256 digests needs no reading; any other point is read completely."""
    journal = begin(job, tools, f"export to {to}", Kind.EXPORT)
    journal.attempt_begun()
    lines = 0
    try:
        writer = tools.writer(())
        chosen = choose_point(tools.engine.points(job, writer), point=point, at=None)
        if isinstance(chosen, Refusal):
            return Exported(
                report=journal.ended(Outcome.REFUSED, chosen.why, cure=chosen.cure, evidence=chosen.evidence), lines=0
            )
        lines = write_sums(to, _digests(chosen, journal, writer))
    except OrchestratorError as error:
        journal.attempt_ended(error)
        return Exported(report=journal.ended(Outcome.FAILED, error.why, cure=error.cure), lines=0)
    except OSError as error:
        return Exported(
            report=journal.ended(
                Outcome.FAILED, f"{to} could not be written: {error.strerror}", cure="name another file"
            ),
            lines=0,
        )
    why = f"{lines} files of point {chosen.name} in {to}; to check: cd {chosen.tree.path} && sha256sum -c {os.path.abspath(to)}"
    return Exported(report=journal.ended(Outcome.DONE, why), lines=lines)


def _digests(point: Point, journal: Journal, writer: Writer) -> Iterator[tuple[bytes, str]]:
    if point.manifest is None:
        raise ProofFailed(f"point {point.name} has no manifest", cure="choose another point")
    notes = f"{journal.tools.state}/notes/export-{journal.job.name}"
    os.makedirs(notes, mode=0o700, exist_ok=True)
    manifest = fetched(point.manifest, journal, writer, notes)
    entries = read_manifest(manifest)[1]
    if all(entry.digest.startswith("sha256:") for entry in entries if ":" in entry.digest):
        return ((entry.path, entry.digest) for entry in read_manifest(manifest)[1] if ":" in entry.digest)
    if point.tree.host is not None:
        raise ProofFailed(
            f"the digests of point {point.name} are no sha256, and its files lie on {point.tree.host}",
            cure='set digest = "sha256" in [verify] for points to come',
        )
    return _read(point, manifest, journal, writer, notes)


def _read(point: Point, manifest: str, journal: Journal, writer: Writer, notes: str) -> Iterator[tuple[bytes, str]]:
    """Read the point once for both digests. Raises: ProofFailed when it differs from its manifest: no wrong sums are written."""
    workers = journal.job.verify.workers
    with Spool(notes) as spool:
        collector = Collector(workers, taken=spool.take)
        pipelines = worker_pipelines(point.tree.path, manifest, workers=workers, mode="digest", algorithm="sha256")
        run_workers(pipelines, collector, journal, writer)
        reading = collector.reading(took_s=0)
        if not reading.sound:
            raise ProofFailed(
                f"point {point.name} is not as its manifest promises: {tell_counts(reading)}",
                cure=f"poolferry verify {journal.job.name}",
            )
        yield from spool.named()
