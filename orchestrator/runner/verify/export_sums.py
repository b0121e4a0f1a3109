"""Export of a point's digests as a file for `sha256sum -c`; the digests of its manifest are verified meanwhile."""

import os
import re
from collections.abc import Iterable, Iterator

from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import OrchestratorError, VerificationFailed
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.run import Outcome, RunReport, RunType
from orchestrator.domain.units import show_count
from orchestrator.planners.restore import choose_point
from orchestrator.process.executor import Writer
from orchestrator.runner.context import RunContext
from orchestrator.runner.last_look import find_points
from orchestrator.runner.manifests import require_authentic, run_workers
from orchestrator.runner.run_recorder import RunRecorder, begin_run, fetch_file
from orchestrator.runner.verify.read_files import describe_counts
from orchestrator.trees.beneath import new_file_at
from orchestrator.verify.build import DigestSpool
from orchestrator.verify.manifest import read_manifest
from orchestrator.verify.pipelines import worker_pipeline
from orchestrator.verify.results import ResultCollector


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportResult:
    """A finished export; `lines`: number of files in it."""

    report: RunReport
    lines: int


def export_sums(job: Job, tools: RunContext, *, point: str | None, to: str) -> ExportResult:
    """Write the sums to `to`. A manifest with sha256 digests needs no reading; any other point is read completely."""
    journal = begin_run(job, tools, f"export to {to}", RunType.EXPORT)
    journal.attempt_begun()
    lines = 0
    try:
        writer = tools.writer(())
        chosen = choose_point(find_points(job, tools, writer), point=point, at=None)
        if isinstance(chosen, Refusal):
            return ExportResult(
                report=journal.ended(Outcome.REFUSED, chosen.why, hint=chosen.hint, evidence=chosen.evidence), lines=0
            )
        lines = write_sums(to, _digests(chosen, journal, writer))
    except OrchestratorError as error:
        return ExportResult(report=journal.ended_by(error, continues="the same command begins anew"), lines=0)
    except OSError as error:
        return ExportResult(
            report=journal.ended(
                Outcome.FAILED, f"{to} could not be written: {error.strerror}", hint="name another file"
            ),
            lines=0,
        )
    why = f"{show_count(lines, 'file')} of point {chosen.name} in {to}; to check: cd {quoted(chosen.tree.path)} && sha256sum -c {quoted(os.path.abspath(to))}"
    return ExportResult(report=journal.ended(Outcome.DONE, why), lines=lines)


def _digests(point: RestorePoint, journal: RunRecorder, writer: Writer) -> Iterator[tuple[bytes, str]]:
    if point.manifest is None:
        raise VerificationFailed(f"point {point.name} has no manifest", hint="choose another point")
    notes = f"{journal.tools.state}/notes/export-{journal.job.name}"
    os.makedirs(notes, mode=0o700, exist_ok=True)
    manifest = fetch_file(point.manifest, journal, writer, notes)
    require_authentic(point, manifest, journal, writer, notes)
    entries = read_manifest(manifest)[1]
    if all(entry.digest.startswith("sha256:") for entry in entries if ":" in entry.digest):
        return ((entry.path, entry.digest) for entry in read_manifest(manifest)[1] if ":" in entry.digest)
    if point.tree.host is not None:
        raise VerificationFailed(
            f"the digests of point {point.name} are no sha256, and its files lie on {point.tree.host}",
            hint='set digest = "sha256" in [verify] for points to come',
        )
    return _read(point, manifest, journal, writer, notes)


def _read(
    point: RestorePoint, manifest: str, journal: RunRecorder, writer: Writer, notes: str
) -> Iterator[tuple[bytes, str]]:
    """Read the point once for both digests. Raises: VerificationFailed when it differs from its manifest."""
    workers = journal.job.verify.workers
    with DigestSpool(notes) as spool:
        collector = ResultCollector(workers, taken=spool.take)
        pipeline = worker_pipeline(point.tree.path, manifest, workers=workers, mode="digest", algorithm="sha256")
        run_workers(pipeline, collector, journal, writer)
        reading = collector.reading(took_s=0)
        if not reading.sound:
            raise VerificationFailed(
                f"point {point.name} does not match its manifest: {describe_counts(reading)}",
                hint=f"poolferry verify {journal.job.name}",
            )
        yield from spool.named()


_SPECIAL = re.compile(rb"[\\\n\r]")
_SHORT = {b"\\": b"\\\\", b"\n": b"\\n", b"\r": b"\\r"}


def write_sums(path: str, digests: Iterable[tuple[bytes, str]]) -> int:
    """Write a file as sha256sum does, for `sha256sum -c` in the root of the tree; return the number of lines.

    `digests`: paths and "sha256:…". Raises: ValueError for another algorithm · OSError.
    """
    count = 0
    with new_file_at(path) as file:
        for name, digest in digests:
            file.write(format_sum(name, digest))
            count += 1
    return count


def format_sum(name: bytes, digest: str) -> bytes:
    """Return one line, newline included; a backslash at its start marks an escaped name."""
    algorithm, _, plain = digest.partition(":")
    if algorithm != "sha256":
        raise ValueError(f"sha256sum knows nothing of {algorithm}")
    shown = _SPECIAL.sub(lambda match: _SHORT[match[0]], name)
    return b"%b%b  ./%b\n" % (b"\\" if shown != name else b"", plain.encode("ascii"), shown)
