"""Verification of copies against their manifests; damage is recorded beside the copy."""

import contextlib
import heapq
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TypeVar

from orchestrator.domain.answers import NOT_READ, unreadable
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.events import TransferProgress
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.names import show_name
from orchestrator.domain.place import FOUND, Host, Location
from orchestrator.domain.plan import Command, Effect, Pipeline, Plan, TreeVerification
from orchestrator.domain.point import Finding, RestorePoint, Verdict, VerificationResult, count_words
from orchestrator.domain.units import show_count
from orchestrator.history.store import WHOLE
from orchestrator.process.background import BackgroundCall
from orchestrator.process.executor import PipelineFailed, Writer
from orchestrator.process.reading_beside import ReadingBeside
from orchestrator.runner.far_digests import digests_there, write_names
from orchestrator.runner.last_look import find_points
from orchestrator.runner.manifests import (
    forgery_sentence,
    is_own_note,
    key_of_restore,
    require_authentic,
    run_workers,
    store_damage_note,
)
from orchestrator.runner.problems import note_bad_manifest, note_shared_damage, require_last
from orchestrator.runner.run_recorder import RunRecorder, fetch_file, run_small
from orchestrator.runner.verify.listed_trees import found_entries, listed_records, of_tree
from orchestrator.runner.verify.unseen import doubted, with_unseen
from orchestrator.verify.build import sorted_moves
from orchestrator.verify.check_entry import CheckTask, EntryChecker
from orchestrator.verify.compare import RowComparison, compare, find_extras
from orchestrator.verify.completeness import NEVER_COPIED
from orchestrator.verify.digest import FileHasher, OpenTree
from orchestrator.verify.entry import ManifestEntry, Tolerance, parse_listing
from orchestrator.verify.manifest import (
    ManifestHeader,
    read_manifest,
    read_names,
    read_rows_below,
    read_tagged_entries,
    row_entry,
    write_manifest,
)
from orchestrator.verify.pipelines import listing_command, settle_pipeline, worker_pipeline
from orchestrator.verify.results import ResultCollector
from orchestrator.verify.worker import WorkerReport

_T = TypeVar("_T")
PART = "part"
_SMALL = 1 << 20  # bytes of a file
_FEW = 100_000  # findings that are held; more are only counted
_OF_ROOT = "o"  # the letter of attributes that only root may set
DAMAGE = (Verdict.ROTTEN, Verdict.EDITED, Verdict.UNREADABLE, Verdict.MISSING)


_NOT_JUDGED = VerificationResult(entries=0, files_read=0, bytes_read=0, took_s=0, counts=(), findings=())


def verify_tree(work: TreeVerification, journal: RunRecorder, writer: Writer, notes: str) -> VerificationResult:
    """Read the whole tree, record the verdict, and note damage beside a point. Raises: OrchestratorError."""
    if work.point.manifest is None:
        note_bad_manifest(journal, work.point, "its manifest is missing")
        raise VerificationFailed(
            f"point {work.point.name} has no manifest, so nothing in it can be verified",
            hint=f"`poolferry run {journal.job.name}` makes a new point with one, if this is the newest; or choose another --point",
        )
    began = journal.tools.monotonic()
    fetched = f"{notes}/fetched.gz"
    if work.part == "root" and work.point.manifest.host is not None and os.path.exists(fetched):
        manifest = fetched  # of the reading that went before
    else:
        manifest = fetch_file(work.point.manifest, journal, writer, notes)
    if work.restored:
        journal.forged = journal.forged or _doubt(work, manifest, journal)
    else:
        require_authentic(work.point, manifest, journal, writer, notes)
        try:
            require_last(work.point, manifest, journal)
        except VerificationFailed as error:
            note_bad_manifest(journal, work.point, error.why)
            raise
    try:
        reading = replace(read_tree(work, manifest, journal, writer, notes), took_s=journal.tools.monotonic() - began)
    except VerificationFailed as error:
        if not work.restored or not _is_unreadable(manifest):
            raise
        note_bad_manifest(journal, work.point, error.why)
        journal.forged = error.why
        return _NOT_JUDGED
    if (
        work.restored and journal.forged and not reading.sound
    ):  # what is not this point's manifest keeps no restore from its end
        journal.warn(
            f"compared with that manifest all the same: {describe_counts(reading)}: {describe_first_findings(reading)}"
        )
        return _NOT_JUDGED
    if work.restored and not reading.sound:
        journal.copy_damaged = _is_copy_damaged(work, reading, manifest, journal, writer, notes)
    if not work.restored:
        _note_verdict(work.point, reading, manifest, journal, writer, notes)
    return reading


def _doubt(work: TreeVerification, manifest: str, journal: RunRecorder) -> str:
    """Return why the manifest cannot verify what was restored; empty: it can, or the reading will tell."""
    try:
        tag = journal.entry_ahead.result().tag if journal.entry_ahead and _is_single(work) else None
        return forgery_sentence(work.point, manifest, journal, tag)
    except VerificationFailed:
        return ""


def _is_unreadable(manifest: str) -> bool:
    """Return True when the manifest itself is damaged: no restore again would end otherwise."""
    try:
        for _ in read_manifest(manifest)[1]:
            pass
    except VerificationFailed:
        return True
    return False


def read_tree(
    work: TreeVerification, manifest: str, journal: RunRecorder, writer: Writer, notes: str
) -> VerificationResult:
    """Read a tree on its own machine. One restored file is read in its folder, against a manifest of its own."""
    read = _here if work.tree.host is None else _there
    if work.part == "root":
        return _root(work, manifest, journal, writer)
    if work.left_out:
        manifest = _without(work, manifest, notes)
    if work.prefix and (single := _single(work, manifest, journal)) is not None:
        return _read_single(work, *single, journal, writer, notes)
    reading = read(work, manifest, journal, writer, notes)
    if work.of_source:
        return with_unseen(work, reading, journal)
    return reading if work.part == "all" else _without_root(reading)


def _root(work: TreeVerification, manifest: str, journal: RunRecorder, writer: Writer) -> VerificationResult:
    """Compare the tree's own folder with the manifest, and nothing below it."""
    command = listing_command(work.tree, root_only=True)
    try:
        with writer.records(Pipeline(stages=(command,))) as records:
            found = [_with_attributes(work, parse_listing(record)) for record in islice(records, 2)]
    except PipelineFailed as failure:
        raise journal.tools.engine.explain(failure) from failure
    except NOT_READ as error:
        raise unreadable("find", command, None, error) from error
    collector = ResultCollector(0)
    expected = next((entry for entry in read_manifest(manifest, prefix=work.prefix)[1] if not entry.path), None)
    collector.add(compare([expected] if expected else [], found, tolerance=_tolerance(work, writer)))
    return replace(collector.reading(took_s=0), entries=1)


def _with_attributes(work: TreeVerification, root: ManifestEntry) -> ManifestEntry:
    """Return the entry of the tree's own folder with its attributes, where they can be read without another login."""
    if work.tree.host is not None:
        return root
    with OpenTree(os.fsencode(work.tree.path)) as tree:
        return root._replace(attributes=tree.attributes(b""))


def _without_root(reading: VerificationResult) -> VerificationResult:
    """Return the reading without what it found of the tree's own folder: a restore gives that its metadata last."""
    own = Counter(found.verdict for found in reading.findings if not found.path)
    return replace(
        reading,
        counts=tuple((verdict, number - own[verdict]) for verdict, number in reading.counts),
        findings=tuple(found for found in reading.findings if found.path),
    )


def _without(work: TreeVerification, manifest: str, notes: str) -> str:
    """Write a manifest without the entries at and below mounts; return its path."""
    front = work.prefix + b"/" if work.prefix else b""
    gone = tuple(front + path for path in work.left_out)
    header, entries = read_manifest(manifest)
    kept = (one for one in entries if not any(one.path == path or one.path.startswith(path + b"/") for path in gone))
    write_manifest(f"{notes}/left.gz", header, kept)
    return f"{notes}/left.gz"


def read_part(
    work: TreeVerification, manifest: str, journal: RunRecorder, writer: Writer, notes: str
) -> VerificationResult:
    """Read only the entries of a point that another manifest names; damage is recorded as after a whole reading."""
    began = journal.tools.monotonic()
    read = _here if work.tree.host is None else _there
    reading = read(work, manifest, journal, writer, notes, others=True)
    reading = replace(reading, took_s=journal.tools.monotonic() - began)
    if not reading.sound:
        _note_verdict(work.point, reading, manifest, journal, writer, notes, scope=PART)
    return reading


def read_quietly(
    work: TreeVerification, manifest: str, journal: RunRecorder, writer: Writer, notes: str
) -> VerificationResult:
    """Read the entries that a manifest of a part names, and record nothing."""
    os.makedirs(notes, exist_ok=True)
    return (_here if work.tree.host is None else _there)(work, manifest, journal, writer, notes, others=True)


def _is_copy_damaged(
    work: TreeVerification, reading: VerificationResult, manifest: str, journal: RunRecorder, writer: Writer, notes: str
) -> bool:
    """Read what came back wrong in the point itself, and record its damage; return True when there is some."""
    point = work.point
    if point.manifest is None or is_own_note(point.manifest, journal) or journal.job.target.name == FOUND:
        return False
    front = work.prefix + b"/" if work.prefix else b""
    wanted = {front + found.path for found in reading.findings if found.verdict in DAMAGE} | {work.prefix}
    header, entries = read_manifest(manifest)
    part = f"{notes}/part.gz"
    os.makedirs(f"{notes}/copy/newest", exist_ok=True)
    write_manifest(part, header, [entry for entry in entries if entry.path in wanted and entry.kind == "f"])
    own = TreeVerification(point=point, tree=point.tree, apart=point.apart, workers=work.workers)
    return not read_part(own, part, journal, writer, f"{notes}/copy").sound


@contextlib.contextmanager
def entry_looked_up(plan: Plan, journal: RunRecorder) -> Iterator[None]:
    """Look up the entry of a single file that is restored from a manifest here, while its programs run."""
    works = (step.work for step in plan.steps if isinstance(step.work, TreeVerification) and _is_single(step.work))
    work = next(works, None)
    manifest = work.point.manifest if work else None
    if work is None or manifest is None or manifest.host is not None or is_own_note(manifest, journal):
        yield
        return
    path, prefix, key = manifest.path, work.prefix, key_of_restore(journal)
    with BackgroundCall(lambda: read_tagged_entries(path, key, prefix)) as ahead:
        journal.entry_ahead = ahead
        try:
            yield
        finally:
            journal.entry_ahead = None


def _is_single(work: TreeVerification) -> bool:
    return work.restored and bool(work.prefix) and work.part == "all"


def _single(work: TreeVerification, manifest: str, journal: RunRecorder) -> tuple[ManifestHeader, ManifestEntry] | None:
    """Return the header and the entry where the work is about one file, None for a folder. Raises: VerificationFailed."""
    if journal.entry_ahead is not None and _is_single(work):
        ahead = journal.entry_ahead.result()
        header, entries = ahead.header, iter(ahead.entries)
    else:
        header, entries = read_manifest(manifest, prefix=work.prefix)
    top = next(entries, None)
    if top is not None and (top.path or top.kind == "d"):
        return None
    for _ in entries:  # to its end, where a cut manifest shows
        pass
    if top is None:
        raise VerificationFailed(
            f"the manifest of point {work.point.name} does not name {show_name(work.prefix)}",
            hint="restore another point, or verify this one",
        )
    return header, top


def _read_single(
    work: TreeVerification,
    header: ManifestHeader,
    entry: ManifestEntry,
    journal: RunRecorder,
    writer: Writer,
    notes: str,
) -> VerificationResult:
    """Read one file in its folder. Why a small one in this process: a worker's start takes longer than its reading."""
    folder, _, name = work.tree.path.rpartition("/")
    tree = Location(path=folder or "/", host=work.tree.host)
    work, entry = replace(work, tree=tree, prefix=b"", workers=1), entry._replace(path=os.fsencode(name))
    if tree.host is None and entry.size <= _SMALL:
        return _judge_here(work, header, entry, journal, writer)
    write_manifest(f"{notes}/one.gz", header, [entry])
    read = _here if tree.host is None else _there
    return read(work, f"{notes}/one.gz", journal, writer, notes, others=True)


def _judge_here(
    work: TreeVerification, header: ManifestHeader, entry: ManifestEntry, journal: RunRecorder, writer: Writer
) -> VerificationResult:
    run_small(settle_pipeline(work.tree), journal, writer)
    tolerance = _tolerance(work, writer)
    collector = ResultCollector(1, few=_FEW, expected=_never_restored(work, (entry,), journal, tolerance))
    report = WorkerReport(collector.feed)
    task = CheckTask("check", "", tolerance, header.created.isoformat())
    with OpenTree(os.fsencode(work.tree.path)) as opened:
        report.add(0, entry, EntryChecker(opened, FileHasher(report.add_bytes), task).judge(entry))
    report.end()
    return collector.reading(took_s=0)


def require_sound(reading: VerificationResult, work: TreeVerification, journal: RunRecorder) -> None:
    """Check that a reading found no damage. Raises: VerificationFailed, with the first findings."""
    unproved = dict(reading.counts).get(Verdict.UNPROVED, 0)
    if unproved:
        journal.warn(
            f"{show_count(unproved, 'file')} of point {work.point.name} could not be read, or was left out, when it was made: not in it"
        )
    if reading.sound:
        return
    hint = (
        _restore_hint(work, journal, damaged=any(found.verdict is not Verdict.METADATA for found in reading.findings))
        if work.restored
        else f"the next run of {journal.job.name} copies damaged files again; look at the disk's health (smartctl -a)"
    )
    raise VerificationFailed(
        f"{work.tree} does not match its manifest: {describe_counts(reading)}: {describe_first_findings(reading)}",
        hint=hint,
    )


def _restore_hint(work: TreeVerification, journal: RunRecorder, *, damaged: bool) -> str:
    """Return what helps after a restore that does not match its manifest."""
    if work.point.unfinished:
        ends = (
            "" if journal.job.target.name == FOUND else f"; a run of {journal.job.name} that ends well makes it whole"
        )
        return f"the mirror is half written, as a run that changed it did not end: what is named here is newer than the rest, or missing{ends}"
    if not damaged:
        return (
            f"all bytes are right; the filesystem of {work.tree}, or the user there, cannot hold the rest: look at it as it is, or "
            "restore to a folder on ext4, XFS, btrfs or ZFS, as root"
        )
    if not journal.copy_damaged:
        journal.restored_damaged = True
        return "run the command again: it continues and repairs"
    job, point = journal.job.name, work.point.name
    return (
        f"the copy itself is damaged in point {point}: restore an earlier --point, or copy these files from another place that "
        f"`poolferry verify {job} --point {quoted(point)}` names; where the source still has them, `poolferry run {job}` mends the copy"
    )


def describe_counts(reading: VerificationResult) -> str:
    """Return "2 rotten, 1 missing"."""
    return ", ".join(count_words(verdict, number) for verdict, number in reading.counts if number)


def describe_first_findings(reading: VerificationResult, most: int = 5) -> str:
    """Return the first findings as one line."""
    return "; ".join(
        f"{show_name(found.path) or '.'} {found.said} ({found.detail})" for found in reading.findings[:most]
    )


def _here(
    work: TreeVerification, manifest: str, journal: RunRecorder, writer: Writer, notes: str, *, others: bool = False
) -> VerificationResult:
    """Read the files with workers, bypassing the page cache, while a listing is checked for extra names.

    `others`: other files may lie there.
    """
    run_small(settle_pipeline(work.tree), journal, writer)
    tolerance = _tolerance(work, writer)
    pipeline = worker_pipeline(work.tree.path, manifest, workers=work.workers, prefix=work.prefix, tolerance=tolerance)
    expected = _never_restored(work, read_manifest(manifest, prefix=work.prefix)[1], journal, tolerance)
    collector = ResultCollector(work.workers, few=_FEW, expected=expected)

    def tick() -> None:
        journal.tools.notify(TransferProgress(done=collector.bytes_read, expected=None))

    def extras(beside: Writer) -> tuple[Finding, ...]:
        return () if others else _without_manifest(work, manifest, journal, beside, notes)

    with ReadingBeside(writer, extras) as unpromised:
        run_workers(pipeline, collector, journal, unpromised.executor, tick=tick)
        collector.add(unpromised.result())
    return collector.reading(took_s=0)


def _without_manifest(
    work: TreeVerification, manifest: str, journal: RunRecorder, writer: Writer, notes: str
) -> tuple[Finding, ...]:
    with listed_records(work, journal, writer, notes, names=True) as records:
        found = (record.removesuffix(b"//") for record in records)
        return tuple(of_tree(work, find_extras(read_names(manifest, prefix=work.prefix), found)))


def _there(
    work: TreeVerification, manifest: str, journal: RunRecorder, writer: Writer, notes: str, *, others: bool = False
) -> VerificationResult:
    """Read digests on the remote side; names and times are compared here."""
    run_small(settle_pipeline(work.tree), journal, writer)

    def read_digests(beside: Writer) -> list[Iterator[tuple[bytes, str]]]:
        names, size = write_names(read_rows_below(manifest, work.prefix), notes)
        # Of several algorithms a file is to be told by its own alone; a folder that comes back may hold what is mounted in it.
        whole = len(names) == 1 and not work.restored
        return [_sorted_digests(work, file, each, size, journal, beside, notes, whole=whole) for each, file in names]

    with (
        ReadingBeside(writer, read_digests) as digests,
        found_entries(work, manifest, journal, digests.executor, notes) as entries,
    ):
        found = _begun(entries)  # it is listed while files are read there
        tolerance = _tolerance(work, writer)
        every = read_manifest(manifest, prefix=work.prefix)[1]
        collector = ResultCollector(0, few=_FEW, expected=_never_restored(work, every, journal, tolerance))
        merged = heapq.merge(*digests.result(), key=lambda move: move[0] + b"//")
        comparison = RowComparison(lambda row: row_entry(manifest, row[1])._replace(path=row[0]), tolerance)
        findings = comparison.findings(read_rows_below(manifest, work.prefix), found, merged)
        told = (doubted(each, journal) for each in of_tree(work, findings))
        collector.add(each for each in told if not (others and each.verdict is Verdict.EXTRA))
    return replace(
        collector.reading(took_s=0),
        entries=comparison.entries,
        files_read=comparison.files,
        bytes_read=comparison.bytes,
    )


def _sorted_digests(
    work: TreeVerification,
    names: str,
    algorithm: str,
    size: int,
    journal: RunRecorder,
    writer: Writer,
    notes: str,
    *,
    whole: bool,
) -> Iterator[tuple[bytes, str]]:
    """Return the digests that a host tells of its files, sorted, once all were read there."""
    told = digests_there(
        work.tree, names, algorithm, journal, writer, notes, size=size, partial_is_well=True, whole=whole
    )
    return _begun(sorted_moves(told, folder=notes))


def _begun(values: Iterator[_T]) -> Iterator[_T]:
    """Return the same values once the first one is there: of what is sorted all was read then."""
    return chain(tuple(islice(values, 1)), values)


def _never_restored(
    work: TreeVerification, entries: Iterable[ManifestEntry], journal: RunRecorder, tolerance: Tolerance
) -> Callable[[Finding], bool] | None:
    """Return what tells the missing entries that no restore brings back; None where that is none of the question.

    Names of ours, which copies of an older version may hold; and, where an ordinary user restores, device nodes: these are noted.
    """
    if not work.restored:
        return None
    weak = tolerance.attributes == _OF_ROOT
    nodes = {each.path for each in entries if each.kind in "bc"} if weak else set()

    def expected(found: Finding) -> bool:
        if not set(NEVER_COPIED).isdisjoint(found.path.split(b"/")):
            return True  # missing, or what lies there is our own mark of the restore
        if found.verdict is not Verdict.MISSING or found.path not in nodes:
            return False
        journal.unmade.add(found.path)
        return True

    return expected


def _tolerance(work: TreeVerification, writer: Writer) -> Tolerance:
    if not work.restored:
        return Tolerance(owner=not work.owners, mode=not work.modes, attributes=work.ignored)
    weak = not _is_root(work.tree.host, writer)  # only root gives owners and capabilities, and makes device nodes
    return Tolerance(owner=weak or not work.owners, mode=not work.modes, attributes=_OF_ROOT if weak else "")


def _is_root(host: Host | None, writer: Writer) -> bool:
    """Return True when we are root on the machine that the data came to; also where it does not say so."""
    if host is None:
        return os.geteuid() == 0
    answer = writer.read(Pipeline(stages=(Command(argv=("id", "-u"), effect=Effect.READS, host=host),)))
    return not answer.well or answer.stdout.strip() == b"0"


def _note_verdict(
    point: RestorePoint,
    reading: VerificationResult,
    manifest: str,
    journal: RunRecorder,
    writer: Writer,
    notes: str,
    *,
    scope: str = WHOLE,
) -> None:
    """Record the verdict in history; note damaged files beside every point that shares them, against new links."""
    job, tools = journal.job, journal.tools
    journal.verdicts.verified(job.name, job.target.name, point.name, reading=reading, now=journal.now, scope=scope)
    damaged = sorted(found.path for found in reading.findings if found.verdict in DAMAGE)
    if reading.findings:
        damaged = _with_other_names(damaged, [found.path for found in reading.findings], manifest)
        if _no_folders({found.path for found in reading.findings if found.verdict is Verdict.EDITED}, manifest):
            damaged = [b""]  # a link in place of a folder: no program looks through it for what could be linked
    if (not damaged and not point.damaged) or (scope == PART and point.damaged):
        return  # a complete reading has noted more
    store_damage_note(point, damaged, journal, writer, notes)
    if not damaged:
        return
    newest = find_points(job, tools, writer)[-1]
    if newest.name != point.name and newest.manifest is not None:
        shared = _shared(damaged, manifest, newest.manifest, journal, writer, notes)
        if shared:
            store_damage_note(newest, shared, journal, writer, notes)
            note_shared_damage(journal, newest, point, shared)


def _with_other_names(damaged: list[bytes], found: list[bytes], manifest: str) -> list[bytes]:
    """Return the damaged paths, with all names of files of which one name is damaged, or another file now. `found`: all that differs.

    Why: a name that is copied alone would be another file in the next point.
    """
    wanted, names = set(found), dict[int, list[bytes]]()
    inodes = {entry.inode for entry in read_manifest(manifest)[1] if entry.path in wanted and _has_names(entry)}
    for entry in read_manifest(manifest)[1] if inodes else ():
        if entry.kind == "f" and entry.inode in inodes:
            names.setdefault(entry.inode, []).append(entry.path)
    return sorted({*damaged, *(path for group in names.values() if len(group) > 1 for path in group)})


def _no_folders(edited: set[bytes], manifest: str) -> bool:
    """Return whether something else lies where the manifest has a folder. `edited`: paths of which the contents are others."""
    return bool(edited) and any(entry.kind == "d" and entry.path in edited for entry in read_manifest(manifest)[1])


def _has_names(entry: ManifestEntry) -> bool:
    return entry.kind == "f" and entry.nlink > 1


def _shared(
    damaged: list[bytes], manifest: str, newest: Location, journal: RunRecorder, writer: Writer, notes: str
) -> list[bytes]:
    """Return the files of the newest point that are the damaged ones: the same inodes, by any name."""
    wanted = set(damaged)
    inodes = {entry.inode for entry in read_manifest(manifest)[1] if entry.path in wanted}
    other = fetch_file(newest, journal, writer, f"{notes}/newest")
    return [entry.path for entry in read_manifest(other)[1] if entry.kind == "f" and entry.inode in inodes]
