"""Copies that may need nothing but data: those where neither source nor what is to be sent has a property that they have not received.

Why: a stream with properties makes `zfs receive` look at the dataset four times more, and the pool make a transaction more; with many
datasets that was a sixth of a run. Without them the copy's own stay as they are, whatever the source gets after the look; the next run
sees that. Where anything is not known, the stream brings properties as ever.
"""

from collections.abc import Iterator
from typing import NamedTuple

from orchestrator.domain.job import Job
from orchestrator.engines.zfs.model import Dataset, SideSurvey, Snapshot
from orchestrator.engines.zfs.options import options_of

_FEWEST = 3  # datasets; of fewer the look costs as much as it saves
_MOST = 50  # snapshots of one; of more the streams themselves take longer


class PlainCandidate(NamedTuple):
    """A dataset, its copy, and the snapshots from the copy's newest on: `snapshots` are full names, without that one; `guids` have it."""

    name: str
    source: str
    copy: str
    snapshots: tuple[str, ...]
    guids: frozenset[int]


def choose_candidates(job: Job, source: SideSurvey, target: SideSurvey) -> tuple[PlainCandidate, ...]:
    """Return the datasets of this machine of which it is worth to ask; none: too few."""
    if not options_of(job).properties or source.root.host is not None or target.root.host is not None:
        return ()
    found = tuple(_candidates(source, target))
    return found if len(found) >= _FEWEST else ()


def _candidates(source: SideSurvey, target: SideSurvey) -> Iterator[PlainCandidate]:
    for name, here in source.datasets.items():
        there = target.datasets.get(name)
        if there is None or (ahead := _ahead(here, there)) is None:
            continue
        whole = source.full(name)
        later = tuple(f"{whole}{one.mark}" for one in ahead[1:])
        yield PlainCandidate(name, whole, target.full(name), later, frozenset(one.guid for one in ahead))


def _ahead(here: Dataset, there: Dataset) -> tuple[Snapshot, ...] | None:
    """Return the source's snapshots from the copy's newest on; None where its streams bring properties anyway, or none at all.

    Nothing of an encrypted dataset: what its copy received of its key is in no list. Nor of a copy that has more to come than an increment.
    """
    newest = there.newest
    if newest is None or here.encrypted or there.encrypted or here.waits or here.burdens or here.kind is not there.kind:
        return None
    if there.partial or there.placeholder or there.bare:
        return None
    base = next((one for one in here.snapshots if one.guid == newest.guid), None)
    if base is None:
        return None
    ahead = tuple(one for one in here.snapshots if one.createtxg >= base.createtxg)
    return ahead if 1 < len(ahead) <= _MOST else None
