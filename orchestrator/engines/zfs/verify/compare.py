"""Comparison of a copy by the guids of both sides: missing snapshots, the target's own ones, data written there."""

from collections.abc import Iterable, Iterator

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import Finding, Verdict
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.zfs.errors.moved_copy import absent_pool, refuse_moved_copy
from orchestrator.engines.zfs.model import Dataset, Snapshot
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.increments import find_common_snapshot
from orchestrator.engines.zfs.plan.plan import refuse_lost_source
from orchestrator.engines.zfs.plan.promotions import explain_unpromoted, inherited_snapshots
from orchestrator.engines.zfs.survey.survey import lacks_point

_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedSnapshot:
    """A snapshot that both sides hold, by guid; it may have another name on the target."""

    dataset: str
    source: Snapshot
    target: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class GuidComparison:
    """The result of a comparison by guid. `newest`: per dataset, the snapshot whose contents may be compared.

    `lacking`: full names of the source's datasets whose copies lack the point.
    """

    point: str | None
    newest: tuple[MatchedSnapshot, ...]
    checked: int
    findings: tuple[Finding, ...]
    warnings: tuple[str, ...]
    lacking: tuple[str, ...] = ()


def compare_guids(case: PlanContext, *, point: str | None) -> GuidComparison | Refusal:
    """Compare the whole copy, up to the newest snapshots that both sides hold, or one restore point."""
    if lost := refuse_lost_source(case):
        return lost
    if not case.world.target.datasets:
        return _refuse_absent_copy(case)
    judged = _judge_point(case, point) if point is not None else _judge_copy(case)
    if judged.newest or judged.findings:
        return judged
    where = f"{case.world.target.root} holds no snapshot that {case.world.source.root} has"
    return Refusal(
        why=where if point is None else f"no snapshot @{point} is on both sides",
        evidence=judged.warnings,
        hint=f"poolferry run {case.job.name}, then verify again"
        if point is None
        else "choose one that the source still holds, or none for the newest of both sides",
    )


def _refuse_absent_copy(case: PlanContext) -> Refusal:
    target = case.world.target
    if not target.pool_guid:
        return absent_pool(case.job, target.root, case.world.moved_copy)
    if case.world.moved_copy.name:
        return refuse_moved_copy(case.job, target.root, case.world.moved_copy)
    return Refusal(
        why=f"there is no copy at {target.root}", evidence=(), hint=f"poolferry run {case.job.name}, then verify again"
    )


def snapshot_path(dataset: str, snapshot: Snapshot) -> bytes:
    """Return the name of a snapshot in findings: its name below the job's root."""
    return (dataset + snapshot.mark).encode("utf-8", "surrogateescape")


# The whole copy.


def _judge_copy(case: PlanContext) -> GuidComparison:
    newest = {name: common for name in case.names if (common := newest_common_snapshot(case, name))}
    # createtxg counts for the whole pool: snapshots older than the newest common one should exist on the target too.
    reached = max((common.source.createtxg for common in newest.values()), default=0)
    findings: list[Finding] = []
    late: list[str] = []
    for name in case.names:
        if name in newest:
            findings += _missing(case, name, newest[name])
            findings += _behind(case, name, newest[name], reached)
        elif early := [one for one in _fitting(case, name) if one.createtxg <= reached]:
            findings.append(_absent(case, name, early))
        elif _fitting(case, name) and not _is_remembered(case, name):
            late.append(name)
        findings += _changed(case, name)
    point = newest.get("")
    return GuidComparison(
        point=point.target.name if point else None,
        newest=tuple(newest.values()),
        checked=sum(_count_common(case, name) for name in case.names),
        findings=tuple(findings),
        warnings=tuple(_remarks(case, late)),
        lacking=lacking_datasets(case, point.source.name) if point else (),
    )


def lacking_datasets(case: PlanContext, point: str) -> tuple[str, ...]:
    """Return the full names of the source's datasets whose copies lack a point. `point`: its name on the source."""
    return tuple(
        case.source_name(name)
        for name in case.names
        if name and lacks_point(case.world.source.datasets[name], _there(case, name), point)
        and any(one.name == point for one in _fitting(case, name))
    )  # fmt: skip


def _there(case: PlanContext, name: str) -> Dataset | None:
    return case.world.target.datasets.get(name)


def _fitting(case: PlanContext, name: str) -> list[Snapshot]:
    return [one for one in case.world.source.datasets[name].snapshots if case.fits(one)]


def _count_common(case: PlanContext, name: str) -> int:
    """Return how many snapshots of a dataset both sides hold."""
    return sum(case.target_holds(name, one.guid) for one in case.world.source.datasets[name].snapshots)


def _holds(case: PlanContext, name: str, guid: int) -> bool:
    """Return whether a copy has a snapshot, or is a clone of what has it: the source's dataset was promoted since."""
    return case.target_holds(name, guid) or any(one.guid == guid for _, one in inherited_snapshots(case, name))


def _is_remembered(case: PlanContext, name: str) -> bool:
    """Return whether the source has a snapshot of the target's dataset, at least as a bookmark."""
    there = _there(case, name)
    return there is not None and find_common_snapshot(case.world.source.datasets[name], there) is not None


def newest_common_snapshot(case: PlanContext, name: str) -> MatchedSnapshot | None:
    """Return the newest snapshot of a dataset that both sides hold."""
    there = _there(case, name)
    if there is None:
        return None
    by_guid = {one.guid: one for one in there.snapshots}
    for source in reversed(case.world.source.datasets[name].snapshots):
        if source.guid in by_guid:
            return MatchedSnapshot(dataset=name, source=source, target=by_guid[source.guid])
    return None


def explain_newest_only(case: PlanContext) -> str | None:
    """Return why the target may hold fewer snapshots than the source; None: it should hold all."""
    if not case.job.keep.everything:
        return "[keep] removes older snapshots from the target"
    if case.options.catch_up != "all":
        return f'catch-up = "{case.options.catch_up}" may leave snapshots out'
    if case.job.snapshots is not None and case.job.snapshots.use is not None:
        return "a sanoid.conf of its own may prune the target"
    return None


def _missing(case: PlanContext, name: str, newest: MatchedSnapshot) -> Iterator[Finding]:
    """Yield a finding for each snapshot before the newest common one that the target should hold but does not."""
    if explain_newest_only(case) is not None:
        return
    for one in _fitting(case, name):
        if one.createtxg < newest.source.createtxg and not _holds(case, name, one.guid):
            detail = f"the target does not hold it (guid {one.guid}){_same_name(_there(case, name), one)}"
            yield Finding(path=snapshot_path(name, one), verdict=Verdict.MISSING, detail=detail)


def _behind(case: PlanContext, name: str, newest: MatchedSnapshot, reached: int) -> Iterator[Finding]:
    """Yield a finding for each newer snapshot that the target should hold, as its other datasets are as new; of few the newest."""
    ahead = [one for one in _fitting(case, name) if newest.source.createtxg < one.createtxg <= reached]
    for one in ahead if explain_newest_only(case) is None else ahead[-1:]:
        detail = f"the target does not hold it (guid {one.guid}), and is as of {newest.target.mark}"
        yield Finding(
            path=snapshot_path(name, one), verdict=Verdict.MISSING, detail=detail + _same_name(_there(case, name), one)
        )


def _same_name(other: Dataset | None, one: Snapshot) -> str:
    """Return a note when the other side has another snapshot under the same name."""
    namesake = next((each for each in other.snapshots if each.name == one.name), None) if other else None
    if namesake is None or namesake.guid == one.guid:
        return ""
    return f"; what is called so on the other side is another snapshot (guid {namesake.guid})"


def _absent(case: PlanContext, name: str, early: list[Snapshot]) -> Finding:
    there = _there(case, name)
    held = f", and {show_count(len(there.snapshots), 'other')} there" if there and there.snapshots else ""
    detail = f"the target holds none of the dataset's {show_count(len(early), 'snapshot')}{held}"
    return Finding(
        path=snapshot_path(name, early[-1]), verdict=Verdict.MISSING, detail=detail + _same_name(there, early[-1])
    )


def _changed(case: PlanContext, name: str) -> Iterator[Finding]:
    """Yield findings for snapshots that only the target has, and for data that was written there.

    Why only after the base: ZFS refuses a stream when newer data than its base exists, so older data came from the source.
    """
    source, there = case.world.source.datasets[name], _there(case, name)
    if there is None or there.newest is None:
        return
    base = find_common_snapshot(source, there)
    for one in base.own if base else there.snapshots:
        detail = f"only the target has it (guid {one.guid}){_same_name(source, one)}"
        yield Finding(path=snapshot_path(name, one), verdict=Verdict.EXTRA, detail=detail)
    # No snapshot in the name: the contents of the snapshots are not affected.
    if there.written is None:
        detail = f"it is not known whether anything was written since {there.newest.mark}"
        yield Finding(path=name.encode(), verdict=Verdict.UNPROVED, detail=detail)
    elif there.written:
        detail = f"{show_size(there.written)} written on the target since {there.newest.mark}"
        yield Finding(path=name.encode(), verdict=Verdict.EDITED, detail=detail)


def _remarks(case: PlanContext, late: list[str]) -> Iterator[str]:
    if late:
        yield f"not copied yet, as nothing of it is older than the newest copy: {_first(late)}"
    yield from explain_unpromoted(case)
    if case.set_aside:
        yield f"left out, as --aside set it aside: {_first(case.set_aside)}"
    if why := explain_newest_only(case):
        yield f"of older snapshots only what is there was looked at: {why}"
    if gone := [name for name in case.gone if name not in case.kept_aside]:
        yield f"left alone, as the source no longer has it: {_first(gone)}"
    if case.kept_aside:
        yield f"left alone, as a run set it aside: {_first(case.kept_aside)}"
    bookmarked = [
        name for name in case.names if newest_common_snapshot(case, name) is None and _is_remembered(case, name)
    ]
    if bookmarked:
        yield f"the source keeps only a bookmark of what the target holds newest, so contents cannot be compared: {_first(bookmarked)}"


def _first(names: Iterable[str]) -> str:
    told = [name or "the root" for name in names]
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return ", ".join(told[:_NAMED]) + more


# One point.


def _judge_point(case: PlanContext, point: str) -> GuidComparison:
    """Compare the snapshots of one name; where the names of the two sides differ, the guid decides."""
    newest: list[MatchedSnapshot] = []
    findings: list[Finding] = []
    gone: list[str] = []
    lacking: list[str] = []
    for name in case.names:
        source, there = case.world.source.datasets[name], _there(case, name)
        here = {one.guid: one for one in source.snapshots}
        called = next((one for one in there.snapshots if one.name == point), None) if there else None
        wanted = next((one for one in source.snapshots if one.name == point), None)
        if called is not None and called.guid in here:
            newest.append(MatchedSnapshot(dataset=name, source=here[called.guid], target=called))
        elif wanted is not None and case.fits(wanted) and not _holds(case, name, wanted.guid):
            detail = f"the target does not hold it (guid {wanted.guid}){_same_name(there, wanted)}"
            findings.append(Finding(path=snapshot_path(name, wanted), verdict=Verdict.MISSING, detail=detail))
            lacking.append(case.source_name(name))
        elif called is not None:
            gone.append(name)
    told = (f"the source no longer has @{point}, so it cannot be compared: {_first(gone)}",) if gone else ()
    return GuidComparison(
        point=point,
        newest=tuple(newest),
        checked=len(newest),
        findings=tuple(findings if newest else ()),
        warnings=told,
        lacking=tuple(lacking if newest else ()),
    )
