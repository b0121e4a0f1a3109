"""The decision on one dataset: nothing, its actions in order, or a refusal."""

import json

from orchestrator.domain.command_line import quoted
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.plan import Refusal
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.zfs.model import (
    FLAGS,
    AbortReceive,
    Action,
    Dataset,
    ResumedSend,
    Rollback,
    SendFlags,
    Snapshot,
)
from orchestrator.engines.zfs.plan import divergence
from orchestrator.engines.zfs.plan.context import PlanContext, parent_dataset
from orchestrator.engines.zfs.plan.dataset_plan import (
    DatasetPlan,
    DatasetPlans,
    EncryptionInheritance,
    brings_snapshot,
    encryption_below,
    inheritance_below,
)
from orchestrator.engines.zfs.plan.divergence import refuse_waiting
from orchestrator.engines.zfs.plan.hold_names import parse_hold_bookmark, replication_target_id
from orchestrator.engines.zfs.plan.increments import CommonSnapshot, choose_snapshots, find_common_snapshot, plan_sends
from orchestrator.engines.zfs.plan.promotions import refuse_promoted
from orchestrator.engines.zfs.plan.renames import may_follow, refuse_long_rename, refuse_renamed
from orchestrator.engines.zfs.plan.resume import StaleReceive, judge_resume
from orchestrator.engines.zfs.plan.send_flags import first_flags, frozen_flags, is_raw
from orchestrator.engines.zfs.plan.take_over import take_over


def find_clone_origin(
    case: PlanContext, name: str, done: DatasetPlans, origin: str | None
) -> tuple[Snapshot, SendFlags] | Refusal | None:
    """Return the origin's snapshot and the flags of its chain; None: the target will not hold the snapshot by then."""
    found = case.origin(name)
    if origin is None or found is None:
        return None
    dataset_plan, snapshot = done[origin], found[1]
    if not dataset_plan.moved and case.target_holds(origin, snapshot.guid):
        datasets = case.world.source.datasets[origin], case.world.target.datasets[origin]
        flags = frozen_flags(case, origin, *datasets)
        return flags if isinstance(flags, Refusal) else (snapshot, flags)
    if dataset_plan.flags and any(brings_snapshot(action, snapshot) for action in dataset_plan.actions):
        return snapshot, dataset_plan.flags
    if dataset_plan.refusal:
        names = case.source_name(name), case.source_name(origin)
        why = f"{names[0]} waits for its origin {names[1]}: sent without it, it would use its space twice"
        return refuse_waiting(why, dataset_plan.refusal)
    return None


def refuse_unfinished(case: PlanContext, name: str, *, sure: bool) -> Refusal:
    """Return the refusal of a dataset whose property says that it is being restored. `sure`: more than the property says so."""
    there = case.source_name(name)
    root = case.world.source.root
    hint = f"finish that: poolferry restore run {case.job.name} --to {quoted(str(root))}"
    if (
        name and not sure
    ):  # where all else is in use, a restore of the whole would be refused; that of this one goes on, whichever began it
        hint = (
            f"finish that: poolferry restore run {case.job.name} --path {quoted(name)} --to {quoted(str(root / name))}"
        )
    own = "" if sure else f"zfs inherit poolferry:flags {quoted(there)}"
    if own:
        hint += f"; where nobody restores it, its owner has set that: {own}"
    why = f"{there} is being brought back from a copy, and is not whole yet"
    return Refusal(why=why, evidence=(f"its property {FLAGS} says so",), hint=hint, own=own)


def decide_dataset(case: PlanContext, name: str, done: DatasetPlans, origin: str | None) -> DatasetPlan:
    """Decide the plan of one dataset. `done`: plans of its parent, its origin and others; `origin`: a clone's start."""
    above = done[parent_dataset(name)] if name else None
    dataset_plan = _decide(case, name, done, origin, above)
    if dataset_plan.there or dataset_plan.comes:
        return dataset_plan
    return replace(dataset_plan, blocks=(above.blocks if above else None) or dataset_plan.refusal)


def _refuse_now(case: PlanContext, name: str) -> Refusal | None:
    """Return the refusal of a dataset that is left out of this plan, or whose restore is not finished."""
    if _is_unfinished(case, name):
        return refuse_unfinished(case, name, sure=False)
    return case.requested.left_out.get(name)


def _is_unfinished(case: PlanContext, name: str) -> bool:
    flags = case.world.source.datasets[name].flags
    return case.world.returning is None and flags is not None and flags.backup


def _decide(
    case: PlanContext, name: str, done: DatasetPlans, origin: str | None, above: DatasetPlan | None
) -> DatasetPlan:
    moved = above is not None and above.moved
    target = None if moved else case.world.target.datasets.get(name)
    if target is None and not moved and (old := case.renamed.get(name)) is not None:
        if long := refuse_long_rename(case, name, old):
            return DatasetPlan(name=name, refusal=long)
        if may_follow(case):
            return DatasetPlan(name=name, waits=True)
        return DatasetPlan(name=name, refusal=refuse_renamed(case, name, old))
    if target is None:
        here = DatasetPlan(name=name, moved=moved, inheritance=inheritance_below(_encryption_above(case, name, done)))
        if refusal := _refuse_now(case, name):
            return replace(here, refusal=refusal)
        return _begin(case, here, done, origin, onto=None)
    here = DatasetPlan(name=name, there=True, inheritance=_encryption_of(case, target))
    if name in case.world.receiving:
        return replace(here, there=bool(target.snapshots), refusal=_refuse_busy(case, name))
    if refusal := _refuse_now(case, name):
        return replace(here, there=bool(target.snapshots), refusal=refusal)
    return _go_on(case, here, target, done, origin) if target.snapshots else _fill(case, here, target, done, origin)


def _refuse_busy(case: PlanContext, name: str) -> Refusal:
    process, whole, host = case.world.receiving[name], case.target_name(name), case.world.target.root.host
    stream = f"its stream holds no snapshot of {case.source_name(name)}" if process.ours else "no run of ours began it"
    end = f"{host.ssh} kill {process.pid}" if host else f"kill {process.pid}"
    return Refusal(
        why=f"another program receives into {whole}",
        evidence=(f"process {process.pid}{f' on {host}' if host else ''}; {stream}",),
        hint=f"wait until it has ended; if it waits for a sender that is gone, end it: {end}; or give that copy another place",
        own=end,
    )


def _go_on(
    case: PlanContext, here: DatasetPlan, target: Dataset, done: DatasetPlans, origin: str | None
) -> DatasetPlan:
    """Plan a dataset whose copy has snapshots: continue from the newest one that both sides hold."""
    source = case.world.source.datasets[here.name]
    base = find_common_snapshot(source, target)
    ahead = choose_snapshots(case, source, base.base if base else None)
    if base is None:
        if (new := next((new for new, old in case.renamed.items() if old == here.name), None)) is not None:
            return here if may_follow(case) else replace(here, refusal=refuse_renamed(case, new, here.name))
        if (ahead.picked or not here.name) and (promoted := refuse_promoted(case, here.name, target)):
            return _beside(case, here, promoted, done, origin)
        if not ahead.picked:
            return replace(here, empty=True)
        unrelated = divergence.refuse_unrelated(case, here.name, source, target)
        above = done[parent_dataset(here.name)].refusal if here.name else None
        if above is not None and divergence.covers_all_below(case, above):
            unrelated = replace(unrelated, hint=above.hint, own=above.own)
        return _beside(case, here, unrelated, done, origin)
    here = replace(here, base=base, before=take_over(case, here.name, target))
    parted = bool(base.own or target.written)
    if not ahead.picked and (parted or not (target.token or target.partial)):
        warnings = _parted(case, here.name, base, target) if parted else ()
        return replace(here, warnings=warnings, actions=here.before)
    back = divergence.refuse_diverged(case, here.name, base, target) if parted else None
    flags = frozen_flags(case, here.name, source, target)
    if isinstance(back, Refusal):
        return _beside(case, here, back, done, origin)
    if isinstance(flags, Refusal):
        return _beside(case, here, flags, done, origin)
    return _carry_on(case, here, base, back, flags)


def _carry_on(
    case: PlanContext, here: DatasetPlan, base: CommonSnapshot, back: Rollback | None, flags: SendFlags
) -> DatasetPlan:
    """Plan to resume or discard an interrupted receive, then all sends that follow."""
    source = case.world.source.datasets[here.name]
    verdict = judge_resume(case, here.name, base, flags)
    if isinstance(verdict, Refusal):
        return replace(here, refusal=verdict)
    cut = verdict if isinstance(verdict, ResumedSend) else None
    ahead = choose_snapshots(case, source, cut.snapshot if cut else base.base)
    new = ((cut.snapshot,) if cut else ()) + ahead.picked
    refusal = divergence.refuse_name_conflict(case, here.name, base, new, rolled_back=back is not None)
    if refusal := refusal or divergence.refuse_long_name(case, here.name, new):
        return replace(here, refusal=refusal)
    why = _after(cut) if cut else str(base)
    rest = plan_sends(here.name, ahead, cut.snapshot if cut else base.base, flags, why)
    abort = (
        (AbortReceive(dataset=here.name, why=verdict.why, told=verdict.told),)
        if isinstance(verdict, StaleReceive)
        else ()
    )
    return replace(
        here,
        actions=(*here.before, *abort, *(() if back is None else (back,)), *((cut,) if cut else ()), *rest),
        flags=flags,
    )


def _after(cut: ResumedSend) -> str:
    return f"the token covers {cut.snapshot.mark} alone; what follows continues from it"


def _fill(case: PlanContext, here: DatasetPlan, target: Dataset, done: DatasetPlans, origin: str | None) -> DatasetPlan:
    """Plan a dataset whose copy has no snapshot: an interrupted first receive, our placeholder, or an obstacle."""
    name = here.name
    source = case.world.source.datasets[name]
    if target.token is None and not (target.partial and target.placeholder):
        return _begin(case, here, done, origin, onto=target)
    start = find_clone_origin(case, name, done, origin)
    target_encrypts = _encryption_above(case, name, done) is EncryptionInheritance.SEALED
    flags = start[1] if isinstance(start, tuple) else first_flags(case, name, source, target_encrypts=target_encrypts)
    verdict = flags if isinstance(flags, Refusal) else judge_resume(case, name, None, flags)
    if isinstance(verdict, Refusal):
        return replace(here, there=target.placeholder, refusal=verdict)
    if isinstance(verdict, ResumedSend) and isinstance(flags, SendFlags):
        flags = target.flags or flags
        rest = plan_sends(
            name, choose_snapshots(case, source, verdict.snapshot), verdict.snapshot, flags, _after(verdict)
        )
        return replace(here, actions=(verdict, *rest), comes=True, flags=flags)
    abort = (
        (AbortReceive(dataset=name, why=verdict.why, told=verdict.told),) if isinstance(verdict, StaleReceive) else ()
    )
    here, onto = replace(here, there=target.placeholder), target if target.placeholder else None
    return _begin(case, here, done, origin, onto=onto, before=abort)


def _begin(
    case: PlanContext,
    here: DatasetPlan,
    done: DatasetPlans,
    origin: str | None,
    *,
    onto: Dataset | None,
    before: tuple[Action, ...] = (),
) -> DatasetPlan:
    """Plan a first send: a clone of its origin's copy, or full. `onto`: what exists; `before`: actions to run first."""
    source = case.world.source.datasets[here.name]
    ahead = choose_snapshots(case, source, None)
    if not ahead.picked:
        return replace(here, empty=True, actions=before)
    if here.name and done[parent_dataset(here.name)].waits:
        return replace(here, waits=True)
    if here.name and (blocks := done[parent_dataset(here.name)].blocks):
        # A placeholder above it would later prevent the refused dataset from being received as its own type.
        why = f"{case.target_name(here.name)} waits for what lies above it"
        return replace(here, refusal=divergence.refuse_waiting(why, blocks))
    if refusal := divergence.refuse_long_name(case, here.name, ahead.picked):
        return replace(here, actions=before, refusal=refusal)
    above = _encryption_above(case, here.name, done)
    flags = first_flags(case, here.name, source, target_encrypts=above is EncryptionInheritance.SEALED)
    if isinstance(flags, Refusal):
        return replace(here, refusal=flags)
    if onto and (refusal := divergence.refuse_in_the_way(case, here.name, source, onto, raw=flags.raw)):
        return _beside(case, here, refusal, done, origin)
    here = replace(here, comes=True, inheritance=EncryptionInheritance.RAW if flags.raw else inheritance_below(above))
    start = find_clone_origin(case, here.name, done, origin) if onto is None else None
    if isinstance(start, Refusal):
        return replace(here, comes=False, refusal=start)
    if start is not None:
        snapshot, flags = start
        why = f"a clone of {case.source_name(origin or '')}{snapshot.mark}, which the target holds by then"
        actions = (*before, *plan_sends(here.name, ahead, snapshot, flags, why, origin=origin))
        return replace(here, actions=actions, flags=flags)
    lost = () if onto or before or here.moved else _shared(case, here.name) or _vanished(case, here.name)
    why = "the target has no copy of it" if onto is None else "the target holds only its place, made by us and empty"
    encryption = encryption_below(above) if onto is None and not flags.raw else None
    actions = (*before, *plan_sends(here.name, ahead, None, flags, why, encryption=encryption))
    whole = f"{case.source_name(here.name)} is a clone, and sent whole: the target has not its origin {source.origin}"
    return replace(here, actions=actions, flags=flags, warnings=(*((whole,) if source.origin else ()), *lost))


def _beside(
    case: PlanContext, here: DatasetPlan, refusal: Refusal, done: DatasetPlans, origin: str | None
) -> DatasetPlan:
    """Return the refusal; or, on request, a plan that renames the old copy and sends everything again."""
    aside = divergence.plan_rename_aside(case, here.name, refusal)
    if isinstance(aside, Refusal):
        return replace(here, refusal=aside)
    for busy in case.world.receiving:
        if not here.name or busy.startswith(f"{here.name}/"):
            return replace(here, refusal=_refuse_busy(case, busy))
    dataset_plan = _begin(case, replace(here, base=None), done, origin, onto=None, before=(aside,))
    if dataset_plan.empty or dataset_plan.refusal:
        return replace(here, refusal=dataset_plan.refusal or refusal)
    return replace(dataset_plan, moved=True)


def _shared(case: PlanContext, name: str) -> tuple[str, ...]:
    """Return a warning when another dataset of the source holds snapshots of this one, as after a rename and a restore."""
    guids = {one.guid for one in case.world.source.datasets[name].snapshots}
    others = ((other, case.world.source.datasets[other].snapshots) for other in case.names if other != name)
    if case.world.returning is not None or not name:
        return ()
    twin = next((other for other, snapshots in others if any(one.guid in guids for one in snapshots)), None)
    if twin is None:
        return ()
    told = f"{case.source_name(name)} holds snapshots that {case.source_name(twin)} holds, too, and all of it is sent"
    return (f"{told}; to leave it out: exclude = {json.dumps([name])} in [zfs] of {case.job.file}",)


def _vanished(case: PlanContext, name: str) -> tuple[str, ...]:
    """Return a warning when the source remembers that its copy was there. A hold is of a first send that never ended."""
    side = case.world.target
    ours, marks = replication_target_id(side.pool_guid, side.root), case.world.source.datasets[name].bookmarks
    sent = divergence.copy_bookmarks(case, case.world.source.datasets[name])
    if case.world.returning is not None or not sent or any(parse_hold_bookmark(one.name) == ours for one in marks):
        return ()
    whole = case.target_name(name)
    gone = f"{whole} is gone from the target: it held {case.source_name(name)} up to guid {sent[-1].guid}"
    doubt = "" if name or not case.world.moved_copy.doubt else f" ({case.world.moved_copy.doubt})"
    return (f"{gone}; it was renamed or destroyed there by somebody else{doubt}, and all of it is sent again",)


def _encryption_above(case: PlanContext, name: str, done: DatasetPlans) -> EncryptionInheritance:
    """Return how the dataset above the copy is encrypted, as the copy would inherit it."""
    if name:
        return done[parent_dataset(name)].inheritance
    return EncryptionInheritance.SEALED if case.world.target.inherits_encryption else EncryptionInheritance.OPEN


def _encryption_of(case: PlanContext, target: Dataset) -> EncryptionInheritance:
    return (
        EncryptionInheritance.OPEN
        if not target.encrypted
        else EncryptionInheritance.RAW
        if is_raw(case, target)
        else EncryptionInheritance.SEALED
    )


def _parted(case: PlanContext, name: str, base: CommonSnapshot, target: Dataset) -> tuple[str, ...]:
    """Return a warning about a target that diverged, while there is nothing to send."""
    whose = "that the source lost" if divergence.is_lost_by_source(case, base) else "of its own"
    own = f"has {show_count(len(base.own), 'snapshot')} {whose}" if base.own else ""
    written = f"was written to ({show_size(target.written)})" if target.written else ""
    what = " and ".join(told for told in (own, written) if told)
    follows = "the next send there will be refused"
    if not base.own:
        follows = f"{follows}, unless these are access times and mountpoint folders alone"
    return (f"{case.target_name(name)} {what} since {base.there.mark}: {follows}",)
