"""The restore of a copy: a run with its sides exchanged, so that it resumes and is confirmed as any other.

The destination is free, or holds the remains of an earlier restore; nothing is ever received over data of others. Restored data
is neither mounted nor writable before it is complete: `properties` then plans the remaining actions.
"""

import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from orchestrator.domain.dataset_restore import DatasetRestorePlan, DatasetRestoreRequest, NextBase
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job, KeepRules
from orchestrator.domain.names import is_set_aside, set_aside_name
from orchestrator.domain.place import Location, Place, parse_location
from orchestrator.domain.plan import Decision, NothingToDo, Plan, Refusal
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.model import ActionPlan, Dataset, RenameAside, SideSurvey, Snapshot, ZfsSurvey
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.plan import steps
from orchestrator.engines.zfs.plan import summary as telling
from orchestrator.engines.zfs.plan.context import parent_dataset
from orchestrator.engines.zfs.plan.hold_names import parse_cursor_bookmark
from orchestrator.engines.zfs.plan.increments import find_common_snapshot
from orchestrator.engines.zfs.plan.plan import decide_actions
from orchestrator.engines.zfs.recovery.kit_diff import parse_kit_content
from orchestrator.engines.zfs.restore.model import (
    Cursor,
    DatasetRestoreSurvey,
    continues,
    is_restored_by_us,
    shares_snapshot,
)

ASIDE = "aside"
# A recursive snapshot has one name everywhere, although the datasets may get it some seconds apart.
_TOGETHER = timedelta(hours=1)
_SHOWN = 5


def make_restore_job(job: Job, dataset_request: DatasetRestoreRequest) -> Job:
    """Build the job that restores a copy: all data there, in as many streams as it was sent."""
    options = replace(
        options_of(job), recursive=True, exclude=(), snapshots=("*",), skip_snapshots=(), properties=True, protect=(),
        catch_up="all" if dataset_request.until is None else "kept",  # for the times of snapshots
        raw="auto", may_decrypt=options_of(job).raw != "no" or options_of(job).may_decrypt, may_destroy=(),
    )  # fmt: skip
    copy = job.target.location
    return replace(
        job, source=copy / dataset_request.below if dataset_request.below else copy, target=Place(name=str(dataset_request.to), location=dataset_request.to),
        options=options, keep=KeepRules(), snapshots=None,
    )  # fmt: skip


def is_original_place(job: Job, dataset_request: DatasetRestoreRequest) -> bool:
    """Return whether the destination is the very dataset that the copy was made from."""
    return dataset_request.to == (job.source / dataset_request.below if dataset_request.below else job.source)


def cursors_to_restore(job: Job, dataset_request: DatasetRestoreRequest) -> tuple[Cursor, ...]:
    """Return the bookmarks for all targets that a kit records; none unless data return to their original place."""
    if dataset_request.kit is None or not is_original_place(job, dataset_request):
        return ()
    found: list[Cursor] = []
    for whole, guid, *_ in parse_kit_content(dataset_request.kit)["bookmarks"]:
        dataset, _, mark = whole.partition("#")
        if parse_cursor_bookmark(mark) is not None and f"{dataset}/".startswith(f"{dataset_request.to.path}/"):
            found.append((dataset[len(dataset_request.to.path) + 1 :], mark, int(guid)))
    return tuple(found)


def cut_to_point(world: ZfsSurvey, until: RestorePoint | None) -> tuple[ZfsSurvey, tuple[str, ...]]:
    """Return the world without snapshots and datasets newer than the point; and the datasets without any snapshot."""
    cut = {name: _cut(one, until, world.created) for name, one in world.source.datasets.items()}
    kept = {part for name, one in cut.items() if one.snapshots for part in _with_parents(name)}
    bare = tuple(sorted(name for name, one in world.source.datasets.items() if not one.snapshots and name not in kept))
    source = replace(world.source, datasets={name: one for name, one in cut.items() if name in kept})
    return replace(world, source=source), bare


def leave_aside(world: ZfsSurvey, job: Job) -> tuple[ZfsSurvey, tuple[str, ...]]:
    """Return the world without datasets of the copy that a run set aside there, and the topmost of them.

    Why: each is a former copy of what comes back beside it, and as large. With set-aside = true those of the source are copied so, too.
    """
    if options_of(job).set_aside:
        return world, ()
    datasets = world.source.datasets
    tops = tuple(name for name in sorted(datasets) if is_set_aside(name))
    left = {name: one for name, one in datasets.items() if not _lies_in(name, tops)}
    outer = tuple(name for name in tops if not _lies_in(parent_dataset(name), tops))
    return replace(world, source=replace(world.source, datasets=left)), outer


def _lies_in(name: str, tops: tuple[str, ...]) -> bool:
    return any(f"{name}/".startswith(f"{top}/") for top in tops)


def short_datasets(world: ZfsSurvey, until: RestorePoint | None, kit: str | None) -> dict[str, str]:
    """Return the datasets of a copy that come back as of an earlier snapshot than the root, each with that snapshot's name.

    `world`: up to the point. A dataset counts that follows the root's snapshots, and lacks the one that is restored; not one
    that the newest kit knows no more, as the source had destroyed it.
    """
    datasets = world.source.datasets
    root = datasets.get("")
    point = until.name if until else root.newest.name if root and root.newest else ""
    if root is None or not any(one.name == point for one in root.snapshots):
        return {}
    names = {one.name for one in root.snapshots}
    known = _kit_datasets(kit)
    return {
        name: one.newest.name
        for name, one in sorted(datasets.items())
        if name and one.newest and one.newest.name in names and one.newest.name != point
        and not any(each.name == point for each in one.snapshots) and (known is None or name in known)
    }  # fmt: skip


def partial_points(copy: SideSurvey, kit: str | None) -> dict[str, tuple[str, ...]]:
    """Return the points of a copy that lack datasets, by the copy alone: each with the names of those, below the root.

    A dataset lacks a point after its own first one; one whose first copy was cut lacks all: since when it exists is unknown.
    """
    root = copy.datasets.get("")
    order = {one.name: place for place, one in enumerate(root.snapshots)} if root else {}
    known, lacking = _kit_datasets(kit), dict[str, list[str]]()
    for name, one in sorted(copy.datasets.items()):
        own = {each.name for each in one.snapshots}
        follows = [order[each] for each in own if each in order]
        first = min(follows) if follows else 0 if one.partial and not own else len(order)
        if name and (name in known if known is not None else not any(map(is_set_aside, _with_parents(name)))):
            for point in (each for each, place in order.items() if place >= first and each not in own):
                lacking.setdefault(point, []).append(name)
    return {point: tuple(names) for point, names in lacking.items()}


def _kit_datasets(kit: str | None) -> frozenset[str] | None:
    """Return the datasets of a kit by their names below its source; None: there is no such kit."""
    told = parse_kit_content(kit) if kit else {}
    if "datasets" not in told or not told.get("source"):
        return None
    root = parse_location(told["source"]).path
    return frozenset(name[len(root) + 1 :] for name in told["datasets"] if f"{name}/".startswith(f"{root}/"))


def _with_parents(name: str) -> Iterator[str]:
    yield name
    while name:
        name = parent_dataset(name)
        yield name


def _cut(dataset: Dataset, until: RestorePoint | None, created: Mapping[int, datetime]) -> Dataset:
    if until is None:
        return dataset
    place = 0
    for at, one in enumerate(dataset.snapshots, start=1):
        taken = created.get(one.guid)
        if taken is not None and (taken <= until.taken or _is_it(one, taken, until)):
            place = at
            if _is_it(one, taken, until):
                break
    return replace(dataset, snapshots=dataset.snapshots[:place])


def _is_it(snapshot: Snapshot, taken: datetime, until: RestorePoint) -> bool:
    return snapshot.name == until.name and abs(taken - until.taken) < _TOGETHER


# The next part.


def plan(seen: DatasetRestoreSurvey, run_request: RunRequest) -> DatasetRestorePlan:
    """Plan the data first; once complete, plan their original properties, keys and mounts."""
    if refusal := _refuse_sides(seen) or _refuse_lost(seen):
        return DatasetRestorePlan(decision=refusal)
    if holds_all(seen):
        from orchestrator.engines.zfs.restore.finish import explain_locked_again

        why = f"{seen.world.target.root} holds all of the copy already"
        return DatasetRestorePlan(
            decision=NothingToDo(why=why, current=None, warnings=explain_locked_again(seen)),
            short=_short(seen),
        )
    if "/" not in seen.world.target.root.path:
        return _into_pool(seen, run_request)
    found = _clear(seen, run_request)
    return DatasetRestorePlan(decision=found) if isinstance(found, Refusal) else _bring(*found, run_request)


def _into_pool(seen: DatasetRestoreSurvey, run_request: RunRequest) -> DatasetRestorePlan:
    """Plan to mark the pool's root dataset as ours first; it is then surveyed again."""
    from orchestrator.engines.zfs.restore import pool_root as rooting

    first = rooting.plan_pool_root(seen)
    if isinstance(first, Refusal):
        return DatasetRestorePlan(decision=first)
    rest = _bring(seen if first is None else rooting.after_taking_root(seen), (), run_request)
    if first is None or not isinstance(rest.decision, Plan):
        return rest
    return DatasetRestorePlan(decision=first, then=(*rest.decision.stages, *rest.then))


def _bring(seen: DatasetRestoreSurvey, aside: tuple[RenameAside, ...], run_request: RunRequest) -> DatasetRestorePlan:
    """Plan all receives, once no obstacle is left; then the remaining settings."""
    seen = as_it_came(seen)
    decided = decide_actions(seen.job, seen.world, run_request)
    if isinstance(decided, Refusal):
        return DatasetRestorePlan(decision=decided)
    from orchestrator.engines.zfs.restore import properties as settling

    if not aside and not decided.stages:
        return DatasetRestorePlan(
            decision=settling.plan(seen), whole=True, waits=settling.waiting_datasets(seen), short=_short(seen)
        )
    return DatasetRestorePlan(
        decision=_carry(seen, decided, aside, run_request), then=settling.foresee_steps(seen), short=_short(seen)
    )


def _short(seen: DatasetRestoreSurvey) -> dict[str, str]:
    named = {seen.world.target.full(name): mark for name, mark in seen.short.items()}
    return {
        name: f"{name} is as of @{mark}" if mark else f"{name} is not there: its first copy was cut"
        for name, mark in named.items()
    }


def _carry(
    seen: DatasetRestoreSurvey, decided: ActionPlan, aside: tuple[RenameAside, ...], run_request: RunRequest
) -> Decision:
    world = seen.world
    decided = replace(decided, stages=(*((one,) for one in aside), *decided.stages))
    made = steps.build_steps(seen.job, world, decided, run_request)
    gaps = tuple(
        f"{world.source.full(name)} holds no snapshot, so it does not come back"
        for name in seen.bare[:_SHOWN]
        if name not in seen.short
    )
    late = tuple(
        f"{world.source.full(name)} does not hold the point, so it comes back as of @{mark}"
        if mark
        else f"the first copy of {world.source.full(name)} was cut, so it does not come back"
        for name, mark in seen.short.items()
    )
    return Plan(
        summary=f"to {world.target.root}: {telling.summary_of(decided)}",
        stages=made,
        resumes=decided.resumes,
        warnings=(*decided.warnings, *gaps, *late, *_left_aside(seen)),
        again=True,
        parallel=options_of(seen.job).parallel,
        independent=True,
        refusals=decided.refusals,
    )


def _left_aside(seen: DatasetRestoreSurvey) -> Iterator[str]:
    """Yield what a run set aside at the copy, with the command that brings it back, too."""
    for name in seen.aside[:_SHOWN]:
        words = ("poolferry", "restore", "run", seen.job.name, "--path", f"{seen.below}/{name}".lstrip("/"))
        command = shlex.join((*words, "--to", str(seen.world.target.root / name)))
        yield f"{seen.world.source.full(name)} was set aside by a run, and does not come back; to bring it back, too: {command}"
    if (more := len(seen.aside) - _SHOWN) > 0:
        yield f"and {more} more that runs set aside: `zfs list -r {shlex.quote(seen.world.source.root.path)}` there shows them"


def _clear(
    seen: DatasetRestoreSurvey, run_request: RunRequest
) -> tuple[DatasetRestoreSurvey, tuple[RenameAside, ...]] | Refusal:
    """Return the present state without renamed datasets. Refuses: data that no restore left there."""
    target = seen.world.target
    there = target.datasets.get("")
    if (
        there is None
        or is_restored_by_us(there)
        or continues(seen)
        or _is_cut(seen.world, there)
        or (there.placeholder and _all_ours(target))
    ):
        return seen, ()
    to = set_aside_name(target.root.path, run_request.now)
    if ASIDE not in run_request.allowed:
        hint = f"give another name; or use --{ASIDE}: what is there is renamed to {to} and kept"
        why = f"{target.root} is there; a restore overwrites nothing"
        whole = (
            ("it lacks no snapshot of the copy: what changed in it since is all that differs",)
            if _lacks_nothing(seen)
            else ()
        )
        return Refusal(why=why, evidence=(*_evidence(target, there), *whole), hint=hint)
    free = replace(seen.world, target=replace(target, datasets={}), tokens={}, receiving={})
    why = "its name is needed; it keeps all its data, under another name"
    action = RenameAside(dataset="", to=to, why=why, kind=there.kind)
    return replace(seen, world=free, home={}), (action,)


def _is_cut(world: ZfsSurvey, there: Dataset) -> bool:
    """Return whether the dataset holds only a partial receive of the restore."""
    token = world.tokens.get(there.token) if there.token and not there.snapshots else None
    return token is not None and any(
        one.guid == token.to_guid for each in world.source.datasets.values() for one in each.snapshots
    )


def _all_ours(target: SideSurvey) -> bool:
    return all(is_restored_by_us(one) or one.placeholder for one in target.datasets.values())


def _evidence(target: SideSurvey, there: Dataset) -> tuple[str, ...]:
    newest = f", the newest is {there.newest.mark}" if there.newest else ""
    held = f"{show_count(len(target.datasets), 'dataset')}, {show_count(len(there.snapshots), 'snapshot')} of the first{newest}"
    written = (f"{show_size(there.written)} written since",) if there.written and there.newest else ()
    return (held, *written)


def _refuse_sides(seen: DatasetRestoreSurvey) -> Refusal | None:
    copy, home = seen.world.source, seen.world.target
    if not copy.datasets:
        why = f"{copy.root} is not there, or holds no snapshot" + (
            " that old" if options_of(seen.job).catch_up == "kept" else ""
        )
        hint = f"`poolferry points {seen.job.name}` lists what there is; import its pool if it lies on one"
        return Refusal(why=why, evidence=(), hint=hint)
    if copy.root.host is not None and home.root.host is not None:
        hint = f"restore to a dataset of this machine, or run poolferry on {copy.root.host.name}"
        why = "the copy lies on a host, and so does the destination: nothing is carried between two hosts"
        return Refusal(why=why, evidence=(str(copy.root), str(home.root)), hint=hint)
    if copy.root.host == home.root.host and _overlap(copy.root.path, home.root.path):
        why = f"{home.root} and the copy {copy.root} lie in each other"
        return Refusal(why=why, evidence=(), hint="give a name outside of the copy")
    return _refuse_parent(home.root, home.above)


def _overlap(one: str, other: str) -> bool:
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def _refuse_parent(to: Location, above: frozenset[str]) -> Refusal | None:
    """Return a refusal for a missing parent. Why not created: its properties would apply below, and are unknown."""
    pool, parent = to.path.partition("/")[0], parent_dataset(to.path)
    if not parent or parent in above:
        return None
    if pool not in above:
        return Refusal(
            why=f"the pool {pool} is not imported", evidence=(), hint=f"zpool import {shlex.quote(pool)}; or create it"
        )
    hint = f"create it as it shall be: zfs create -p {shlex.quote(parent)}"
    return Refusal(why=f"{parent}, in which it shall lie, is not there", evidence=(), hint=hint)


def _lacks_nothing(seen: DatasetRestoreSurvey) -> bool:
    """Return whether each dataset of the copy is at the destination, with all its snapshots."""
    there = seen.world.target.datasets
    held = {name: {each.guid for each in one.snapshots} for name, one in there.items()}
    return all(
        {each.guid for each in copy.snapshots} <= held.get(name, set()) and name in there
        for name, copy in seen.world.source.datasets.items()
    )


def holds_all(seen: DatasetRestoreSurvey) -> bool:
    """Return whether a restore to here ended well, as history knows, and all that it brought is still there."""
    there = seen.world.target.datasets
    return seen.already and all(
        name in there
        and not is_restored_by_us(there[name])
        and (not copy.snapshots or shares_snapshot(there[name], copy))
        for name, copy in seen.world.source.datasets.items()
    )


def as_it_came(seen: DatasetRestoreSurvey) -> DatasetRestoreSurvey:
    """Return the survey as if nothing had happened to the restored data since they came.

    A dataset that came back may be in use: a mount below it makes a folder in it, people write, snapshots are taken of it. None
    of that makes the restore wrong. A finished dataset counts as its copy, though its oldest snapshots may be pruned by now.
    """
    world = seen.world
    there = {name: _as_it_came(one, world.source.datasets.get(name)) for name, one in world.target.datasets.items()}
    return replace(seen, world=replace(world, target=replace(world.target, datasets=there)))


def _as_it_came(one: Dataset, copy: Dataset | None) -> Dataset:
    if copy is None or copy.newest is None:
        return one
    if not (is_restored_by_us(one) or one.placeholder or one.partial):
        return replace(one, snapshots=copy.snapshots, written=0) if shares_snapshot(one, copy) else one
    at = next((place for place, each in enumerate(one.snapshots, 1) if each.guid == copy.newest.guid), 0)
    return replace(one, snapshots=one.snapshots[:at], written=0) if at else one


def _refuse_lost(seen: DatasetRestoreSurvey) -> Refusal | None:
    """Return a refusal for a name, given as that of a lost key, of which there is nothing to wait for."""
    side = seen.world.target
    for name in sorted(seen.lost):
        there, whole = side.datasets.get(name), side.full(name) if not name.startswith("/") else name[1:]
        if there is None or not there.encrypted or there.key_loaded:
            what = (
                "is not there" if there is None else "is not encrypted" if not there.encrypted else "has its key loaded"
            )
            hint = f"`zfs get -r keystatus {shlex.quote(side.root.path)}` shows which keys are missing"
            return Refusal(why=f"--lost-key {whole}: {whole} {what}", evidence=(), hint=hint)
    return None


def unverified_part(seen: DatasetRestoreSurvey) -> ZfsSurvey:
    """Return the world without the finished datasets, which are in use again, and were verified before; the root always stays."""
    seen = as_it_came(seen)
    source, target = seen.world.source, seen.world.target
    there = target.datasets
    left = {
        name: one
        for name, one in source.datasets.items()
        if not name or name not in there or is_restored_by_us(there[name]) or there[name].placeholder
    }
    arrived = {name: one for name, one in there.items() if name in left}
    return replace(seen.world, source=replace(source, datasets=left), target=replace(target, datasets=arrived))


# After the restore.


def find_next_base(world: ZfsSurvey) -> NextBase:
    """Return the base of the next run: that of the root, and how many of the target's datasets have one."""
    pairs = {
        name: find_common_snapshot(world.source.datasets[name], there)
        for name, there in world.target.datasets.items()
        if name in world.source.datasets and there.snapshots
    }
    root = pairs.get("")
    return NextBase(
        base=root.base.name if root else None, held=sum(1 for base in pairs.values() if base), datasets=len(pairs)
    )
