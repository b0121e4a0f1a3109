"""Comparison of both sides of a copy without a manifest: by a survey, and by contents on request."""

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

from orchestrator.domain.answers import NOT_READ
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.plan import Pipeline, Refusal, Step
from orchestrator.domain.point import Finding, Verdict, VerificationResult
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.engines.contract.comparison import ComparisonPlan, CopyComparer, RepairPlanner, SnapshotPair
from orchestrator.engines.contract.engine import RunRequest, implements
from orchestrator.history.store import WHOLE
from orchestrator.process.executor import Writer
from orchestrator.runner.problems import missing_parts, note_missing_parts
from orchestrator.runner.run_recorder import RunRecorder
from orchestrator.runner.source_state import remembered_facts
from orchestrator.runner.steps import StepExecutor
from orchestrator.runner.verify.read_files import describe_counts, describe_first_findings
from orchestrator.verify.build import sorted_records
from orchestrator.verify.compare_sides import SortedListing, compare_sides
from orchestrator.verify.entry import split_records

LOOK = "look"  # the scope of a reading that read no contents
_FEW = 1000
_PIECE = 1 << 18


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonResult:
    """A finished comparison. `source`: what could not be read there; None: contents were not compared.

    `of_point`: the result for the point itself. `heals`: lines with the commands that repair the damage.
    """

    comparison: ComparisonPlan
    reading: VerificationResult
    of_point: VerificationResult
    source: VerificationResult | None
    heals: tuple[str, ...] = ()


def repair_commands(
    journal: RunRecorder, seen: Any, request: RunRequest, compared: ComparisonResult
) -> tuple[str, ...]:
    """Return the commands that repair the damage that was found."""
    source = compared.source.findings if compared.source else ()
    engine = journal.tools.engine
    if not implements(engine, RepairPlanner) or (compared.reading.sound and not source):
        return ()
    return engine.heal(journal.job, seen, request, compared.reading.findings, source)


def compare_copy(
    journal: RunRecorder, writer: Writer, engine: CopyComparer, notes: str, *, point: str | None, content: bool
) -> ComparisonResult | Refusal:
    """Survey both sides, compare them, and record the verdict. Raises: OrchestratorError."""
    job, tools = journal.job, journal.tools
    began = tools.monotonic()
    os.makedirs(notes, mode=0o700, exist_ok=True)
    request = RunRequest(now=journal.now, notes=notes, remembered=remembered_facts(job, tools))
    seen = engine.survey_both(job, request, writer, content=content)
    comparison = engine.plan_comparison(job, seen, request, point=point, content=content)
    if isinstance(comparison, Refusal):
        return comparison
    compared = run_comparison(comparison, journal, writer, notes)
    if comparison.point is not None:
        # All that can be read counts as whole; where nothing can be read, it was only a survey.
        scope = WHOLE if comparison.stages else LOOK
        told = replace(compared.of_point, took_s=tools.monotonic() - began)
        if comparison.lacking:  # of a part of a point nothing is sound but what was read
            memory = tools.history.memory(job.name)
            before = missing_parts(memory, job.target.name, comparison.point)
            note_missing_parts(journal, comparison.point, comparison.lacking, before)
        if not (comparison.lacking and told.sound):
            journal.verdicts.verified(
                job.name, job.target.name, comparison.point, reading=told, now=journal.now, scope=scope
            )
    compared = replace(compared, source=compared.source if content else None)
    return replace(compared, heals=repair_commands(journal, seen, request, compared))


def run_comparison(comparison: ComparisonPlan, journal: RunRecorder, writer: Writer, notes: str) -> ComparisonResult:
    """Carry out a comparison; record no verdict. Raises: OrchestratorError."""
    began = journal.tools.monotonic()
    for warning in comparison.warnings:
        journal.warn(warning)
    tally = _ComparisonTally(comparison)
    executor = StepExecutor(journal, writer, notes)
    for stage in comparison.stages:
        _read(stage, executor, tally)
    took = journal.tools.monotonic() - began
    return ComparisonResult(
        comparison=comparison, reading=tally.reading(took), of_point=tally.of_point(took),
        source=tally.unreadable(took),
    )  # fmt: skip


def _read(stage: tuple[SnapshotPair, ...], executor: StepExecutor, tally: "_ComparisonTally") -> None:
    """List a stage's snapshots on both sides, and compare them."""
    steps = [step for pair in stage for step in (pair.source, pair.target)]
    files = [output_file(step) for step in steps]
    _remove(files)
    try:
        executor.read_together(steps)
        for pair in stage:
            tally.compare(pair, executor.notes)
    finally:
        _remove(files)


def output_file(step: Step) -> str:
    """Return the local file that collects a step's output."""
    if not isinstance(step.work, Pipeline) or step.work.keeps is None:
        raise TypeError(f"a listing that is kept nowhere: {step.action}")
    return step.work.keeps


def _remove(files: list[str]) -> None:
    for file in files:
        if os.path.exists(file):
            os.unlink(file)


class _ComparisonTally:
    """The findings of a comparison, pair by pair: all are counted, the first ones are kept."""

    def __init__(self, comparison: ComparisonPlan) -> None:
        self._entries, self._files, self._bytes = comparison.checked, 0, 0
        self._point, self._lacking = (comparison.point or "").encode(), bool(comparison.lacking)
        self._copy, self._source, self._of_point = _Findings(), _Findings(), _Findings()
        for finding in comparison.findings:
            self._add(finding)

    def _add(self, finding: Finding) -> None:
        self._copy.add(finding)
        _, at, rest = finding.path.partition(b"@")
        # A dataset without the point is no damage of it: the point is recorded as one that lacks parts.
        lacks = self._lacking and finding.verdict is Verdict.MISSING and b"/" not in rest
        if at and rest.partition(b"/")[0] == self._point and not lacks:
            self._of_point.add(finding)

    def compare(self, pair: SnapshotPair, folder: str) -> None:
        """Compare the two listings of a pair. Raises: VerificationFailed when a listing is incomplete."""
        source, target = (SortedListing(_sorted(output_file(step), folder)) for step in (pair.source, pair.target))
        try:
            for finding, at_source in compare_sides(source, target):
                path = pair.name + (b"/" + finding.path if finding.path else b"")
                (self._source.add if at_source else self._add)(replace(finding, path=path))
        except NOT_READ as error:
            raise VerificationFailed(f"the listings of {show_name(pair.name)} cannot be understood: {error}") from error
        self._entries += target.entries
        self._files += target.files
        self._bytes += target.bytes

    def reading(self, took_s: float) -> VerificationResult:
        """Return the verdict on the copy."""
        return self._copy.reading(took_s, self._entries, self._files, self._bytes)

    def of_point(self, took_s: float) -> VerificationResult:
        """Return the verdict on the point itself: data written after it do not harm it."""
        return self._of_point.reading(took_s, self._entries, self._files, self._bytes)

    def unreadable(self, took_s: float) -> VerificationResult:
        """Return the entries that could not be read on the source."""
        return self._source.reading(took_s, self._entries, self._files, self._bytes)


class _Findings:
    def __init__(self) -> None:
        self._counts: Counter[Verdict] = Counter()
        self._first: list[Finding] = []

    def add(self, finding: Finding) -> None:
        self._counts[finding.verdict] += 1
        if len(self._first) < _FEW:
            self._first.append(finding)

    def reading(self, took_s: float, entries: int, files: int, size: int) -> VerificationResult:
        counts = tuple((verdict, self._counts[verdict]) for verdict in Verdict if self._counts[verdict])
        return VerificationResult(
            entries=entries,
            files_read=files,
            bytes_read=size,
            took_s=took_s,
            counts=counts,
            findings=tuple(self._first),
        )


def _sorted(file: str, folder: str) -> Iterator[bytes]:
    with open(file, "rb") as kept:
        yield from sorted_records(split_records(iter(lambda: kept.read(_PIECE), b"")), folder=folder)


def require_same(compared: ComparisonResult, journal: RunRecorder) -> None:
    """Check that the comparison found no difference. Raises: VerificationFailed, with the first findings."""
    if not compared.reading.sound:
        told = f"{describe_counts(compared.reading)}: {describe_first_findings(compared.reading)}"
        raise VerificationFailed(f"the copy is not as the source: {told}", hint=_hint(journal.job, compared))


def comparison_report(journal: RunRecorder, compared: ComparisonResult, *, content: bool) -> RunReport:
    """Return the report of a verification."""
    reading, source = compared.reading, compared.source
    unreadable = source.findings if source else ()
    for found in unreadable[:5]:
        journal.warn(f"{show_name(found.path)}: {found.detail}")
    if reading.sound and not unreadable:
        return journal.ended(Outcome.DONE, _good(compared, content=content))
    evidence = tuple(
        f"{show_name(found.path) or '.'}: {found.verdict.value}: {found.detail}"
        for found in (*reading.findings, *unreadable)[:50]
    )
    evidence = (*evidence, *(f"to heal {line}" for line in compared.heals))
    if reading.sound:
        why = f"{show_count(len(unreadable), 'entry', 'entries')} cannot be read on the source; the copy can"
        hint = f"`zpool status -v` on the source; good contents are in the copy: {journal.job.target.location}"
        return journal.ended(Outcome.FAILED, why, hint=hint, evidence=evidence)
    why = f"the copy is not as the source: {describe_counts(reading)}"
    return journal.ended(Outcome.FAILED, why, hint=_hint(journal.job, compared), evidence=evidence)


def _good(compared: ComparisonResult, *, content: bool) -> str:
    comparison, reading = compared.comparison, compared.reading
    held = f"{show_count(comparison.checked, 'snapshot')} of {show_count(comparison.datasets, 'dataset')}"
    where = f"point {comparison.point}: " if comparison.point else ""
    told = f"{where}both sides hold the same {held}, by guid"
    if not content:
        return f"{told}; contents were not read (--content reads them)"
    read = (
        f"{show_count(reading.files_read, 'file')}, {show_size(reading.bytes_read)}, in {show_duration(reading.took_s)}"
    )
    unproved = dict(reading.counts).get(Verdict.UNPROVED, 0)
    left = f"; {unproved} could not be compared" if unproved else ""
    return f"{told}, and the same contents: {read}{left}"


def _hint(job: Job, compared: ComparisonResult) -> str:
    """Return the hint for the most serious finding.

    Why not a run with --aside: it sends anew only datasets that do not match by guid, and a damaged copy does match.
    """
    counts, whole = dict(compared.reading.counts), job.target.location.path
    if any(counts.get(verdict) for verdict in (Verdict.ROTTEN, Verdict.UNREADABLE)):
        heals = (
            "how to send it again is shown below" if compared.heals else
            f"the source holds the same snapshots no more, so only another copy helps: `poolferry restore plan {job.name}`"
        )  # fmt: skip
        return f"`zpool scrub` both pools, then `zpool status -v` names what is damaged; {heals}"
    if counts.get(Verdict.MISSING):
        return (
            f"`poolferry run {job.name}`; what lies before the copy's newest snapshot comes only with a copy from the beginning: "
            f"`zfs rename {quoted(whole)} {quoted(whole + '.old')}` on its pool, then `poolferry run {job.name} --aside`"
        )
    if counts.get(Verdict.EXTRA):
        told = "the source was rolled back, or lost what the copy still has, or somebody changed the copy"
    else:
        told = "somebody changed the copy"
    return f"{told}: `poolferry plan {job.name}` says what that means for the next run"
