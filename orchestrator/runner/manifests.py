"""Manifests of a job's copies: written from the entries that are there, with known digests and the rest read; and their tags.

A tag is made with this host's key when a manifest is written, and judged whenever one is read. History records for each job and
place which key was in use since when, so that a removed tag is noticed.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from itertools import chain, islice
from typing import NoReturn, TypeVar

from orchestrator.domain.answers import NOT_READ, split_lines, unreadable
from orchestrator.domain.authentication import (
    USES,
    AuthenticationKey,
    Authenticity,
    ManifestJudgement,
    ManifestTag,
    expected_key,
    judge_manifest,
    parse_uses,
)
from orchestrator.domain.errors import LookAgain, ManifestForged, OrchestratorError, VerificationFailed
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.names import POINT_NAME, parse_point_name, show_name
from orchestrator.domain.place import FOUND, Location
from orchestrator.domain.plan import ManifestRecording, Pipeline, SourceReview
from orchestrator.domain.point import MIRROR, Finding, RestorePoint, Verdict, VerificationResult
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.contract.engine import ManifestCounts, SkippedEntries
from orchestrator.history.authentication_key import obtain_key, read_key
from orchestrator.history.store import WHOLE
from orchestrator.process.background import BackgroundCall
from orchestrator.process.executor import PipelineFailed, Writer, pipeline_failure
from orchestrator.process.reading_beside import ReadingBeside
from orchestrator.runner.carried_manifest import ManifestCarrier, may_carry
from orchestrator.runner.far_digests import digests_there
from orchestrator.runner.older_point import OlderPointReading
from orchestrator.runner.problems import note_bad_manifest, note_mirror, require_last
from orchestrator.runner.run_recorder import (
    RunRecorder,
    fetch_file,
    is_earlier_note,
    notes_in_order,
    run_small,
    send_file,
)
from orchestrator.runner.source_review import (
    SourceListing,
    attributes_not_compared,
    begin_comparison,
    compare_attributes,
    copy_again,
    find_unstored,
    list_source,
    require_complete,
)
from orchestrator.verify.build import (
    DigestSpool,
    ManifestDraft,
    build_manifest,
    draft_of,
    finish_manifest,
    sorted_moves,
    sorted_records,
)
from orchestrator.verify.completeness import REMAINDERS, NotSwept, without_remainders
from orchestrator.verify.entry import UNKNOWN
from orchestrator.verify.fake_super import stored_command, stored_entries
from orchestrator.verify.manifest import ManifestHeader, Row, digest_manifest, read_manifest, read_rows, read_tag
from orchestrator.verify.pipelines import listing_command, worker_pipeline
from orchestrator.verify.results import ResultCollector
from orchestrator.verify.source import SourceComparison

_T = TypeVar("_T")
_READER_HINT = (
    "try again; if it comes back, look at the disk: the copy itself may be sound, and other points may be whole"
)
MOST_AT_ONCE = 500  # names in one command line
_MOST_ROUNDS = 50  # of copying again what is known by name


def record_manifest(
    work: ManifestRecording,
    local: str,
    journal: RunRecorder,
    writer: Writer,
    notes: str,
    left_out: list[SkippedEntries],
    *,
    began: float,
    older: OlderPointReading | None = None,
) -> ManifestCounts:
    """Write the manifest, to be made at `local`, and store it on the target. `began`: when the copy did; `older`: see `read_older_point`.

    Raises: OrchestratorError.
    """
    key = key_for(work.manifest, work.point, journal)
    build = _ManifestBuilder(work, local, key, left_out, began, journal, writer, notes, older)
    built, seen = build.carried() or build.draft()
    if seen:
        require_complete(seen, work, journal)
    refused = any(each.refused for each in left_out)
    if refused and not seen:
        raise attributes_not_compared(work)
    attributes = compare_attributes(seen, work, journal, writer, notes, refused=refused) if seen else {}
    if seen and work.review and seen.differences:
        built, attributes, unstored = _copied_again(
            build, seen, work, work.review, journal, writer, notes, refused=refused
        )
        left_out += [unstored] if unstored.unstored else []
    for found in built.findings:
        journal.warn(f"{show_name(found.path)}: {found.detail}; the older point keeps what it has")
    left_out[:] = [
        replace(
            each,
            unlinked=tuple(told for told in each.unlinked if told[0] not in build.there),
            unmade=tuple(told for told in each.unmade if told[0] not in build.there),
        )
        for each in left_out
    ]
    filled = _fill(work, local, built, journal, writer, notes)
    totals = finish_manifest(local, built, filled, attributes=attributes, key=key)
    if work.recorder is not None:
        work.recorder.manifest = digest_manifest(local)
    there = send_file(local, work.manifest, journal, writer) if work.manifest.host is not None else None
    if key is not None:
        note_use(key.id, _made_at(work.point, journal.now), journal)
    if work.point == MIRROR:
        if work.manifest.host is None:
            there = int(os.stat(local).st_mtime)
        note_mirror(journal, read_manifest(local)[0].created, there)
    return ManifestCounts(entries=totals.entries, files=totals.files, bytes=totals.bytes)


def read_older_point(
    work: ManifestRecording, journal: RunRecorder, writer: Writer, notes: str
) -> OlderPointReading | None:
    """Return the reading of what the manifest needs of the point before, to be begun; None where it needs nothing. Raises: OrchestratorError."""
    if not may_carry(work) or work.linked is None or work.linked.manifest is None:
        return None
    older = fetch_file(work.linked.manifest, journal, writer, notes)
    return OlderPointReading(work, older, key_for(work.manifest, work.point, journal))


def _copied_again(
    build: "_ManifestBuilder", seen: SourceComparison, work: ManifestRecording, review: SourceReview, journal: RunRecorder, writer: Writer,
    notes: str, *, refused: bool,
) -> tuple[ManifestDraft, dict[bytes, str], SkippedEntries]:  # fmt: skip
    """Copy what is not as at the source until nothing more becomes so; return the new draft, the copy's attributes, and what is left.

    Why again and again: of many differences the first ones are known by name. Raises: OrchestratorError.
    """
    copied: dict[bytes, bytes] = {}
    for number in range(1, _MOST_ROUNDS + 1):
        if not review.mirror:
            _separate(work, seen, journal, writer)
        copied.update((each.path, each.told) for each in seen.differences)
        copy_again(seen, review, journal, writer, number)
        built, again = build.draft()
        if again is None:
            raise attributes_not_compared(work)
        require_complete(again, work, journal)
        attributes = compare_attributes(again, work, journal, writer, notes, refused=refused)
        seen = again
        if all(copied.get(each.path) == each.told for each in seen.differences):
            break
    return built, attributes, find_unstored(seen, work, review, refused=refused)


def _separate(work: ManifestRecording, seen: SourceComparison, journal: RunRecorder, writer: Writer) -> None:
    """Remove links, pipes and devices that are to be copied again: rsync changes them in place, and a point may share them.

    A file is made anew each time, and no folder is shared.
    """
    paths = [each.path for each in seen.differences if each.kind not in "df"]
    for start in range(0, len(paths), MOST_AT_ONCE):
        run_small(journal.tools.trees.forget(work.tree, tuple(paths[start : start + MOST_AT_ONCE])), journal, writer)


class _ManifestBuilder:
    """The builder of a manifest's draft from the listings of both sides."""

    def __init__(
        self, work: ManifestRecording, local: str, key: AuthenticationKey | None, left_out: list[SkippedEntries], began: float,
        journal: RunRecorder, writer: Writer, notes: str, older: OlderPointReading | None,
    ) -> None:  # fmt: skip
        self._work, self._local, self._key, self._left_out, self._began = work, local, key, left_out, began
        self._journal, self._writer, self._notes, self._older = journal, writer, notes, older
        self.there = set[bytes]()  # of the names that were left out, those that the copy has all the same

    def carried(self) -> tuple[ManifestDraft, SourceComparison] | None:
        """Make the draft of the older manifest's lines, and of what changed; None where that is not enough. Raises: OrchestratorError."""
        work, journal = self._work, self._journal
        older = None if self._left_out else self._older or read_older_point(work, journal, self._writer, self._notes)
        if older is None or work.review is None or work.linked is None:
            return None
        comparison = begin_comparison(work.review, self._left_out, self._elapsed, journal, self._notes)
        carrier = ManifestCarrier(
            work, self._local, older, header=self._header(attributes=bool(work.review.parts)), key=self._key,
            comparison=comparison, writer=self._writer,
            moved=partial(_moved, work.moved, journal, self._notes),
            authentic=partial(_require_usable, work.linked, older.manifest, journal, self._writer, self._notes),
        )  # fmt: skip
        built = carrier.draft()
        return None if built is None else (built, comparison)

    def _elapsed(self) -> float:
        return self._journal.tools.monotonic() - self._began

    def draft(self) -> tuple[ManifestDraft, SourceComparison | None]:
        """List the tree, and the source beside it; return the draft and the comparison. Raises: OrchestratorError.

        Where remainders lie in the tree, it is swept first. Why not in any case: nearly no copy leaves some, and the listing sees each entry.
        """
        sweep = self._work.sweep
        if sweep is not None:
            with contextlib.suppress(NotSwept):
                return self._draft(swept=False)
            run_small(sweep, self._journal, self._writer)
        return self._draft(swept=True)

    def _draft(self, *, swept: bool) -> tuple[ManifestDraft, SourceComparison | None]:
        """Do the same. `swept`: what is left of remainders is no part of the tree. Raises: NotSwept."""
        work, notes, recorder = self._work, self._notes, self._work.recorder
        list_tree = stored_command if work.stored else listing_command
        command = list_tree(work.tree, exclude=REMAINDERS if swept else (), apart=work.apart)
        if recorder:
            recorder.begin(work.tree, work.point, carried=False)
            command = replace(command, argv=(*command.argv[:-1], recorder.form))
        pipeline = Pipeline(stages=(command,))
        with (
            BackgroundCall(
                lambda: _sorted(_moved(work.moved, self._journal, notes))
            ) as moved,  # while the tree is listed
            ReadingBeside(self._writer, self._source) as source,
        ):
            listing = self._listing(pipeline, source.executor, swept=swept)
            return self._merge(listing, moved.result(), source.result())

    def _listing(self, pipeline: Pipeline, writer: Writer, *, swept: bool) -> Iterator[bytes]:
        """List the tree; return its records, sorted. Raises: NotSwept · OrchestratorError."""
        notes, recorder = self._notes, self._work.recorder
        try:
            with writer.records(pipeline) as records:
                if self._work.stored:
                    return _sorted(record for record, _ in stored_entries(records, folder=notes))
                seen = records if swept else without_remainders(records)
                told = (
                    _without_change(chain.from_iterable(recorder.batches(iter(seen), copy=True))) if recorder else seen
                )
                return _sorted(sorted_records(told, folder=notes))
        except PipelineFailed as failure:
            raise self._journal.tools.engine.explain(failure) from failure
        except NOT_READ as error:
            raise unreadable("find", pipeline.stages[0], None, error) from error

    def _source(self, writer: Writer) -> SourceListing | None:
        if self._work.review is None:
            return None
        return list_source(
            self._work.review,
            self._work.tree,
            self._left_out,
            self._elapsed,
            self._journal,
            writer,
            self._notes,
            self._work.recorder,
        )

    def _merge(
        self, listing: Iterator[bytes], moved: Iterator[tuple[bytes, str]], source: SourceListing | None
    ) -> tuple[ManifestDraft, SourceComparison | None]:
        work = self._work
        seen = source.comparison if source else None
        header = self._header(attributes=seen is not None and seen.attributes)
        self.there.clear()
        perhaps = {name for each in self._left_out for name, _ in each.unlinked}
        if not (work.review and work.review.mirror):  # which keeps an older state of what is left out
            perhaps |= {name for each in self._left_out for name, _ in each.unmade}
        if perhaps:
            listing = self._noted(listing, perhaps)
        unread = sorted({name for each in self._left_out for name in each.missing}, key=lambda name: name + b"//")
        built = build_manifest(
            self._local, header, listing=listing, moved=moved, unread=unread, key=self._key,
            joined=source.comparison.join(listing, source.entries, source.attributes) if source else None,
            linked=_linked(work, self._journal, self._writer, self._notes),
            itself=work.linked is not None and work.linked.manifest == work.manifest,
        )  # fmt: skip
        return built, seen

    def _noted(self, listing: Iterator[bytes], names: set[bytes]) -> Iterator[bytes]:
        for record in listing:
            path = record.partition(b"//")[0]
            if path in names:
                self.there.add(path)
            yield record

    def _header(self, *, attributes: bool) -> ManifestHeader:
        work, journal = self._work, self._journal
        return ManifestHeader(
            job=journal.job.identity, source=str(journal.job.tree), point=work.point, digest=work.digest, created=journal.now,
            attributes=attributes,
        )  # fmt: skip


def _without_change(records: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the records of a recorder's listing without the time of change at their end."""
    return (record[: record.rindex(b"\t")] for record in records)


def _moved(folder: str, journal: RunRecorder, notes: str) -> Iterator[tuple[bytes, str]]:
    """Return the notes of this run and of interrupted ones before it, in order of time, sorted by name.

    What an interrupted run wrote is read once more: since then it may have rotted, or never have reached the disk.
    """
    moves = (move for path in notes_in_order(folder) for move in _read_moves(path, journal))
    return sorted_moves(moves, folder=notes)


def _sorted(records: Iterator[_T]) -> Iterator[_T]:
    """Return the same records once the first one is there: then all are sorted."""
    return chain(tuple(islice(records, 1)), records)


def _read_moves(path: str, journal: RunRecorder) -> Iterator[tuple[bytes, str]]:
    with open(path, "rb") as lines:
        if not is_earlier_note(path):
            yield from journal.tools.trees.moved(lines)
            return
        for name, digest in journal.tools.trees.moved(lines):
            yield name, digest and UNKNOWN + digest


def _linked(work: ManifestRecording, journal: RunRecorder, writer: Writer, notes: str) -> Iterator[Row]:
    """Yield the older manifest's rows; a damaged one is only lost knowledge: all its files are then read.

    Raises: ManifestForged: the files that were linked from its point are then no better.
    """
    if work.linked is None or work.linked.manifest is None:
        return
    path = fetch_file(work.linked.manifest, journal, writer, notes)
    try:
        _require_usable(work.linked, path, journal, writer, notes)
        yield from read_rows(path)
    except ManifestForged:
        raise
    except (VerificationFailed, OSError) as error:
        journal.warn(f"the manifest of the older point cannot be used, so unchanged files are read: {error}")


def _fill(
    work: ManifestRecording, local: str, built: ManifestDraft, journal: RunRecorder, writer: Writer, notes: str
) -> Iterator[tuple[int, str]]:
    if not built.unknown:
        return iter(())
    journal.say(
        f"reading {show_count(built.unknown, 'file')} ({show_size(built.unknown_bytes)}) whose digest is not known yet"
    )
    if work.tree.host is None:
        return _fill_here(work, local, journal, writer, notes)
    return _fill_there(work, local, built, journal, writer, notes)


def _fill_here(
    work: ManifestRecording, local: str, journal: RunRecorder, writer: Writer, notes: str
) -> Iterator[tuple[int, str]]:
    """Yield digests of unknown files, read by workers past the page cache: what a disk did not take of an interrupted copy is there still."""
    workers = journal.job.verify.workers
    pipeline = worker_pipeline(work.tree.path, draft_of(local), workers=workers, mode="fill", algorithm=work.digest)
    with DigestSpool(notes) as spool:
        collector = ResultCollector(workers, taken=spool.take)
        run_workers(pipeline, collector, journal, writer)
        bad = [found for found in collector.reading(took_s=0).findings if found.verdict is not Verdict.UNPROVED]
        if bad:
            _copy_anew(work, [found.path for found in bad], bad[0].detail, journal, writer)
        yield from spool.numbered()


def run_workers(
    pipeline: Pipeline,
    collector: ResultCollector,
    journal: RunRecorder,
    writer: Writer,
    *,
    tick: Callable[[], None] | None = None,
) -> None:
    """Run the reader processes. Raises: OrchestratorError when one fails."""
    result = writer.stream(pipeline, on_output=collector.feed, on_tick=tick)
    if result.stopped is not None:
        raise journal.tools.engine.explain(pipeline_failure(pipeline, result, writer.ssh_options))
    if not result.well:
        words = "; ".join(dict.fromkeys(split_lines(result.last_output[0].strip())))
        words = words or f"a reader ended with {result.exits[0]}"
        raise VerificationFailed(f"nothing is verified: {words}", hint=_READER_HINT)


def _fill_there(
    work: ManifestRecording, local: str, built: ManifestDraft, journal: RunRecorder, writer: Writer, notes: str
) -> Iterator[tuple[int, str]]:
    """Yield digests of unknown files, read by the remote side; only names and digests are transferred."""
    names = f"{notes}/unknown"
    with open(names, "wb") as file:
        for entry in read_manifest(draft_of(local))[1]:
            if entry.digest.startswith(UNKNOWN):
                file.write(entry.path + b"\0")
    told = digests_there(work.tree, names, work.digest, journal, writer, notes, size=built.unknown_bytes)
    found = sorted_moves(told, folder=notes)
    known = next(found, None)
    for number, entry in enumerate(read_manifest(draft_of(local))[1]):
        if entry.digest.startswith(UNKNOWN):
            if known is None or known[0] != entry.path:
                raise VerificationFailed(
                    f"the far side did not read {show_name(entry.path)}", hint="run again: it looks again"
                )
            if entry.digest not in (UNKNOWN, UNKNOWN + known[1]) and entry.digest.startswith(
                f"{UNKNOWN}{work.digest}:"
            ):
                detail = f"{known[1]}, expected {entry.digest.removeprefix(UNKNOWN)}"
                _copy_anew(work, [entry.path], detail, journal, writer)
            yield number, known[1]
            known = next(found, None)


def _copy_anew(
    work: ManifestRecording, paths: list[bytes], detail: str, journal: RunRecorder, writer: Writer
) -> NoReturn:
    """Remove files of a copy that read otherwise than they were written, so that another attempt copies them. Raises: LookAgain."""
    run_small(journal.tools.trees.forget(work.tree, tuple(paths[:MOST_AT_ONCE])), journal, writer)
    more = f" and {show_count(len(paths) - 1, 'more file')}" if len(paths) > 1 else ""
    raise LookAgain(
        f"what was copied reads otherwise: {show_name(paths[0])}: {detail}{more}; copied anew",
        hint="run again; if it comes back, look at the target's disk",
    )


def is_own_note(manifest: Location, journal: RunRecorder) -> bool:
    """Return True for a manifest in our state directory: only we write there, so it needs no tag."""
    return manifest.host is None and manifest.path.startswith(f"{journal.tools.state}/")


def key_for(manifest: Location, point: str, journal: RunRecorder) -> AuthenticationKey | None:
    """Return the key that tags a new manifest, created when first needed; None: it gets no tag. Raises: OrchestratorError."""
    return None if is_own_note(manifest, journal) else obtain_key(journal.tools.state, _made_at(point, journal.now))


def note_use(key: str, since: datetime, journal: RunRecorder) -> None:
    """Record that manifests at this place are tagged with the key of that id since then, if another one was in use before."""
    uses = _uses(journal)
    if not uses or uses[-1][0] != key:
        told = [(each, first.isoformat()) for each, first in (*uses, (key, since))]
        journal.tools.history.remember(journal.job.name, USES + journal.job.target.name, json.dumps(told))


def _uses(journal: RunRecorder) -> tuple[tuple[str, datetime], ...]:
    return journal.tools.history.fact(journal.job.name, USES + journal.job.target.name, parse_uses) or ()


def _made_at(point: str, now: datetime) -> datetime:
    """Return the time from which a point of that name counts. Why its name: it is exact to the second, as is `taken`."""
    return min(parse_point_name(point), now) if POINT_NAME.fullmatch(point) else now


def key_of_restore(journal: RunRecorder) -> AuthenticationKey | None:
    """Return the key that judges manifests of what is restored; None, with a warning, where it cannot be used: data come back without it."""
    try:
        return read_key(journal.tools.state)
    except OrchestratorError as error:
        journal.warn(f"{error.why}, so no tag of a manifest can be judged; {error.hint}")
        return None


def judge(
    point: RestorePoint,
    manifest: str,
    journal: RunRecorder,
    tag: ManifestTag | None = None,
    *,
    obtain: Callable[[RunRecorder], AuthenticationKey | None] | None = None,
) -> ManifestJudgement:
    """Judge the tag of a point's manifest. `manifest`: its local path; `tag`: as read from it. Raises: OrchestratorError · OSError."""
    if point.manifest is None or is_own_note(point.manifest, journal):
        return ManifestJudgement(shown=Authenticity.EARLIER)
    key = obtain(journal) if obtain else read_key(journal.tools.state)
    tag = tag or read_tag(manifest, key)
    # A mirror's time is that of its file, which shows nothing; only its last manifest exists.
    made = point.taken if POINT_NAME.fullmatch(point.name) else None
    expected = expected_key(_uses(journal), made)
    here = journal.job.target.name != FOUND  # a tag is never required on points of other machines
    if expected is None and here and key is not None and made is not None and made >= key.made and not tag.key:
        expected = key.id  # the history was lost, but the key was kept
    return judge_manifest(
        tag, job=journal.job.identity, point=point.name, key=key.id if key else None, expected=expected
    )


def require_authentic(
    point: RestorePoint, manifest: str, journal: RunRecorder, writer: Writer, notes: str, tag: ManifestTag | None = None
) -> None:
    """Judge a manifest before anything is compared with it; a forged one is recorded as damage of its whole point.

    Raises: ManifestForged · OrchestratorError.
    """
    try:
        judged = judge(point, manifest, journal, tag)
    except VerificationFailed as error:
        note_bad_manifest(journal, point, error.why)
        with contextlib.suppress(OrchestratorError):  # such as a target that is read-only: history knows it
            store_damage_note(point, [b""], journal, writer, notes)
        hint = f"`poolferry run {journal.job.name}` makes a new point and links nothing to this one; {error.hint}"
        raise VerificationFailed(error.why, hint=hint) from error
    if judged.shown is Authenticity.OTHER_KEY:
        journal.warn(judged.says)
    if judged.shown is Authenticity.FORGED:
        _note_forgery(point, judged, journal, writer, notes)
        raise ManifestForged(judged.says, hint=forgery_hint(journal, other=_of_other_machine(point, judged, journal)))


def _require_usable(
    point: RestorePoint, manifest: str, journal: RunRecorder, writer: Writer, notes: str, tag: ManifestTag | None = None
) -> None:
    """Judge a manifest of which lines are taken over. Raises: OrchestratorError; VerificationFailed also for an older one of a mirror."""
    require_authentic(point, manifest, journal, writer, notes, tag)
    require_last(point, manifest, journal)


def forgery_sentence(point: RestorePoint, manifest: str, journal: RunRecorder, tag: ManifestTag | None = None) -> str:
    """Return why a manifest cannot verify data restored from its point; empty: it can. Raises: OrchestratorError."""
    judged = judge(point, manifest, journal, tag, obtain=key_of_restore)
    if judged.says:
        journal.warn(judged.says)
    return judged.says if judged.shown is Authenticity.FORGED else ""


def _of_other_machine(point: RestorePoint, judged: ManifestJudgement, journal: RunRecorder) -> bool:
    """Return True when another machine may have made a point: its tag is of another key, and no run of ours made it."""
    return judged.other_key and journal.tools.history.made_elsewhere(
        journal.job.name, journal.job.target.name, point.name
    )


def forgery_hint(journal: RunRecorder, *, other: bool = False) -> str:
    """Return the hint after a forgery. `other`: another machine may have made the point; the next run is refused then."""
    if other:
        return (
            f"if another machine copies to {journal.job.target.location}, give its job a target of its own; else find out who can write "
            f"there. `poolferry run {journal.job.name}` copies nothing until then, and says how it goes on"
        )
    return (
        f"find out who can write to {journal.job.target.location} (an earlier version of poolferry that ran meanwhile sets no tag "
        f"either); `poolferry run {journal.job.name}` copies all of it again from the source, into a new point"
    )


def _note_forgery(
    point: RestorePoint, judged: ManifestJudgement, journal: RunRecorder, writer: Writer, notes: str
) -> None:
    """Record the verdict in history, and note beside the point that none of its files may be linked into another."""
    finding = Finding(path=b"", verdict=Verdict.EDITED, detail=judged.says)
    reading = VerificationResult(
        entries=0, files_read=0, bytes_read=0, took_s=0, counts=((Verdict.EDITED, 1),), findings=(finding,)
    )
    job = journal.job
    journal.verdicts.verified(
        job.name, job.target.name, point.name, reading=reading, now=journal.now, scope=WHOLE, forged=True
    )
    if not _of_other_machine(point, judged, journal):  # we know no damage of such a point: it may be whole
        store_damage_note(point, [b""], journal, writer, notes)  # the root's own name: everything below it


def store_damage_note(
    point: RestorePoint, damaged: list[bytes], journal: RunRecorder, writer: Writer, notes: str
) -> None:
    """Note the damaged entries beside a point, so that the next run copies them again and links none of them; none: no note."""
    note = journal.tools.trees.damage_note(point)
    if note is None:
        return
    if not damaged:
        run_small(journal.tools.trees.discard(note), journal, writer)
        return
    local = f"{notes}/damage-note"
    with open(local, "wb") as file:
        file.writelines(show_name(path).encode() + b"\n" for path in damaged)
    send_file(local, note, journal, writer)
