"""Verification of copies within a budget, resumed the next time: visits are short, disks are large, and a promise is kept bit by bit.

A point is read in parts, file after file; a dataset as a whole, by a send whose output is discarded, which needs no key.
"""

import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime

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
from orchestrator.history.values import PointRecord
from orchestrator.planners.read_deadline import AgedData, decide_budget, is_turn
from orchestrator.planners.read_order import ReadItem, choose_next_read, oldest_read
from orchestrator.process.executor import Writer
from orchestrator.runner.context import RunContext
from orchestrator.runner.disk.state import READING, SCRUBBED
from orchestrator.runner.disk.visit import BudgetReadResult
from orchestrator.runner.last_look import find_points
from orchestrator.runner.locks import lock_point
from orchestrator.runner.manifests import require_authentic
from orchestrator.runner.problems import look_for_points, missing_parts
from orchestrator.runner.run_recorder import ENDS_A_RUN, RunRecorder, begin_run, fetch_file, run_small
from orchestrator.runner.verify.read_files import (
    describe_counts,
    describe_first_findings,
    read_part,
    verify_tree,
)
from orchestrator.verify.entry import ManifestEntry
from orchestrator.verify.manifest import read_manifest, write_manifest

_PIECE = 16 << 30  # bytes read at a time: what was read until then is kept when the rest is cut
_UNKNOWN = 1 << 30  # bytes of a point whose size nobody recorded
PROMISED_TURN = "promised reading on "  # before the name of a place: a small fact of a job, when its last turn began
Weigh = Callable[[Sequence[AgedData]], int]


class _ReadBudget:
    """The progress of a reading: the data read so far, and the remaining budget.

    `weigh`: decides the budget once it is known what there is; `over`: whether the time is up.
    """

    def __init__(
        self, budget: int = 0, *, weigh: Weigh | None = None, over: Callable[[], bool] = lambda: False
    ) -> None:
        self.budget, self.read, self.whole = budget, 0, 0
        self.promised, self.over = weigh is not None, over
        self.bad: list[str] = []
        self.evidence: list[str] = []
        self._weigh = weigh

    @property
    def left(self) -> int:
        return 0 if self.over() else self.budget - self.read

    def settle(self, items: Sequence[AgedData]) -> None:
        """Decide the budget, where that was left to what there is."""
        if self._weigh is not None:
            self.budget = self._weigh(items)


def read_within_budget(job: Job, tools: RunContext, *, budget: Bytes) -> BudgetReadResult:
    """Read again the points or datasets of the job at its place, those with the oldest reading first."""
    journal = begin_run(job, tools, f"read {show_size(budget)} of the copies again", RunType.VERIFY)
    journal.attempt_begun()
    tally = _ReadBudget(budget)
    return BudgetReadResult(report=_reread(journal, tally), read=tally.read)


def read_as_promised(
    job: Job, tools: RunContext, *, at_once: bool = False, until: datetime | None = None
) -> BudgetReadResult | None:
    """Read again what [verify] read-all-within asks for now; None: nothing, as the last turn was a short while ago.

    `at_once`: a person asks, who waits for no turn; `until`: when the time for it is up.
    """
    key, now = PROMISED_TURN + job.target.name, tools.clock()
    last = tools.history.fact(job.name, key, lambda text: parse_instant(text) if text else None)
    if job.verify.read_all_within is None or not (at_once or is_turn(last, now)):
        return None
    journal = begin_run(job, tools, "[verify] read-all-within asks for it", RunType.VERIFY)
    journal.attempt_begun()
    tools.history.remember(job.name, key, now.isoformat())
    tally = _ReadBudget(
        weigh=lambda items: decide_budget(items, job.verify, last=last, now=now, at_once=at_once),
        over=lambda: until is not None and tools.clock() >= until,
    )
    report = _reread(journal, tally)
    if report.outcome is Outcome.INTERRUPTED and not tally.read:
        tools.history.remember(job.name, key, last.isoformat() if last else "")
    return BudgetReadResult(report=report, read=tally.read)


def _reread(journal: RunRecorder, tally: _ReadBudget) -> RunReport:
    tools = journal.tools
    try:
        writer = tools.writer(())
        if implements(tools.engine, StreamReader):
            return _ended(journal, tally, _send(journal, writer, tools.engine, tally), "dataset")
        return _ended(journal, tally, _points(journal, writer, tally), "point")
    except ENDS_A_RUN as error:
        return journal.ended_by(
            error, continues=f"it continues {'with the next turn' if tally.promised else 'at the next visit'}"
        )


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
    there = look_for_points(journal, writer)
    points = {point.name: point for point in there if point.manifest is not None}
    notes = f"{tools.state}/notes/verify-{job.name}"
    os.makedirs(notes, mode=0o700, exist_ok=True)
    tally.settle(_promised_items(journal, points))
    while tally.left > 0:
        began = _PartialRead.of(journal)
        units = _read_items(journal, points, asked=not tally.promised)
        unit = choose_next_read(units, since)
        name = began.point if began.point in points else unit.name if unit else None
        if name is None:
            break
        with lock_point(job, tools.state, name):
            if not _read(points[name], began if began.point == name else _PartialRead(), tally, journal, writer, notes):
                break
    return _read_items(journal, points)


def _known_points(journal: RunRecorder) -> dict[str, PointRecord]:
    job = journal.job
    return {each.name: each for each in journal.tools.history.views.points(job.name) if each.place == job.target.name}


def _read_items(journal: RunRecorder, points: Mapping[str, RestorePoint], *, asked: bool = True) -> list[ReadItem]:
    """Return the points with their last readings. `asked`: what is known as damaged is read once more, though all of it was read since."""
    known = _known_points(journal)
    return [
        ReadItem(name=name, read_at=own.whole_at if own else None, suspect=own is not None and _is_suspect(own, asked=asked))
        for name, own in ((name, known.get(name)) for name in points)
    ]  # fmt: skip


def _is_suspect(own: PointRecord, *, asked: bool) -> bool:
    """Return True when damage was found that no reading of the whole point has confirmed since: else each turn would read it alone."""
    told = own.whole_at is not None and (own.reading is None or own.reading.read_at <= own.whole_at)
    return own.sound is False and (asked or not told)


def _promised_items(journal: RunRecorder, points: Iterable[str]) -> list[AgedData]:
    known = _known_points(journal)
    largest = max((each.bytes or 0 for each in known.values()), default=0) or _UNKNOWN
    return [
        AgedData(size=Bytes(largest), since=None)
        if (own := known.get(name)) is None
        else AgedData(
            size=Bytes(largest if own.bytes is None else own.bytes), since=own.whole_at or own.made_at or own.taken_at,
            suspect=_is_suspect(own, asked=False),
        )
        for name in points
    ]  # fmt: skip


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
    part, whole = _part(entries, after, min(tally.left, _PIECE), single=tally.left if tally.read else None)
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
    entries: Iterator[ManifestEntry], after: bytes | None, allowed: int, *, single: int | None
) -> tuple[list[ManifestEntry], bool]:
    """Return the next entries of so many bytes, and whether they are the last. `single`: the largest size of the first; None: any."""
    part, size, passed = list[ManifestEntry](), 0, after is None
    for entry in entries:
        if passed:
            fits = size + entry.size <= allowed or (not size and (single is None or entry.size <= single))
            if not fits:
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
    journal.verdicts.verified(job.name, job.target.name, point.name, reading=reading, now=journal.now, scope=WHOLE)


# -- datasets


def _send(journal: RunRecorder, writer: Writer, engine: StreamReader, tally: _ReadBudget) -> Sequence[ReadItem]:
    since = journal.now
    found = {each.name: each for each in engine.sendable(journal.job, writer)}
    read = _sent(journal, found)
    came = min((each.made_at for each in _known_points(journal).values() if each.made_at), default=journal.now)
    tally.settle([AgedData(size=found[name].size, since=unit.read_at or came) for name, unit in read.items()])
    while tally.left > 0 and (unit := choose_next_read(read.values(), since)) is not None:
        if tally.read and found[unit.name].size > tally.left:
            break
        for pipeline in found[unit.name].reads:
            run_small(pipeline, journal, writer, on_output=_unheard)
        now = journal.now
        journal.tools.history.remember(journal.job.name, f"{_key(journal.job)} {unit.name}", now.isoformat())
        read[unit.name] = replace(unit, read_at=now)
        tally.read += max(found[unit.name].size, 1)
        tally.whole += 1
    _note_whole(journal, writer, tuple(read.values()), tally)
    return tuple(read.values())


def _unheard(_: bytes) -> None:
    """Take what a reading prints, each second, by which it knows that somebody waits for its end."""


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
    journal.verdicts.verified(job.name, job.target.name, newest.name, reading=reading, now=since, scope=WHOLE)
    tools.history.place_read(job.name, job.target.name, began=since, counted=False)


def _sent(journal: RunRecorder, found: Iterable[str]) -> dict[str, ReadItem]:
    """Return each dataset with its last reading; a scrub read those too that had been read before it."""
    job, history = journal.job, journal.tools.history
    told = history.views.facts_below(job.name, f"{_key(job)} ", parse_instant)
    if scrubbed := history.fact(job.name, SCRUBBED + job.target.name, parse_instant):
        told = {name: max(read, scrubbed) for name, read in told.items()}
    return {name: ReadItem(name=name, read_at=told.get(name)) for name in found}
