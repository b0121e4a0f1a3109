"""Digests of files that a host reads for us, and tells one a line: so many bytes, each line and the time have bounds."""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from orchestrator.domain.answers import NOT_READ, unreadable
from orchestrator.domain.errors import VerificationFailed
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.process.executor import LONGEST_LISTING, Writer, pipeline_failure
from orchestrator.runner.run_recorder import RunRecorder
from orchestrator.verify.digest import ALGORITHMS
from orchestrator.verify.manifest import Row

_PARTLY = (23, 24, 123)  # rsync: some files could not be read; xargs: one of its programs failed
_PIECE = 1 << 20
_LONGEST_LINE = 64 << 10  # bytes; a path has 4,095 at most, and each may be written as five
_OF_A_LINE, _OF_A_BYTE = 200, 5  # bytes of a line besides the name, and for each byte of the name
_OTHERS, _ALL_OTHERS = 64 << 20, 1 << 30  # bytes for what was not asked for: folders, and in a walk whatever lies there
_SLOWEST = 4 << 20  # bytes a second
_DIGITS = 20  # more than a size has
_ALGORITHMS = frozenset(each.encode() for each in ALGORITHMS)


def write_names(rows: Iterable[Row], notes: str) -> tuple[list[tuple[str, str]], int]:
    """Write the names of files by the algorithm of their digest; return each algorithm with its file of names, and the bytes of all.

    Names end with NUL. Only algorithms that there are: a manifest is a stranger's text, and each would be an open file and a reading of
    its own. A file of any other is not read, which the comparison finds, as it does a size that is no number.
    """
    found: dict[str, str] = {}
    total = 0
    with contextlib.ExitStack() as files:
        writes: dict[bytes, Callable[[bytes], object]] = {}
        for name, row in rows:
            algorithm, size = row[0].partition(b":")[0], row[2]
            if row[1] == b"f" and len(size) < _DIGITS and size.isdigit():
                total += int(size)
            if algorithm not in _ALGORITHMS:
                continue
            if algorithm not in writes:
                told = algorithm.decode("ascii")
                found[told] = f"{notes}/names-{told}"
                writes[algorithm] = files.enter_context(open(found[told], "wb")).write
            writes[algorithm](name + b"\0")
    return sorted(found.items()), total


def digests_there(
    tree: Location,
    names: str,
    algorithm: str,
    journal: RunRecorder,
    writer: Writer,
    notes: str,
    *,
    size: int,
    partial_is_well: bool = False,
    whole: bool = False,
) -> Iterator[tuple[bytes, str]]:
    """Yield (path, digest) of files of a remote tree. `names`: a local file that lists them, NUL-terminated; `size`: their bytes.

    `whole`: files that are not listed may be told, too. `partial_is_well`: what could not be read there is simply not told; the caller finds the gap.
    Raises: OrchestratorError, also for a host that answers without an end.
    """
    empty, kept = f"{notes}/empty", f"{notes}/digests-{algorithm}"
    os.makedirs(empty, exist_ok=True)
    if os.path.exists(kept):
        os.unlink(kept)
    engine = journal.tools.engine
    try:
        pipeline, parse = journal.tools.trees.digests(tree, names, empty, algorithm, journal.job, whole=whole)
    except ValueError as error:
        raise VerificationFailed(str(error), hint="points to come can be read there with another digest") from error
    result = writer.stream(
        Pipeline(stages=pipeline.stages, reads=pipeline.reads, keeps=kept),
        stall_after=LONGEST_LISTING,  # a file that is read there is silent until its end
        timeout=Seconds(LONGEST_LISTING + size / _SLOWEST),
        most_kept=_longest_answer(names, whole=whole),
    )
    if not result.well and not (partial_is_well and result.stopped is None and result.exits[-1] in _PARTLY):
        raise engine.explain(pipeline_failure(pipeline, result, writer.ssh_options))
    with open(kept, "rb") as file:
        parsed = parse(_lines(file))
        while (named := _next(parsed, pipeline)) is not None:
            yield named


def _longest_answer(names: str, *, whole: bool) -> int:
    """Return how many bytes the digests of these files can have at the most."""
    with open(names, "rb") as file:
        files = sum(piece.count(b"\0") for piece in iter(lambda: file.read(_PIECE), b""))
    return (_ALL_OTHERS if whole else _OTHERS) + files * _OF_A_LINE + os.path.getsize(names) * _OF_A_BYTE


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines. Raises: ValueError for one without an end."""
    while line := file.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE and not line.endswith(b"\n"):
            raise ValueError(f"a line of more than {_LONGEST_LINE} bytes")
        yield line


def _next(parsed: Iterator[tuple[bytes, str]], pipeline: Pipeline) -> tuple[bytes, str] | None:
    """The next digest; None at the end. Raises: UnreadableAnswer. Why by itself: what the caller raises is no answer."""
    try:
        return next(parsed, None)
    except NOT_READ as error:
        raise unreadable("the reading", pipeline.stages[-1], None, error) from error
