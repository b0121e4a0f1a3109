"""Listings of a tree, sorted, for a comparison with its manifest; of a tree at a host with the attributes of each entry."""

import contextlib
from collections.abc import Iterable, Iterator

from orchestrator.domain.answers import NOT_READ, unreadable
from orchestrator.domain.place import leads_to_mount
from orchestrator.domain.plan import Command, Pipeline, TreeVerification
from orchestrator.domain.point import Finding, Verdict
from orchestrator.process.executor import PipelineFailed, Writer
from orchestrator.runner.run_recorder import RunRecorder
from orchestrator.runner.verify.unseen import as_far_as_seen
from orchestrator.verify.attributes import NO_ATTRIBUTES, UNRECORDED
from orchestrator.verify.build import sorted_records
from orchestrator.verify.completeness import REMAINDERS
from orchestrator.verify.fake_super import stored_command, stored_entries
from orchestrator.verify.manifest import read_manifest
from orchestrator.verify.pipelines import listing_command
from orchestrator.verify.source import attributes_command, parse_copy_attributes

_BEHIND = b"\xff" * 4096  # after every path: no part of one has more than 255 bytes


@contextlib.contextmanager
def found_entries(
    work: TreeVerification, manifest: str, journal: RunRecorder, writer: Writer, notes: str
) -> Iterator[Iterator[tuple[bytes, str]]]:
    """Yield the sorted records of a tree at a host, each with the text of its attributes if the manifest has any."""
    if work.restored or work.of_source or not work.point.stored:
        with listed_records(work, journal, writer, notes) as records:
            yield _attributed(records, work, manifest, journal, writer, notes)
        return
    recorded = read_manifest(manifest)[0].attributes
    command = stored_command(work.tree, exclude=REMAINDERS, apart=work.apart)
    with _read_records(work, command, journal, writer) as records:
        told = stored_entries(records, folder=notes)
        yield ((one, text if recorded else UNRECORDED) for one, text in told)


def _attributed(
    found: Iterable[bytes], work: TreeVerification, manifest: str, journal: RunRecorder, writer: Writer, notes: str
) -> Iterator[tuple[bytes, str]]:
    """Yield the records with their attributes, if the manifest has any, and the machine can read them."""
    if not read_manifest(manifest)[0].attributes:
        yield from ((record, UNRECORDED) for record in found)
        return
    command = attributes_command(work.tree, whole=True)
    with writer.records(Pipeline(stages=(command,))) as records:
        told = parse_copy_attributes(iter(records))
        if told is None:
            why = f"{work.tree.host} has no getfattr (apt install attr there)"
            journal.warn(f"access lists and attributes were not compared: {why}")
            yield from ((record, UNRECORDED) for record in found)
            return
        yield from with_texts(found, sorted_records(told, folder=notes))


def with_texts(found: Iterable[bytes], texts: Iterator[bytes]) -> Iterator[tuple[bytes, str]]:
    """Yield the records with the texts of their attributes, both sorted. `texts`: path, `//` and the text of entries that have some."""
    text = next(texts, _BEHIND)
    for record in found:
        key = record[: record.index(b"//") + 2]
        while text[: len(key)] < key:
            text = next(texts, _BEHIND)
        yield record, text[len(key) :].decode("ascii") if text.startswith(key) else NO_ATTRIBUTES


@contextlib.contextmanager
def listed_records(
    work: TreeVerification, journal: RunRecorder, writer: Writer, notes: str, *, names: bool = False
) -> Iterator[Iterator[bytes]]:
    """Yield the sorted records of a listing of the tree."""
    apart = (*work.apart, *work.left_out)
    command = listing_command(work.tree, exclude=REMAINDERS, apart=apart, names=names)
    with _read_records(work, command, journal, writer) as records:
        yield sorted_records(records, folder=notes)


@contextlib.contextmanager
def _read_records(
    work: TreeVerification, command: Command, journal: RunRecorder, writer: Writer
) -> Iterator[Iterable[bytes]]:
    """Yield the records of a listing. Raises: OrchestratorError."""
    try:
        with writer.records(Pipeline(stages=(command,))) as records:
            yield as_far_as_seen(records, journal) if work.of_source else records
    except PipelineFailed as failure:
        raise journal.tools.engine.explain(failure) from failure
    except NOT_READ as error:
        raise unreadable("find", command, None, error) from error


def of_tree(work: TreeVerification, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings, without folders that exist only because of a mount in them."""
    for found in findings:
        if found.verdict is not Verdict.EXTRA or not leads_to_mount(found.path, work.left_out):
            yield found
