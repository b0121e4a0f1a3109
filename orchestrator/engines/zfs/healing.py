"""How damaged data of a copy, or of its source, are healed from the other side.

Source: zfs-receive(8): -c repairs blocks whose checksums fail from a stream of the same snapshot, by guid; since OpenZFS 2.2.

Pure.
"""

from collections.abc import Iterator

from orchestrator.domain.command import Command, Effect, Pipeline
from orchestrator.domain.point import Finding, Verdict
from orchestrator.engines.zfs.case import Case
from orchestrator.engines.zfs.words import Side

_SINCE = (2, 2)
_MOST = 20


def heal(case: Case, copy: tuple[Finding, ...], source: tuple[Finding, ...]) -> tuple[str, ...]:
    """Lines with the good side of each damaged snapshot and the exact command. `copy`, `source`: what was found there."""
    here, there = case.world.source, case.world.target
    lines = [
        *_of(case, copy, good=here, bad=there, called="source"),
        *_of(case, source, good=there, bad=here, called="copy"),
    ]
    return tuple(dict.fromkeys(lines))[:_MOST]


def _of(case: Case, findings: tuple[Finding, ...], *, good: Side, bad: Side, called: str) -> Iterator[str]:
    for finding in findings:
        dataset, at, rest = finding.path.decode("utf-8", "surrogateescape").partition("@")
        name = rest.partition("/")[0]
        if not at or finding.verdict not in (Verdict.UNREADABLE, Verdict.ROTTEN):
            continue
        pair = _pair(case, dataset, name, swapped=bad is case.world.source)
        if pair is None:
            continue
        good_name, bad_name, guid = f"{good.full(dataset)}@{pair[0]}", f"{bad.full(dataset)}@{pair[1]}", pair[2]
        told = f"the {called} holds the same snapshot (guid {guid})"
        if finding.verdict is Verdict.ROTTEN:
            yield f"{bad_name}: {told}; its checksums hold, so only a new copy heals it: poolferry run {case.job.name} --aside"
        elif bad.version < _SINCE:
            version = ".".join(map(str, bad.version)) or "unknown"
            yield f"{bad_name}: {told}; OpenZFS there is {version}, and heals since 2.2: poolferry run {case.job.name} --aside"
        else:
            raw = case.world.target.datasets[dataset].encrypted
            yield f"{bad_name}: {told}: {_pipeline(good, good_name, bad, bad_name, raw=raw)}"


def _pair(case: Case, dataset: str, name: str, *, swapped: bool) -> tuple[str, str, int] | None:
    """The snapshot's name on the good side and on the bad one, and the guid that makes them one. Findings use the target's."""
    source, target = case.world.source.datasets.get(dataset), case.world.target.datasets.get(dataset)
    there = next((one for one in target.snapshots if one.name == name), None) if target else None
    here = next((one for one in source.snapshots if there and one.guid == there.guid), None) if source else None
    if here is None or there is None:
        return None
    return (there.name, here.name, there.guid) if swapped else (here.name, there.name, there.guid)


def _pipeline(good: Side, snapshot: str, bad: Side, damaged: str, *, raw: bool) -> Pipeline:
    send = ("zfs", "send", *(("-w",) if raw else ()), snapshot)
    receive = ("zfs", "receive", "-c", damaged)
    return Pipeline(
        stages=(
            Command(argv=send, effect=Effect.READS, host=good.root.host),
            Command(argv=receive, effect=Effect.WRITES, host=bad.root.host),
        )
    )
