"""The texts of a decision for a person: summary, resumed sends, warnings, refusals."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from orchestrator.domain.command_line import quoted
from orchestrator.domain.plan import Refusal, gather_hints
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.zfs.model import (
    AbortReceive,
    Action,
    ActionPlan,
    EndReceive,
    FullSend,
    IncrementalSend,
    RenameAside,
    RenameCopy,
    ResumedSend,
    Rollback,
    TakeOverCopy,
)
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.dataset_plan import DatasetPlan
from orchestrator.engines.zfs.plan.hold_names import fits_bookmark
from orchestrator.engines.zfs.plan.holds import NO_BOOKMARKS
from orchestrator.engines.zfs.plan.promotions import explain_unpromoted
from orchestrator.engines.zfs.plan.take_over import explain_take_over, find_foreign_copies

_SHOWN = 5
_LISTED = 50


def summary_of(decided: ActionPlan) -> str:
    """Return a summary of the plan in one line."""
    first: dict[str, Action] = {}
    more: Counter[type] = Counter()
    for action in (action for stage in decided.stages for action in stage):
        if isinstance(action, FullSend | IncrementalSend | ResumedSend):
            first.setdefault(action.dataset, action)
        more[type(action)] += 1
    ways = Counter(type(action) for action in first.values())
    told = [f"{ways[kind]} {word}" for kind, word in _WAYS if ways[kind]]
    sent = [f"send {show_count(len(first), 'dataset')}: {', '.join(told)}"] if first else []
    return "; ".join(sent + [f"{word} {more[kind]}" for kind, word in _MORE if more[kind]])


_WAYS = ((ResumedSend, "from where it was cut"), (FullSend, "whole"), (IncrementalSend, "with what is new"))
_MORE = (
    (Rollback, "roll back"),
    (RenameAside, "rename away"),
    (RenameCopy, "rename copies as their sources were renamed:"),
    (TakeOverCopy, "take over copies of another program:"),
    (AbortReceive, "throw away cut receives:"),
    (EndReceive, "end receives whose link is dead:"),
)


def resumes_of(case: PlanContext, dataset_plans: Iterable[DatasetPlan]) -> str | None:
    """Return a sentence on the interrupted sends that this run resumes."""
    cut = [
        action for dataset_plan in dataset_plans for action in dataset_plan.actions if isinstance(action, ResumedSend)
    ]
    if not cut:
        return None
    first = cut[0]
    told = f"a cut send of {first.snapshot.mark} to {case.target_name(first.dataset)}, {show_size(first.token.bytes)} there"
    return told + (f", and {len(cut) - 1} more" if len(cut) > 1 else "")


def warnings_of(case: PlanContext, dataset_plans: Sequence[DatasetPlan]) -> tuple[str, ...]:
    """Return the warnings for a person; they stop nothing."""
    warnings = [warning for dataset_plan in dataset_plans for warning in dataset_plan.warnings]
    bare = [
        dataset_plan.name
        for dataset_plan in dataset_plans
        if dataset_plan.empty and not case.world.source.datasets[dataset_plan.name].snapshots
    ]
    unfit = [
        dataset_plan.name
        for dataset_plan in dataset_plans
        if dataset_plan.empty and case.world.source.datasets[dataset_plan.name].snapshots
    ]
    if bare:
        what = f"{_named(case.source_name(name) for name in bare)}: no snapshot, so nothing to send"
        warnings.append(f"{what}; take one (zfs snapshot), or let [snapshots] in the job take them")
    if unfit:
        what = f"{_named(case.source_name(name) for name in unfit)}: no snapshot that the job sends"
        warnings.append(f"{what}; look at snapshots and skip-snapshots in [zfs]")
    if left := find_foreign_copies(case, dataset_plans):
        warnings.append(f"{_named(map(case.target_name, left))}: {explain_take_over(case, left)}")
    waits = [name for name in case.names if case.world.source.datasets[name].waits]
    if waits and case.world.returning is None:
        each = (
            "waits for a key or for its mountpoint" if len(waits) == 1 else "each waits for a key or for its mountpoint"
        )
        what = f"{_named(case.source_name(name) for name in waits)}: restored, and {each}"
        warnings.append(f"{what}: poolferry restore run {case.job.name} --to {quoted(str(case.world.source.root))}")
    warnings += [
        *explain_set_aside(case),
        *explain_unpromoted(case),
        *_kept_aside(case, dataset_plans),
        *_without_bookmarks(case, dataset_plans),
    ]
    if case.options.recursive and (gone := [name for name in case.gone if name not in case.kept_aside]):
        what = f"{_named(case.target_name(name) for name in gone)}: on the target only"
        warnings.append(f"{what}; the source has no such dataset, and the copy is left alone")
    if case.options.recursive and case.kept_aside and case.world.returning is None:
        what = f"{_named(case.target_name(name) for name in case.kept_aside)}: set aside by --aside"
        warnings.append(f"{what}; the job leaves it alone, and it takes room until somebody destroys it")
    return tuple(warnings)


def explain_set_aside(case: PlanContext) -> Iterator[str]:
    """Yield a warning on datasets that a restore set aside below the source, with the line that sends them, too."""
    if names := tuple(map(case.source_name, case.set_aside)):
        what = f"{_named(names)}: set aside by --aside, and so not copied"
        yield f"{what}; to copy it, too: set-aside = true in [zfs] of {case.job.file}"


def _kept_aside(case: PlanContext, dataset_plans: Iterable[DatasetPlan]) -> Iterator[str]:
    """Yield a warning, with a copy's first send, on properties that its copy does not take."""
    if not case.options.properties or case.world.returning is not None:
        return
    found: dict[tuple[str, ...], list[str]] = {}
    for one in dataset_plans:
        burdens = case.world.source.datasets[one.name].burdens
        if burdens and any(_is_first(action) for action in one.actions):
            values = tuple(f"{name}={value}" for name, value in burdens.items())
            found.setdefault(values, []).append(case.source_name(one.name))
    for values, names in found.items():
        what = f"{_named(names)}: {', '.join(values)} would weaken the copy, or burden its pool"
        yield f"{what}; the copy keeps it aside, as it does with mountpoints, and a restore sets it again"


def _is_first(action: Action) -> bool:
    return isinstance(action, FullSend) or (isinstance(action, IncrementalSend) and action.origin is not None)


def _without_bookmarks(case: PlanContext, dataset_plans: Iterable[DatasetPlan]) -> Iterator[str]:
    if NO_BOOKMARKS in case.requested.allowed and case.world.returning is not None:
        return  # the restore itself says why
    if NO_BOOKMARKS in case.requested.allowed:
        what = f"no bookmark and no hold is made on the source, as --allow {NO_BOOKMARKS} asks"
        yield f"{what}; keep the newest snapshot that both sides hold, as the next send starts from it"
        return
    names = [one.name for one in dataset_plans if one.actions and not fits_bookmark(case.source_name(one.name))]
    if names:
        what = f"{_named(map(case.source_name, names))}: the name is too long for a bookmark of ours beside it"
        yield f"{what}; keep the newest snapshot that both sides hold, as the next send starts from it"


def _named(names: Iterable[str]) -> str:
    """Return the first few of several names, with their count."""
    told = tuple(names)
    front = f"{len(told)} datasets: " if len(told) > 1 else ""
    return front + ", ".join(told[:_SHOWN]) + (" …" if len(told) > _SHOWN else "")


def gather_refusals(refusals: Sequence[Refusal], datasets: int) -> Refusal:
    """Combine several refusals into one, when there is nothing else to do."""
    first = refusals[0]
    if datasets == 1:
        return first
    others = len(refusals) - 1
    rest = datasets - len(refusals)
    evidence = _evidence(refusals) if others else first.evidence
    tail = f"; {show_count(others, 'more refusal')}" if others else ""
    nothing = f"; nothing else is to be done for the other {rest}" if rest else ""
    guards = {one.guard for one in refusals}
    guard = guards.pop() if len(guards) == 1 else first.guard
    return Refusal(why=f"{first.why}{tail}{nothing}", evidence=evidence, hint=gather_hints(refusals), guard=guard)


def _evidence(refusals: Sequence[Refusal]) -> tuple[str, ...]:
    """Return the reason of every refusal; the first few with their evidence."""
    lines: list[str] = []
    for place, one in enumerate(refusals[:_LISTED]):
        lines += [one.why, *(f"  {told}" for told in one.evidence if place < _SHOWN)]
    more = (f"and {len(refusals) - _LISTED} more",) if len(refusals) > _LISTED else ()
    return (*lines, *more)
