"""Verification of copies within a budget, resumed the next time: visits are short, disks are large.

A point is read in parts, file after file; a dataset as a whole, by a send whose output is discarded, which needs no key.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from orchestrator.domain.answers import check_count, parse_instant, parse_json
from orchestrator.domain.errors import ManifestForged
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import TreeVerification
from orchestrator.domain.point import Finding, RestorePoint, Verdict, VerificationResult
from orchestrator.domain.run import Outcome, RunReport, RunType
from orchestrator.domain.units import Bytes, show_count, show_duration, show_size
from orchestrator.engines.contract.comparison import StreamReader
from orchestrator.engines.contract.engine import implements
from orchestrator.history.store import WHOLE
from orchestrator.planners.read_order import ReadItem, choose_next_read, oldest_read
from orchestrator.process.executor import Writer
from orchestrator.runner.context import RunContext
from orchestrator.runner.disk.state import READING, SCRUBBED
from orchestrator.runner.disk.visit import BudgetReadResult
from orchestrator.runner.last_look import find_points
from orchestrator.runner.locks import lock_point
from orchestrator.runner.manifests import require_authentic
from orchestrator.runner.problems import missing_parts, see_points
from orchestrator.runner.run_recorder import ENDS_A_RUN, RunRecorder, begin_run, fetch_file, run_small
from orchestrator.runner.verify.read_files import (
    describe_counts,
    describe_first_findings,
    read_part,
    verify_tree,
)
from orchestrator.verify.entry import ManifestEntry
from orchestrator.verify.manifest import read_manifest, write_manifest


class _ReadBudget:
    """The progress of a reading: the data read so far, and the remaining budget."""

    def __init__(self, budget: int) -> None:
        self.budget, self.read, self.whole = budget, 0, 0
        self.bad: list[str] = []
        self.evidence: list[str] = []

    @property
    def left(self) -> int:
        return self.budget - self.read


def read_within_budget(job: Job, tools: RunContext, *, budget: Bytes) -> BudgetReadResult:
    """Read again the points or datasets of the job at its place, those with the oldest reading first."""
    journal = begin_run(job, tools, f"read {show_size(budget)} of the copies again", RunType.VERIFY)
    journal.attempt_begun()
    tally = _ReadBudget(budget)
    return BudgetReadResult(report=_reread(journal, tally), read=tally.read)


def _reread(journal: RunRecorder, tally: _ReadBudget) -> RunReport:
    tools = journal.tools
    try:
        writer = tools.writer(())
        if implements(tools.engine, StreamReader):
            return _ended(journal, tally, _send(journal, writer, tools.engine, tally), "dataset")
        return _ended(journal, tally, _points(journal, writer, tally), "point")
    except ENDS_A_RUN as error:
        return journal.ended_by(error, continues="it continues at the next visit")


def _ended(journal: RunRecorder, tally: _ReadBudget, units: Sequence[ReadItem], what: str) -> RunReport:
    if tally.bad:
        hint = f"`poolferry run {journal.job.name}` copies damaged files again; look at the disk's health (smartctl -a)"
        return journal.ended(Outcome.FAILED, "; ".join(tally.bad), hint=hint, evidence=tally.evidence[:50])
    if not units:
        return journal.ended(Outcome.NOTHING, "there is nothing to read again")
    since = oldest_read(units)
    age = show_duration((journal.now - since).total_seconds()) if since else ""
    reach = f"the oldest reading is {age} old" if since else "some of it was never read"
    whole = show_count(tally.whole, what)
    return journal.ended(
        Outcome.DONE, f"read {show_size(tally.read)} again, {whole} to the end, and all sound; {reach}"
    )


# -- points with manifests


def _points(journal: RunRecorder, writer: Writer, tally: _ReadBudget) -> Sequence[ReadItem]:
    job, tools, since = journal.job, journal.tools, journal.now
    there = find_points(job, tools, writer)
    see_points(journal, there, reader=writer)
    points = {point.name: point for point in there if point.manifest is not None}
    notes = f"{tools.state}/notes/verify-{job.name}"
    os.makedirs(notes, mode=0o700, exist_ok=True)
    while tally.left > 0:
        began = _PartialRead.of(journal)
        units = _read_items(journal, points)
        unit = choose_next_read(units, since)
        name = began.point if began.point in points else unit.name if unit else None
        if name is None:
            break
        with lock_point(job, tools.state, name):
            if not _read(points[name], began if began.point == name else _PartialRead(), tally, journal, writer, notes):
                break
    return _read_items(journal, points)


def _read_items(journal: RunRecorder, points: Mapping[str, RestorePoint]) -> list[ReadItem]:
    job = journal.job
    known = {each.name: each for each in journal.tools.history.views.points(job.name) if each.place == job.target.name}
    units = []
    for name in points:
        own = known.get(name)
        units.append(
            ReadItem(name=name, read_at=own.whole_at if own else None, suspect=bool(own and own.sound is False))
        )
    return units


@dataclass(frozen=True, slots=True, kw_only=True)
class _PartialRead:
    """A point that was read in part: its last file, and the findings so far."""

    point: str = ""
    after: str = ""
    entries: int = 0
    files: int = 0
    bytes: int = 0
    took_s: float = 0.0
    counts: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, journal: RunRecorder) -> "_PartialRead":
        return journal.tools.history.fact(journal.job.name, _key(journal.job), cls.parse) or cls()

    @classmethod
    def parse(cls, text: str) -> "_PartialRead":
        """Parse what `keep` stored. Raises: an error of NOT_READ."""
        told = parse_json(text or "{}")
        if not told:
            return cls()
        counts = tuple((Verdict(kind).value, check_count(number)) for kind, number in told["counts"])
        numbers = {name: check_count(told[name]) for name in ("entries", "files", "bytes")}
        took_s, after = float(told["took_s"]), bytes.fromhex(told["after"]).hex()
        if not 0 <= took_s < math.inf:
            raise ValueError("a reading without a time")
        return cls(point=str(told["point"]), after=after, took_s=took_s, counts=counts, **numbers)

    def keep(self, journal: RunRecorder) -> None:
        told = {
            name: getattr(self, name) for name in ("point", "after", "entries", "files", "bytes", "took_s", "counts")
        }
        journal.tools.history.remember(journal.job.name, _key(journal.job), json.dumps(told if self.point else {}))

    def and_then(self, point: str, last: ManifestEntry, reading: VerificationResult) -> "_PartialRead":
        counts = Counter(dict(self.counts)) + Counter({verdict.value: number for verdict, number in reading.counts})
        return _PartialRead(
            point=point, after=last.path.hex(), entries=self.entries + reading.entries, files=self.files + reading.files_read,
            bytes=self.bytes + reading.bytes_read, took_s=self.took_s + reading.took_s, counts=tuple(sorted(counts.items())),
        )  # fmt: skip


def _key(job: Job) -> str:
    return READING + job.target.name


def _read(
    point: RestorePoint, began: _PartialRead, tally: _ReadBudget, journal: RunRecorder, writer: Writer, notes: str
) -> bool:
    """Read as much of a point as the budget allows; return False when it is used up."""
    work = TreeVerification(point=point, tree=point.tree, apart=point.apart, workers=journal.job.verify.workers)
    manifest = fetch_file(_manifest(point), journal, writer, notes)
    try:
        require_authentic(point, manifest, journal, writer, notes)
    except ManifestForged as error:
        _PartialRead().keep(journal)
        tally.read += 1
        tally.bad.append(error.why)
        tally.evidence.append(error.hint)
        return True
    header, entries = read_manifest(manifest)
    after = bytes.fromhex(began.after) if began.point else None
    part, whole = _part(entries, after, tally.left, any_size=not tally.read)
    if not part and not whole:
        return False
    if (whole or point.damaged) and not began.point:  # only a complete reading removes a note of damage
        whole = True
        reading = verify_tree(work, journal, writer, notes)
    else:
        write_manifest(f"{notes}/part.gz", header, part)
        reading = read_part(work, f"{notes}/part.gz", journal, writer, notes)
        began = began.and_then(point.name, part[-1], reading) if part else began
    tally.read += max(reading.bytes_read, 1)
    if not reading.sound:
        tally.bad.append(f"point {point.name} does not match its manifest: {describe_counts(reading)}")
        tally.evidence.append(describe_first_findings(reading))
    if not whole:
        began.keep(journal)
        return True
    tally.whole += 1
    if began.point:
        _whole(point, began, reading.findings, journal)
        _PartialRead().keep(journal)
    return True


def _manifest(point: RestorePoint) -> Location:
    if point.manifest is None:
        raise ValueError(point.name)
    return point.manifest


def _part(
    entries: Iterator[ManifestEntry], after: bytes | None, allowed: int, *, any_size: bool
) -> tuple[list[ManifestEntry], bool]:
    """Return the next entries in the budget, and whether they are the last. `any_size`: at least one, of any size."""
    part, size, passed = list[ManifestEntry](), 0, after is None
    for entry in entries:
        if passed:
            if size + entry.size > allowed and not (any_size and not size):
                return part, False
            part.append(entry)
            size += entry.size
        elif entry.path == after:
            passed = True
    return part, True


def _whole(point: RestorePoint, began: _PartialRead, findings: tuple[Finding, ...], journal: RunRecorder) -> None:
    """Record the verdict on the whole point, after its last part was read."""
    counts = tuple((Verdict(name), number) for name, number in began.counts)
    reading = VerificationResult(
        entries=began.entries, files_read=began.files, bytes_read=began.bytes, took_s=began.took_s, counts=counts,
        findings=findings,
    )  # fmt: skip
    job = journal.job
    journal.tools.history.verified(job.name, job.target.name, point.name, reading=reading, now=journal.now, scope=WHOLE)


# -- datasets


def _send(journal: RunRecorder, writer: Writer, engine: StreamReader, tally: _ReadBudget) -> Sequence[ReadItem]:
    since = journal.now
    found = {each.name: each for each in engine.sendable(journal.job, writer)}
    read = _sent(journal, found)
    while tally.left > 0 and (unit := choose_next_read(read.values(), since)) is not None:
        if tally.read and found[unit.name].size > tally.left:
            break
        for pipeline in found[unit.name].reads:
            run_small(pipeline, journal, writer)
        now = journal.now
        journal.tools.history.remember(journal.job.name, f"{_key(journal.job)} {unit.name}", now.isoformat())
        read[unit.name] = replace(unit, read_at=now)
        tally.read += max(found[unit.name].size, 1)
        tally.whole += 1
    _note_whole(journal, writer, tuple(read.values()), tally)
    return tuple(read.values())


def _note_whole(journal: RunRecorder, writer: Writer, read: Sequence[ReadItem], tally: _ReadBudget) -> None:
    """Record the newest point as read again when each dataset was read to its end since the point came to the disk."""
    job, tools = journal.job, journal.tools
    points = find_points(job, tools, writer)
    since = oldest_read(read)
    if not (tally.whole and points and since):
        return
    known = {each.name: each for each in tools.history.views.points(job.name) if each.place == job.target.name}
    newest = known.get(points[-1].name)
    made = newest.made_at if newest else None
    if missing_parts(tools.history.memory(job.name), job.target.name, points[-1].name):
        return
    if newest is None or made is None or since < made or (newest.whole_at is not None and newest.whole_at >= since):
        return
    reading = VerificationResult(
        entries=len(read), files_read=0, bytes_read=tally.read, took_s=0.0, counts=(), findings=()
    )
    tools.history.verified(job.name, job.target.name, newest.name, reading=reading, now=since, scope=WHOLE)
    tools.history.place_read(job.name, job.target.name, began=since, counted=False)


def _sent(journal: RunRecorder, found: Iterable[str]) -> dict[str, ReadItem]:
    """Return each dataset with its last reading; a scrub read those too that had been read before it."""
    job, history = journal.job, journal.tools.history
    told = history.views.facts_below(job.name, f"{_key(job)} ", parse_instant)
    if scrubbed := history.fact(job.name, SCRUBBED + job.target.name, parse_instant):
        told = {name: max(read, scrubbed) for name, read in told.items()}
    return {name: ReadItem(name=name, read_at=told.get(name)) for name in found}
