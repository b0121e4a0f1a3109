"""Clones that were promoted: snapshots belong to another dataset than before, at the source or at the copy, by the same guids."""

from collections.abc import Iterator

from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.commands.commands import hinted_zfs_command
from orchestrator.engines.zfs.model import Dataset, Snapshot
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.divergence import ASIDE, begin_beside, other_source


def refuse_promoted(case: PlanContext, name: str, target: Dataset) -> Refusal | None:
    """Return the refusal of a dataset whose snapshots a promoted clone of it took over; None: it is no such one.

    It shares no snapshot with its copy; but what it is a clone of since then is there.
    """
    origin, inside = case.world.source.datasets[name].origin or "", case.origin(name)
    guid = inside[1].guid if inside else case.world.origins.get(origin)
    there = next((one for one in target.snapshots if one.guid == guid), None)
    if there is None or case.world.returning is not None:
        return None
    whole, other = case.source_name(name), origin.partition("@")[0]
    back = str(hinted_zfs_command("promote", whole, side=case.world.source))
    hint = f"to move them back, so that its copy goes on: {back}; then {case.command}"
    if not name and not inside:
        hint += f"; or, to copy {other} from now on, and go on with this copy: {other_source(case, other)}"
    return Refusal(
        why=f"the snapshots of {whole} belong to {other} now, which was a clone of it and was promoted",
        evidence=(
            f"{whole} is a clone of {origin} (guid {guid}), and {case.target_name(name)} holds that as {there.mark}",
        ),
        hint=f"{hint}; or, {begin_beside(case)}",
        guard=ASIDE,
        own=back,
    )


def explain_unpromoted(case: PlanContext) -> Iterator[str]:
    """Yield a warning for each copy that is still a clone, though what it is a copy of was promoted."""
    if case.world.returning is not None:
        return
    for name in case.names:
        if (origin := _former_origin(case, name)) is not None:
            promote = hinted_zfs_command("promote", case.target_name(name), side=case.world.target)
            what = f"{case.source_name(name)} was promoted, and its copy {case.target_name(name)} is still a clone of {origin}"
            yield f"{what}: older snapshots lie there; to have them as on the source: {promote}"


def _former_origin(case: PlanContext, name: str) -> str | None:
    """Return the snapshot that a copy is a clone of, where the source's dataset holds that itself."""
    origin = inherited_snapshots(case, name)
    if not origin:
        return None
    other, newest = origin[-1]
    ours = {one.guid for one in case.world.source.datasets[name].snapshots}
    return f"{case.target_name(other)}{newest.mark}" if newest.guid in ours else None


def inherited_snapshots(case: PlanContext, name: str) -> tuple[tuple[str, Snapshot], ...]:
    """Return the snapshots that a copy has from what it is a clone of, each with that dataset, oldest first."""
    there = case.world.target.datasets.get(name)
    whole, at, mark = (there.origin or "" if there else "").partition("@")
    root = case.world.target.root.path
    if not at or not f"{whole}/".startswith(f"{root}/"):
        return ()
    other = whole[len(root) + 1 :]
    owner = case.world.target.datasets.get(other)
    place = next((place for place, one in enumerate(owner.snapshots, 1) if one.name == mark), 0) if owner else 0
    if owner is None or not place:
        return ()
    return (*inherited_snapshots(case, other), *((other, one) for one in owner.snapshots[:place]))
