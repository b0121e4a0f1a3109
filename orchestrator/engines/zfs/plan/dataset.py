"""The decision on one dataset: nothing, the actions of its dataset plan in order, or a refusal."""

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.plan import Refusal
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.zfs.model import Abort, Dataset, Deed, Flags, ResumedSend, RollBack
from orchestrator.engines.zfs.plan import divergence
from orchestrator.engines.zfs.plan.clones import clone_start
from orchestrator.engines.zfs.plan.common_snapshot import Base, find_base
from orchestrator.engines.zfs.plan.context import Case, parent_of
from orchestrator.engines.zfs.plan.dataset_plan import Cover, Lane, Lanes, below, encryption_below
from orchestrator.engines.zfs.plan.increments import look_ahead, sends
from orchestrator.engines.zfs.plan.resume import Stale, judge
from orchestrator.engines.zfs.plan.send_flags import first_flags, frozen_flags, is_raw


def decide_lane(case: Case, name: str, done: Lanes, origin: str | None) -> Lane:
    """Decide the plan of one dataset. `done`: plans of its parent, its origin and others; `origin`: a clone's start."""
    above = done[parent_of(name)] if name else None
    lane = _decide(case, name, done, origin, above)
    if lane.there or lane.comes:
        return lane
    return replace(lane, blocks=(above.blocks if above else None) or lane.refusal)


def _decide(case: Case, name: str, done: Lanes, origin: str | None, above: Lane | None) -> Lane:
    moved = above is not None and above.moved
    target = None if moved else case.world.target.datasets.get(name)
    if target is None:
        here = Lane(name=name, moved=moved, cover=below(_cover_above(case, name, done)))
        return _begin(case, here, done, origin, onto=None)
    here = Lane(name=name, there=True, cover=_cover_of(case, target))
    if name in case.world.receiving:
        return replace(here, there=bool(target.snapshots), refusal=_refuse_busy(case, name))
    return _go_on(case, here, target, done, origin) if target.snapshots else _fill(case, here, target, done, origin)


def _refuse_busy(case: Case, name: str) -> Refusal:
    pid, whole = case.world.receiving[name], case.target_name(name)
    return Refusal(
        why=f"another program receives into {whole}",
        evidence=(f"process {pid}; its stream holds no snapshot of {case.source_name(name)}",),
        cure="wait until it has ended; or give that copy another place",
    )


def _go_on(case: Case, here: Lane, target: Dataset, done: Lanes, origin: str | None) -> Lane:
    """Plan a dataset whose copy has snapshots: continue from the newest one that both sides hold."""
    source = case.world.source.datasets[here.name]
    base = find_base(source, target)
    ahead = look_ahead(case, source, base.base if base else None)
    if base is None:
        if not ahead.picked:
            return replace(here, empty=True)
        return _beside(case, here, divergence.refuse_unrelated(case, here.name, source, target), done, origin)
    here = replace(here, base=base)
    parted = bool(base.own or target.written)
    if not ahead.picked and (parted or not (target.token or target.partial)):
        return replace(here, warnings=_parted(case, here.name, base, target) if parted else ())
    back = divergence.refuse_own(case, here.name, base, target) if parted else None
    flags = frozen_flags(case, here.name, source, target)
    if isinstance(back, Refusal):
        return _beside(case, here, back, done, origin)
    if isinstance(flags, Refusal):
        return _beside(case, here, flags, done, origin)
    return _carry_on(case, here, base, back, flags)


def _carry_on(case: Case, here: Lane, base: Base, back: RollBack | None, flags: Flags) -> Lane:
    """Plan to resume or discard an interrupted receive, then all sends that follow."""
    source = case.world.source.datasets[here.name]
    verdict = judge(case, here.name, base, flags)
    if isinstance(verdict, Refusal):
        return replace(here, refusal=verdict)
    cut = verdict if isinstance(verdict, ResumedSend) else None
    ahead = look_ahead(case, source, cut.snapshot if cut else base.base)
    new = ((cut.snapshot,) if cut else ()) + ahead.picked
    if refusal := divergence.refuse_taken(case, here.name, base, new, rolled_back=back is not None):
        return replace(here, refusal=refusal)
    why = _after(cut) if cut else str(base)
    rest = sends(here.name, ahead, cut.snapshot if cut else base.base, flags, why)
    abort = (Abort(dataset=here.name, why=verdict.why, told=verdict.told),) if isinstance(verdict, Stale) else ()
    return replace(
        here, deeds=(*abort, *(() if back is None else (back,)), *((cut,) if cut else ()), *rest), flags=flags
    )


def _after(cut: ResumedSend) -> str:
    return f"the token covers {cut.snapshot.mark} alone; what follows goes on from it"


def _fill(case: Case, here: Lane, target: Dataset, done: Lanes, origin: str | None) -> Lane:
    """Plan a dataset whose copy has no snapshot: an interrupted first receive, our placeholder, or an obstacle."""
    name = here.name
    source = case.world.source.datasets[name]
    if target.token is None and not (target.partial and target.placeholder):
        return _begin(case, here, done, origin, onto=target)
    start = clone_start(case, name, done, origin)
    sealed = _cover_above(case, name, done) is Cover.SEALED
    flags = start[1] if isinstance(start, tuple) else first_flags(case, name, source, sealed=sealed)
    verdict = flags if isinstance(flags, Refusal) else judge(case, name, None, flags)
    if isinstance(verdict, Refusal):
        return replace(here, there=target.placeholder, refusal=verdict)
    if isinstance(verdict, ResumedSend) and isinstance(flags, Flags):
        flags = target.flags or flags
        rest = sends(name, look_ahead(case, source, verdict.snapshot), verdict.snapshot, flags, _after(verdict))
        return replace(here, deeds=(verdict, *rest), comes=True, flags=flags)
    abort = (Abort(dataset=name, why=verdict.why, told=verdict.told),) if isinstance(verdict, Stale) else ()
    here, onto = replace(here, there=target.placeholder), target if target.placeholder else None
    return _begin(case, here, done, origin, onto=onto, before=abort)


def _begin(
    case: Case, here: Lane, done: Lanes, origin: str | None, *, onto: Dataset | None, before: tuple[Deed, ...] = ()
) -> Lane:
    """Plan a first send: a clone of its origin's copy, or full. `onto`: what exists; `before`: actions to run first."""
    source = case.world.source.datasets[here.name]
    ahead = look_ahead(case, source, None)
    if not ahead.picked:
        return replace(here, empty=True, deeds=before)
    if here.name and (blocks := done[parent_of(here.name)].blocks):
        # An empty dataset of ours above it would keep what is refused there from coming as what it is.
        why = f"{case.target_name(here.name)} waits for what lies above it"
        return replace(here, refusal=divergence.refuse_waiting(why, blocks))
    above = _cover_above(case, here.name, done)
    flags = first_flags(case, here.name, source, sealed=above is Cover.SEALED)
    if isinstance(flags, Refusal):
        return replace(here, refusal=flags)
    if onto and (refusal := divergence.refuse_in_the_way(case, here.name, source, onto, raw=flags.raw)):
        return _beside(case, here, refusal, done, origin)
    here = replace(here, comes=True, cover=Cover.RAW if flags.raw else below(above))
    start = clone_start(case, here.name, done, origin) if onto is None else None
    if isinstance(start, Refusal):
        return replace(here, comes=False, refusal=start)
    if start is not None:
        snapshot, flags = start
        why = f"a clone of {case.source_name(origin or '')}{snapshot.mark}, which the target holds by then"
        deeds = (*before, *sends(here.name, ahead, snapshot, flags, why, origin=origin))
        return replace(here, deeds=deeds, flags=flags)
    why = "the target holds nothing of it" if onto is None else "the target holds only its place, made by us and empty"
    encryption = encryption_below(above) if onto is None and not flags.raw else None
    deeds = (*before, *sends(here.name, ahead, None, flags, why, encryption=encryption))
    whole = f"{case.source_name(here.name)} is a clone, and sent whole: the target has not its origin {source.origin}"
    return replace(here, deeds=deeds, flags=flags, warnings=(whole,) if source.origin else ())


def _beside(case: Case, here: Lane, refusal: Refusal, done: Lanes, origin: str | None) -> Lane:
    """Return the refusal; or, where it was requested, a plan that renames the old copy and sends all again."""
    aside = divergence.set_aside(case, here.name, refusal)
    if isinstance(aside, Refusal):
        return replace(here, refusal=aside)
    for busy in case.world.receiving:
        if not here.name or busy.startswith(f"{here.name}/"):
            return replace(here, refusal=_refuse_busy(case, busy))
    lane = _begin(case, replace(here, base=None), done, origin, onto=None, before=(aside,))
    if lane.empty or lane.refusal:
        return replace(here, refusal=lane.refusal or refusal)
    return replace(lane, moved=True)


def _cover_above(case: Case, name: str, done: Lanes) -> Cover:
    """Return how the dataset above the copy is encrypted, as the copy would inherit it."""
    if name:
        return done[parent_of(name)].cover
    return Cover.SEALED if case.world.target.inherits_encryption else Cover.OPEN


def _cover_of(case: Case, target: Dataset) -> Cover:
    return Cover.OPEN if not target.encrypted else Cover.RAW if is_raw(case, target) else Cover.SEALED


def _parted(case: Case, name: str, base: Base, target: Dataset) -> tuple[str, ...]:
    """Return a warning about a target that diverged, while there is nothing to send."""
    own = f"has {show_count(len(base.own), 'snapshot')} of its own" if base.own else ""
    written = f"was written to ({show_size(target.written)})" if target.written else ""
    what = " and ".join(told for told in (own, written) if told)
    return (f"{case.target_name(name)} {what} since {base.there.mark}: the next send there will be refused",)
