"""Repair of damaged data in a copy, or in its source, from the other side.

Why no corrective receive (zfs receive -c): with OpenZFS 2.3.9 it repairs the blocks, but marks the given snapshot, even a sound
one, as inconsistent for ever: it can neither be mounted nor sent any more. Tried with and without -Lce.
"""

import shlex
from collections.abc import Iterator

from orchestrator.domain.point import Finding, Verdict
from orchestrator.engines.zfs.commands.commands import hinted_rename
from orchestrator.engines.zfs.plan.context import PlanContext

_MOST = 20


def explain_repair(case: PlanContext, copy: tuple[Finding, ...], source: tuple[Finding, ...]) -> tuple[str, ...]:
    """Return lines with the good side of damaged data and the exact commands. `copy`, `source`: the findings there."""
    lines = [*_of_copy(case, copy), *_of_source(case, source)]
    return tuple(dict.fromkeys(lines))[:_MOST]


def _damaged(case: PlanContext, findings: tuple[Finding, ...]) -> Iterator[tuple[str, str, str, int]]:
    """Yield (dataset, snapshot, file, guid) of unreadable or changed data in snapshots that both sides hold."""
    for finding in findings:
        dataset, at, rest = finding.path.decode("utf-8", "surrogateescape").partition("@")
        name, _, file = rest.partition("/")
        guid = _guid(case, dataset, name) if at else None
        if guid is not None and finding.verdict in (Verdict.UNREADABLE, Verdict.ROTTEN):
            yield dataset, name, file, guid


def _guid(case: PlanContext, dataset: str, name: str) -> int | None:
    """Return the guid of a snapshot that both sides hold, by its name on the target; None: there is none."""
    there = case.world.target.datasets.get(dataset)
    guid = next((one.guid for one in there.snapshots if one.name == name), None) if there else None
    here = case.world.source.datasets.get(dataset)
    return guid if here and any(one.guid == guid for one in here.snapshots) else None


def _of_copy(case: PlanContext, findings: tuple[Finding, ...]) -> Iterator[str]:
    target = case.world.target
    for dataset, name, _, guid in _damaged(case, findings):
        whole = target.full(dataset)
        rename = hinted_rename(whole, f"{whole}.damaged", target.datasets[dataset].kind, target)
        again = f"poolferry run {case.job.name}{'' if dataset else ' --aside'}"  # the root is looked for by its guid
        yield (
            f"{whole}@{name}: the source holds the same snapshot (guid {guid}): {rename} && {again} "
            "(it is sent again in full; the damaged copy stays until you destroy it)"
        )


def _of_source(case: PlanContext, findings: tuple[Finding, ...]) -> Iterator[str]:
    for dataset, name, file, guid in _damaged(case, findings):
        path = "/".join(part for part in (dataset, file) if part)
        words = ["poolferry", "restore", "run", case.job.name, "--point", name, *(["--path", path] if path else [])]
        told = f"{case.world.source.full(dataset)} as of @{name}" + (f", {file}" if file else "")
        yield f"{told}: the copy holds the same snapshot (guid {guid}): {shlex.join([*words, '--to', 'FOLDER'])}"
