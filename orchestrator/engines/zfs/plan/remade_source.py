"""A source that was made anew since the last good run, and not restored: nothing may take its emptiness for news."""

import json

from orchestrator.domain.place import parse_location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.source_identity import (
    SOURCE_IDENTITY,
    SourceIdentity,
    SourceState,
    is_made_anew,
    parse_identity,
)
from orchestrator.domain.units import show_count
from orchestrator.engines.zfs.model import SideSurvey
from orchestrator.engines.zfs.plan.common_snapshot import find_common_snapshot
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.divergence import ASIDE


def source_identity(source: SideSurvey) -> SourceIdentity:
    """Return the identity of a surveyed source, which has its root dataset."""
    return SourceIdentity(dataset=source.datasets[""].guid, pool=source.pool_guid, root=str(source.root))


def identity_of_kit(content: str) -> SourceIdentity | None:
    """Return the identity of a source as its recovery kit records it, without the pool's guid; None: it does not."""
    kit = json.loads(content)  # from our own history
    source = str(kit.get("source", ""))
    told = kit.get("datasets", {}).get(parse_location(source).path, {}) if source else {}
    guid = str(told.get("guid", {}).get("value", ""))
    return SourceIdentity(dataset=int(guid), pool=0, root=source) if guid.isdecimal() else None


def refuse_remade(case: PlanContext) -> Refusal | None:
    """Return a refusal when the source was made anew, and holds no snapshot that its copy holds too.

    With one it was restored, by whatever tool, and its copies continue.
    """
    source, target = case.world.source, case.world.target
    remembered = case.requested.remembered.get(SOURCE_IDENTITY, "")
    known = parse_identity(remembered)
    if known is None or case.world.returning is not None or ASIDE in case.requested.allowed:
        return None
    now = source_identity(source)
    if not is_made_anew(remembered, now.root, now.dataset) or _is_restored(case):
        return None
    pool = source.root.path.partition("/")[0]
    if known.pool in (0, now.pool):
        why, anew = (
            f"{now.root} was made anew since the last run, and is not what was copied",
            f"; or, to begin anew with it: {case.command} --{ASIDE}" if known.pool else "",
        )
    else:
        why, anew = f"the pool {pool} was made anew since the last run, and {now.root} is not what was copied", ""
    held = sum(len(dataset.snapshots) for dataset in target.datasets.values())
    evidence = (
        f"guid of the dataset: {known.dataset} at the last run, {now.dataset} now",
        f"guid of the pool: {known.pool} at the last run, {now.pool} now" if known.pool else "",
        f"{target.root} holds {show_count(held, 'snapshot')} of what was there" if held else "",
    )
    return Refusal(
        why=why,
        evidence=tuple(line for line in evidence if line),
        hint=f"{restore_first(case)}{anew}",
        guard=ASIDE if anew else None,
        source=SourceState.ANEW,
    )


def _is_restored(case: PlanContext) -> bool:
    source, target = case.world.source.datasets, case.world.target.datasets
    return any(find_common_snapshot(source[name], target[name]) is not None for name in case.names if name in target)


def restore_first(case: PlanContext) -> str:
    """Return the hint that brings the source back; a dataset that has its name by now is kept under another one."""
    source = case.world.source
    command = f"restore it first: poolferry restore run {case.job.name} --to {source.root}"
    aside = "" in source.datasets and "/" in source.root.path
    return f"{command} --{ASIDE} (what is there now stays, under another name)" if aside else command
