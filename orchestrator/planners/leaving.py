"""Whether a pool may go: is all that it holds elsewhere, by guid; and in which order its parts return.

Only what a look found at a target counts; what history remembers of disks that are away is told, and proves nothing.

Pure.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from orchestrator.domain.job import Job
from orchestrator.domain.leaving import Copy, Held, Leaving, PoolSeen, Standing
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.units import show_count, show_size

_SHOWN = 12


def judge_leaving(pool: PoolSeen, copies: Sequence[Copy], let_go: Iterable[str]) -> Leaving:
    """How each dataset of the pool stands. `let_go`: names that may be lost; one with a slash at its end, all below it too."""
    names = tuple(let_go)
    standings = tuple(_standing(one, copies, names) for one in pool.datasets)
    return Leaving(standings=standings, unseen=tuple(copy for copy in copies if copy.held is None))


def _standing(one: Held, copies: Sequence[Copy], let_go: tuple[str, ...]) -> Standing:
    own = {guid for _, guid in one.snapshots}
    counted = ((copy, len(own & (copy.held or {}).get(one.name, frozenset()))) for copy in copies)
    holding = tuple((copy.job, copy.place, count) for copy, count in counted if count)
    return Standing(
        dataset=one.name,
        snapshots=len(own),
        copies=holding,
        lost=_lost(one, copies),
        let_go=any(may_be_lost(one.name, name) for name in let_go),
    )


def may_be_lost(dataset: str, told: str) -> bool:
    """Whether a name that was told stands for a dataset. Why not always for all below: a pool's own name would say nothing."""
    return dataset == told.rstrip("/") or (told.endswith("/") and dataset.startswith(told))


def _lost(one: Held, copies: Sequence[Copy]) -> str:
    """What of a dataset no copy holds; empty: nothing."""
    held = frozenset().union(*((copy.held or {}).get(one.name, frozenset()) for copy in copies))
    missing = [name for name, guid in one.snapshots if guid not in held]
    if not one.snapshots:
        return "" if one.empty else "no snapshot, so no copy of it"
    if len(missing) == len(one.snapshots):
        return f"{show_count(len(missing), 'snapshot')}, and no copy of it"
    told = [f"{_few(missing)} on no copy"] if missing else []
    if one.snapshots[-1][1] in held and one.written:
        told.append(f"{show_size(one.written)} written since @{one.snapshots[-1][0]}")
    return ", ".join(told)


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f"@{name}" for name in names[:3]) + more


def refuse_leaving(pool: PoolSeen, leaving: Leaving) -> Refusal | None:
    """Why the pool must stay for now; None: all of it is elsewhere, or may be lost."""
    lost = leaving.lost
    if not lost:
        return None
    words = " ".join(f"--lose {one.dataset}" for one in lost[:3])
    cure = (
        "let nobody write there (zfs unmount), take a last snapshot and run the job that copies it; plug in the disk that has "
        f"it (poolferry disks attach); or say that it may be lost: {words}{' …' if len(lost) > 3 else ''}"
    )
    return Refusal(
        why=f"{show_count(len(lost), 'dataset')} of {pool.name} would be lost",
        evidence=tuple(f"{one.dataset}: {one.lost}" for one in lost[:_SHOWN]),
        cure=cure,
    )


# The way back.


def lies_in(job: Job, pool: str) -> bool:
    """Whether a job's source is a dataset of this machine's pool."""
    return job.source.host is None and f"{job.source.path}/".startswith(f"{pool}/")


def in_order(jobs: Iterable[Job]) -> tuple[tuple[Location, tuple[Job, ...]], ...]:
    """What has to return, each source once with the jobs that copy it; what lies above others first."""
    by_source: dict[str, list[Job]] = {}
    for job in jobs:
        by_source.setdefault(job.source.path, []).append(job)
    return tuple((Location(path=path), tuple(by_source[path])) for path in sorted(by_source, key=_depth))


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path


def is_back(source: Location, pool: PoolSeen, copy: Copy) -> bool:
    """Whether every dataset that a copy holds of a source is in the pool again, by guid, and in use."""
    there = {one.name: one for one in pool.datasets}
    held = _of(source, copy)
    return bool(held) and all(name in there and _came_back(there[name], guids) for name, guids in held.items())


def _came_back(one: Held, guids: frozenset[int]) -> bool:
    return not one.unsettled and any(guid in guids for _, guid in one.snapshots)


def best_copy(source: Location, copies: Sequence[Copy], known: Mapping[str, Sequence[int]]) -> Copy | None:
    """The copy to bring a source back from: the newest, and of equals the one that holds most; None: none can be used.

    `known`: the guids of each dataset's snapshots, the oldest first, as the source's own kit has them.
    """
    usable = [copy for copy in copies if copy.held is not None and _of(source, copy)]
    return max(usable, key=lambda copy: _worth(source, copy, known), default=None)


def _of(source: Location, copy: Copy) -> dict[str, frozenset[int]]:
    below = f"{source.path}/"
    return {name: guids for name, guids in (copy.held or {}).items() if f"{name}/".startswith(below) and guids}


def _worth(source: Location, copy: Copy, known: Mapping[str, Sequence[int]]) -> tuple[int, int]:
    held = _of(source, copy)
    newest = sum(_newest(known.get(name, ()), guids) for name, guids in held.items())
    return newest, sum(map(len, held.values()))


def _newest(order: Sequence[int], guids: frozenset[int]) -> int:
    return max((place for place, guid in enumerate(order, 1) if guid in guids), default=0)


def missing_above(source: Location, pool: PoolSeen) -> Iterator[str]:
    """The datasets that have to be there before a source can return, and are not."""
    there = {one.name for one in pool.datasets}
    parts = source.path.split("/")
    yield from (name for end in range(1, len(parts)) if (name := "/".join(parts[:end])) not in there)
