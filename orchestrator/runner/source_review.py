"""The look at the source after a copy: what its entries are, what the copy has of it, and what is copied once more."""

import os
import weakref
from collections.abc import Callable, Iterator
from itertools import chain

from orchestrator.domain.answers import NOT_READ, unreadable
from orchestrator.domain.errors import LookAgain, VerificationFailed
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import ListingRecorder, ManifestRecording, Pipeline, SourceReview
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.copies import PartialCopier
from orchestrator.engines.contract.engine import SkippedEntries, implements
from orchestrator.process.background import nameless_file
from orchestrator.process.executor import PipelineFailed, Writer, pipeline_failure
from orchestrator.runner.run_recorder import RunRecorder, run_small
from orchestrator.verify.build import sorted_records
from orchestrator.verify.completeness import NameComparison, select_records
from orchestrator.verify.digest import OpenTree
from orchestrator.verify.entry import Tolerance
from orchestrator.verify.fake_super import stored_attributes, stored_command
from orchestrator.verify.source import (
    Difference,
    SourceComparison,
    attributes_command,
    describe_difference,
    is_unstorable,
    parse_copy_attributes,
    source_command,
)
from orchestrator.verify.tree_attributes import TreeAttributes

_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceListing:
    """The source's listing and attributes, both sorted, and the comparison that reads them."""

    comparison: SourceComparison
    entries: Iterator[bytes]
    attributes: Iterator[bytes]


def list_source(
    review: SourceReview,
    tree: Location,
    left_out: list[SkippedEntries],
    elapsed: Callable[[], float],
    journal: RunRecorder,
    writer: Writer,
    notes: str,
    recorder: ListingRecorder | None = None,
) -> SourceListing:
    """List the source of the copy in `tree`. Raises: OrchestratorError."""
    comparison = begin_comparison(review, left_out, elapsed, journal, notes)
    comparison.asks_all = review.bare is not None and not _inherits_nothing(tree)
    here = review.source.root.host is None and bool(review.parts)
    command = source_command(
        review.source, one_filesystem=review.one_filesystem, attributes=bool(review.parts) and not here
    )
    try:
        with writer.records(Pipeline(stages=(command,))) as records:
            listed = comparison.begin(iter(records))
            listed = chain.from_iterable(recorder.batches(listed, copy=False)) if recorder else listed
            if here:
                noted = TreeAttributes(
                    review.source.root.path,
                    nameless_file(notes),
                    without_own=review.stored,
                    since_ns=comparison.began_ns,
                    bare=review.bare or (),
                )
                entries = _held(sorted_records(noted.read(listed), folder=notes))
                attributes = _held(sorted_records(comparison.take_attributes(noted), folder=notes))
            else:
                entries = _held(sorted_records(listed, folder=notes))
                attributes = _held(sorted_records(comparison.read_attributes(iter(records)), folder=notes))
        if review.copied is not None and review.copied.selected is not None:
            names = (path + b"//" for path in review.copied.selected(writer))
            entries = select_records(entries, _held(sorted_records(names, folder=notes)))
    except PipelineFailed as failure:
        raise journal.tools.engine.explain(failure) from failure
    except (*NOT_READ, StopIteration) as error:
        raise unreadable("find", command, None, error) from error
    return SourceListing(comparison=comparison, entries=entries, attributes=attributes)


def _inherits_nothing(tree: Location) -> bool:
    """Return whether no default access list, and nothing else, gave the entries of a copy what the source has not: its root has none."""
    try:
        return not os.listxattr(tree.path)
    except OSError:
        return False


def begin_comparison(
    review: SourceReview, left_out: list[SkippedEntries], elapsed: Callable[[], float], journal: RunRecorder, notes: str
) -> SourceComparison:
    """Return the comparison of a copy with its source. `elapsed`: the seconds since the copy began."""
    unlinked = frozenset(name for each in left_out for name, _ in each.unlinked)
    skipped = frozenset(name for each in left_out for name in (*each.missing, *each.vanished))
    tolerance = Tolerance(owner=not review.owners, mode=not review.modes, grain_ns=review.grain_ns)
    return SourceComparison(
        tolerance, elapsed=elapsed, skipped=skipped - unlinked, mirror=review.mirror, links=review.links, parts=review.parts,
        folder=notes, names=_name_comparison(review, skipped, journal, notes), stored=review.stored,
    )  # fmt: skip


def _name_comparison(
    review: SourceReview, skipped: frozenset[bytes], journal: RunRecorder, notes: str
) -> NameComparison | None:
    if review.copied is None:
        return None
    spool = nameless_file(notes)
    since, monotonic = journal.attempt_since, journal.tools.monotonic
    names = NameComparison(spool, review.copied, skipped=skipped, elapsed=lambda: monotonic() - since)
    weakref.finalize(names, spool.close)
    return names


def require_complete(comparison: SourceComparison, work: ManifestRecording, journal: RunRecorder) -> None:
    """Check that the copy holds each entry of the source, and no other, where no count proves it. Raises: LookAgain."""
    lacking = comparison.names.result() if comparison.names else None
    if lacking is None:
        return
    told = [
        f"{words} {show_count(count, 'entry', 'entries')}{whose}: {', '.join(map(show_name, names))}{' …' if count > len(names) else ''}"
        for words, count, whose, names in (
            ("lacks", lacking.missing, " of the source", lacking.missing_names),
            ("holds", lacking.surplus, " that the source has not", lacking.surplus_names),
        )
        if count
    ]
    raise LookAgain(
        f"the copy in {work.tree} {', and '.join(told)}; no point is made of it",
        hint=f"`poolferry run {journal.job.name}` looks again and mends; if it comes back, see that both machines have the same poolferry, "
        "and look at the target's disk",
    )


def _held(records: Iterator[bytes]) -> Iterator[bytes]:
    """Return the same records once all were read: they are sorted then, in memory or in a file."""
    first = next(records, None)
    return iter(()) if first is None else _chained(first, records)


def _chained(first: bytes, records: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from records


def compare_attributes(
    comparison: SourceComparison,
    work: ManifestRecording,
    journal: RunRecorder,
    writer: Writer,
    notes: str,
    *,
    refused: bool,
) -> dict[bytes, str]:
    """Compare access lists and attributes with the copy's; return those that are not as the source's.

    `refused`: rsync said that some had no room. Raises: VerificationFailed: then it cannot be told which.
    """
    if refused and not comparison.attributes:
        raise attributes_not_compared(work)
    if not comparison.asked:
        return {}
    if work.tree.host is None:
        with OpenTree(os.fsencode(work.tree.path)) as tree:
            found = (name + b"//" + tree.attributes(name).encode() for name in comparison.asked_names())
            return comparison.join_attributes(found)
    names = f"{notes}/asked"
    with open(names, "wb") as file:
        file.writelines((b"./" + name if name else b".") + b"\0" for name in comparison.asked_names())
    command = attributes_command(work.tree)
    if work.stored:
        return _compare_stored(comparison, work, journal, writer, notes)
    try:
        with writer.records(Pipeline(stages=(command,), reads=names)) as records:
            told = parse_copy_attributes(iter(records))
            if told is None and refused:
                raise attributes_not_compared(work)
            if told is None:
                journal.warn(
                    f"access lists and attributes of the copy were not compared with the source's: {work.tree.host} has no "
                    "getfattr (apt install attr there)"
                )
                return {}
            return comparison.join_attributes(sorted_records(told, folder=notes))
    except PipelineFailed as failure:
        raise journal.tools.engine.explain(failure) from failure
    except NOT_READ as error:
        raise unreadable("getfattr", command, None, error) from error


def attributes_not_compared(work: ManifestRecording) -> VerificationFailed:
    """Return the failure of a copy whose target refused attributes, where no comparison can name the entries."""
    return VerificationFailed(
        f"{work.tree} had no room for the attributes or access lists of some entries, and nothing can tell of which",
        hint="apt install attr on both machines: with getfattr the run names them, and copies all else",
    )


def _compare_stored(
    comparison: SourceComparison, work: ManifestRecording, journal: RunRecorder, writer: Writer, notes: str
) -> dict[bytes, str]:
    """Compare them with those of a copy that keeps its own beside them; name what of the source it cannot hold."""
    if comparison.own_names:
        journal.warn(
            f"{show_count(comparison.own_names, 'entry', 'entries')} of the source "
            f"{'has' if comparison.own_names == 1 else 'have'} attributes by names of rsync's own (user.rsync.…): a target with "
            "fake-super cannot hold these, and no copy has them"
        )
    command = stored_command(work.tree, apart=work.apart)
    try:
        with writer.records(Pipeline(stages=(command,))) as records:
            return comparison.join_attributes(stored_attributes(records, folder=notes))
    except PipelineFailed as failure:
        raise journal.tools.engine.explain(failure) from failure
    except NOT_READ as error:
        raise unreadable("getfattr", command, None, error) from error


def copy_again(
    comparison: SourceComparison, review: SourceReview, journal: RunRecorder, writer: Writer, number: int
) -> None:
    """Copy the entries that are not as the source's once more, each as a new file; the `number`-th time. Raises: OrchestratorError."""
    names = [each.path for each in comparison.differences]
    journal.say(f"copying {show_count(len(names), 'entry', 'entries')} again that are not yet as at the source")
    with open(review.names, "wb") as file:
        file.write(review.listed(names))
    for pipeline in review.before:
        run_small(pipeline, journal, writer)
    said: list[bytes] = []
    tools = journal.tools
    again = replace(review.again, keeps=f"{review.again.keeps}-{number}")  # each says what it moved
    result = writer.stream(again, stop=tools.stop, stall_after=journal.job.pipe.stall_after, on_errors=said.append)
    if not result.well:
        failed = pipeline_failure(again, result, writer.ssh_options)
        left_out = (
            tools.engine.left_out(failed, b"".join(said), journal.job)
            if implements(tools.engine, PartialCopier)
            else None
        )
        if left_out is None or left_out.missing:
            raise tools.engine.explain(failed)
    for pipeline in review.after:
        run_small(pipeline, journal, writer)


def find_unstored(
    now: SourceComparison, work: ManifestRecording, review: SourceReview, *, refused: bool
) -> SkippedEntries:
    """Return the entries whose time or attributes the target cannot hold, as copying them again did not end the differences.

    Why no failure: anybody may give a file of hers such a time, or too many attributes, and the copy of all others must not end by it.
    Content, kind, owner and mode must be right. `refused`: rsync said that attributes had no room. Raises: VerificationFailed.
    """
    left = [each for each in now.differences if each.what]
    beyond = now.count - len(now.differences)  # more than are kept, and copied again
    others = now.count - now.odd_times - (now.attribute_differences if refused else 0)
    if not left:
        return SkippedEntries()
    if all(is_unstorable(each, refused=refused) for each in left) and not (beyond and others):
        unstored = tuple((each.path, describe_difference(each)) for each in left)
        return SkippedEntries(unstored=unstored, more_unstored=beyond)
    shown = "; ".join(f"{show_name(each.path) or '.'}: {describe_difference(each)}" for each in left[:_SHOWN])
    count = show_count(max(len(left), now.count if len(left) == len(now.differences) else 0), "entry", "entries")
    raise VerificationFailed(
        f"{count} in {work.tree} did not become as at the source: {shown}", hint=_hint(left, review)
    )


def _hint(left: list[Difference], review: SourceReview) -> str:
    """Return what helps against these differences: the keys that consent to them, where each has one."""
    told = [what for each in left for what in each.what]
    keys = dict.fromkeys(key for words, key in review.keys if any(words in what for what in told))
    if all(any(words in what for words, _ in review.keys) for what in told):
        helps = f"write {', '.join(keys)} in [rsync], as far as that may be lost, and run again, which continues"
        return f"the target's user or filesystem cannot store them: {helps}; or {review.elsewhere}"
    return f"the target's user or filesystem cannot store them: change or exclude these entries; or {review.elsewhere}"
