"""Datasets that were renamed on the source since they were sent: their copies are known by the guids of their snapshots."""

from collections.abc import Iterator, Mapping

from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import ActionPlan, CreatePlaceholder, Dataset, RenameCopy
from orchestrator.engines.zfs.plan.context import PlanContext, parent_dataset
from orchestrator.engines.zfs.plan.divergence import ASIDE, refuse_long_name
from orchestrator.engines.zfs.plan.increments import choose_snapshots, find_common_snapshot
from orchestrator.engines.zfs.plan.stages import Stages

FOLLOW = "follow-renames"  # allowed once, or consent in [zfs]


def find_renamed(case: PlanContext) -> dict[str, str]:
    """Return the former name of each renamed dataset, by its name now. None when all is to be sent anew beside the copies.

    Not where the former name has a dataset that shares snapshots with the copy, too: it was restored, or gave some to a clone that
    was promoted.
    """
    there = case.world.target.datasets
    if case.world.returning is not None or ASIDE in case.requested.allowed or all(name in there for name in case.names):
        return {}
    owners = case.owners | case.bookmark_owners
    found: dict[str, str] = {}
    for old, copy in there.items():
        new = next((owners[one.guid] for one in reversed(copy.snapshots) if one.guid in owners), old)
        if new != old and new in case.known and not _goes_on(case, old, new, copy):
            found.setdefault(new, old)
    return _free_in_the_end(found, there)


def _goes_on(case: PlanContext, old: str, new: str, copy: Dataset) -> bool:
    """Return whether a copy keeps its name: what has the former name shares snapshots with it, or the new name lies below it."""
    if not old or new.startswith(f"{old}/"):
        return True
    source = case.world.source.datasets.get(old)
    return source is not None and find_common_snapshot(source, copy) is not None


def _free_in_the_end(found: Mapping[str, str], there: Mapping[str, Dataset]) -> dict[str, str]:
    """Return the renames whose new name no copy has, or a copy that is renamed before; two that swap names are not."""
    free: dict[str, str] = {}
    left = dict(found)
    while ready := [new for new in left if new not in there or new in free.values()]:
        free |= {new: left.pop(new) for new in ready}
    return free


def follow_renames(case: PlanContext, renamed: Mapping[str, str]) -> ActionPlan | None:
    """Return the plan that renames copies, with consent: those whose new name is free now, and whose parent is there.

    The source is surveyed again after it, and the copies continue.
    """
    if not renamed or not may_follow(case):
        return None
    there = case.world.target.datasets
    places, moves = dict[str, CreatePlaceholder](), list[RenameCopy]()
    for new, old in sorted(renamed.items()):
        above = tuple(_ancestors(old))
        if new in there or f"{new}/".startswith(f"{old}/") or any(one in renamed.values() for one in above):
            continue  # not yet, or it comes along with what lies above it
        if refuse_long_rename(case, new, old):
            continue
        missing = [one for one in _ancestors(new) if one not in there]
        if any(choose_snapshots(case, case.world.source.datasets[one], None).picked for one in missing):
            continue  # that one is sent first
        places |= {one: CreatePlaceholder(dataset=one) for one in missing}
        why = f"{case.source_name(old)} is called {case.source_name(new)} now: their snapshots have the same guids"
        moves.append(RenameCopy(dataset=old, to=case.target_name(new), why=why, kind=there[old].kind))
    stages: Stages = (*((one,) for _, one in sorted(places.items())), tuple(moves))
    return ActionPlan(stages=stages, again=True) if moves else None


def may_follow(case: PlanContext) -> bool:
    """Return whether copies may be renamed."""
    return case.options.follow_renames or FOLLOW in case.requested.allowed


def _ancestors(name: str) -> Iterator[str]:
    """Yield the datasets above one, the root first."""
    parts = name.split("/")
    yield from (("", *("/".join(parts[:depth]) for depth in range(1, len(parts)))) if name else ())


def refuse_renamed(case: PlanContext, new: str, old: str) -> Refusal:
    """Return the refusal of a first send of a dataset that has a copy under its former name."""
    copy = case.world.target.datasets[old]
    known = case.owners | case.bookmark_owners
    newest = next(one for one in reversed(copy.snapshots) if one.guid in known)
    promoted = (case.origin(old) or ("",))[0] == new if old in case.world.source.datasets else False
    before, now, again = case.source_name(old), case.source_name(new), case.command
    why = f"the copy of {now} is called {case.target_name(old)}: {now} was {before} before, or the copy was renamed"
    if promoted:
        why = f"{now} has the snapshots of {before}, which gave them to it by zfs promote, and its copy is still called {case.target_name(old)}"
    return Refusal(
        why=why,
        evidence=(f"{newest.mark} (guid {newest.guid}) of that copy is one of {case.source_name(new)}",),
        hint=f"to rename the copy: {again} --allow {FOLLOW}, or for all times follow-renames = true in [zfs]; "
        f"to send all again beside it: {again} --{ASIDE}",
        guard=FOLLOW,
    )


def refuse_long_rename(case: PlanContext, new: str, old: str) -> Refusal | None:
    """Return the refusal of a rename that zfs would refuse: of the copy, or of one below it, the new name is too long, or too deep."""
    refusals = (
        refuse_long_name(case, f"{new}{name[len(old) :]}", one.snapshots)
        for name, one in case.world.target.datasets.items()
        if f"{name}/".startswith(f"{old}/")
    )
    return next((refusal for refusal in refusals if refusal), None)


def refuse_parent_first(case: PlanContext, new: str, old: str) -> Refusal:
    """Return the refusal of a rename whose new parent is not on the target."""
    return Refusal(
        why=f"{case.target_name(old)} cannot be renamed to {case.target_name(new)} before {case.target_name(parent_dataset(new))} is there",
        evidence=(),
        hint=f"run again once that one is copied: {case.command}",
    )
