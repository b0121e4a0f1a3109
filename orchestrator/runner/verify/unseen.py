"""Entries that a reading of a source could not look at, such as another user's own mount: all else is judged, and these are named."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from orchestrator.domain.answers import GONE, split_lines
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.plan import TreeVerification
from orchestrator.domain.point import Finding, Verdict, VerificationResult
from orchestrator.process.executor import PipelineFailed
from orchestrator.runner.run_recorder import RunRecorder


def as_far_as_seen(records: Iterable[bytes], journal: RunRecorder) -> Iterator[bytes]:
    """Yield the records of a source's listing; what find could not look at below its root is noted, and no failure."""
    begun = False
    try:
        for record in records:
            begun = True
            yield record
    except PipelineFailed as failure:
        result = failure.result
        if not begun or result.stopped is not None or result.exits != (1,):
            raise
        journal.unseen.update(line for line in split_lines("\n".join(result.last_output)) if not line.endswith(GONE))


def doubted(found: Finding, journal: RunRecorder) -> Finding:
    """Return the finding; of what a source lacks where not all could be looked at, that it may be there."""
    if found.verdict is not Verdict.MISSING or not journal.unseen:
        return found
    return replace(found, verdict=Verdict.UNREADABLE, detail="it could not be looked at, or is gone")


def with_unseen(work: TreeVerification, reading: VerificationResult, journal: RunRecorder) -> VerificationResult:
    """Return the reading of a source with what find could not look at there, which may be in no manifest."""
    told = re.compile(r"find: '" + re.escape(work.tree.path.rstrip("/")) + r"/\./(.*)': (.*)", re.DOTALL)
    parted = (
        (match[1], match[2]) if (match := told.fullmatch(line)) else (line, "") for line in sorted(journal.unseen)
    )
    unseen = {os.fsencode(name): why or "more than is named here" for name, why in parted}
    journal.unseen.clear()
    known = {found.path for found in reading.findings if found.verdict is Verdict.UNREADABLE}
    new = tuple(
        Finding(path=path, verdict=Verdict.UNREADABLE, detail=why) for path, why in unseen.items() if path not in known
    )
    counts = Counter(dict(reading.counts))
    counts[Verdict.UNREADABLE] += len(new)
    return replace(reading, counts=tuple((+counts).items()), findings=(*new, *reading.findings))
