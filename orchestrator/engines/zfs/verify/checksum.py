"""Steps that list a snapshot with digests on both sides, to compare contents; no content is transferred.

A snapshot is mounted read-only in a temporary folder, in a mount namespace of its own: the mount ends with the reader, even a
killed one, and no other process ever sees it.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

from orchestrator.domain.command_line import quoted
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect, Pipeline, Step
from orchestrator.domain.point import Finding, Verdict
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.comparison import ComparisonPlan, SnapshotPair
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.model import DatasetType, SideSurvey, ZfsSurvey
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.verify.compare import GuidComparison, MatchedSnapshot, snapshot_path

XXH128, SHA256 = "xxh128", "sha256"
_LOCKED = "it is encrypted and its key is not loaded on both sides: only a scrub and a trial receive can verify it"
_HIDDEN = "its snapshots have no device: `zfs set snapdev=visible` on both sides shows them"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecksumSupport:
    """The abilities of one side. `digests`: all besides sha256; `visible`: volumes whose snapshots have a device."""

    digests: frozenset[str] = frozenset()
    visible: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonSurvey:
    """The input of a comparison. `able`: abilities of source and target; None: contents are not requested.

    `away`: why the source could not be surveyed; its side is then empty and unknown.
    """

    world: ZfsSurvey
    able: tuple[ChecksumSupport, ChecksumSupport] | None
    away: str = ""


def checksum_support_command(root: Location) -> Command:
    """Build the command that prints a side's abilities for a comparison."""
    return commands.script_command(
        "checksum-support.sh", root.path, effect=Effect.READS, where=CommandHost(host=root.host)
    )


def parse_checksum_support(lines: Iterable[bytes], root: Location) -> ChecksumSupport:
    """Parse the abilities that a side printed."""
    digests, visible = set[str](), set[str]()
    for line in lines:
        text = line.decode("utf-8", "surrogateescape")
        name, _, value = text.partition("\t")
        if text.startswith("=can "):
            digests.add(text.removeprefix("=can "))
        elif value == "visible":
            visible.add(name[len(root.path) + 1 :])
    return ChecksumSupport(digests=frozenset(digests), visible=frozenset(visible))


def checksum_list_command(snapshot: str, kind: DatasetType, algorithm: str, workers: int, side: SideSurvey) -> Command:
    """Build the command that lists one snapshot with digests."""
    return mount_namespace_command(
        "list-volume.sh" if kind is DatasetType.VOLUME else "list-tree.sh", (snapshot, algorithm, str(workers)), side
    )


def mount_namespace_command(name: str, values: tuple[str, ...], side: SideSurvey) -> Command:
    """Build the command of a script that calls work-alone.sh, in a mount namespace of its own."""
    return commands.namespace_command(
        name, *values, effect=Effect.WRITES, host=side.root.host, sudo=side.sudo, with_functions="work-alone.sh"
    )


def plan_checksums(job: Job, both: ComparisonSurvey, judged: GuidComparison, request: RunRequest) -> ComparisonPlan:
    """Plan the comparison, with steps that read the contents, where requested and possible."""
    unproved = () if both.able is None else tuple(_unproved(both, judged.newest))
    left_out = {finding.path for finding in unproved}
    told = [one for one in judged.newest if snapshot_path(one.dataset, one.target) not in left_out]
    return ComparisonPlan(
        point=judged.point,
        checked=judged.checked,
        datasets=len(judged.newest),
        findings=(*judged.findings, *unproved),
        stages=tuple(_stages(job, both, told, request)),
        warnings=(*judged.warnings, *_warnings(unproved, both.world)),
        lacking=judged.lacking,
    )


def _unproved(both: ComparisonSurvey, newest: Iterable[MatchedSnapshot]) -> Iterator[Finding]:
    """Yield a finding for each dataset whose contents cannot be read on both sides."""
    sides = (both.world.source, both.world.target)
    for one in newest:
        datasets = [side.datasets[one.dataset] for side in sides]
        detail = None
        if any(dataset.encrypted and not dataset.key_loaded for dataset in datasets):
            detail = _LOCKED
        elif datasets[0].kind is DatasetType.VOLUME and not all(
            one.dataset in able.visible for able in both.able or ()
        ):
            detail = _HIDDEN
        if detail is not None:
            yield Finding(path=snapshot_path(one.dataset, one.target), verdict=Verdict.UNPROVED, detail=detail)


def _warnings(unproved: Iterable[Finding], world: ZfsSurvey) -> Iterator[str]:
    """Yield one warning for each reason."""
    pool = world.target.root.path.partition("/")[0]
    for detail, found in groupby(sorted(unproved, key=lambda each: each.detail), key=lambda each: each.detail):
        count = len(tuple(found))
        if detail == _LOCKED:
            yield (
                f"the contents of {show_count(count, 'encrypted dataset')} were not compared, as a key is not loaded: "
                f"only a scrub (zpool scrub {quoted(pool)}) and a trial receive with the key can verify them"
            )
        else:
            yield f"the contents of {show_count(count, 'volume')} were not compared: {_HIDDEN.replace('its', 'their', 1)}"


def _stages(
    job: Job, both: ComparisonSurvey, newest: list[MatchedSnapshot], request: RunRequest
) -> Iterator[tuple[SnapshotPair, ...]]:
    """Yield stages with as many parallel datasets as the job allows; each stage is compared before the next begins."""
    if both.able is None:
        return
    share = XXH128 if all(XXH128 in able.digests for able in both.able) and job.verify.digest == XXH128 else SHA256
    wide = options_of(job).parallel
    for first in range(0, len(newest), wide):
        group = newest[first : first + wide]
        yield tuple(_pair(job, both.world, one, share, f"{request.notes}/{at}") for at, one in enumerate(group))


def _pair(job: Job, world: ZfsSurvey, one: MatchedSnapshot, algorithm: str, note: str) -> SnapshotPair:
    kind, name = world.source.datasets[one.dataset].kind, snapshot_path(one.dataset, one.target)

    def listed(side: SideSurvey, mark: str, called: str) -> Step:
        snapshot = side.full(one.dataset) + mark
        command = checksum_list_command(snapshot, kind, algorithm, job.verify.workers, side)
        return Step(
            action=f"read {snapshot} on the {called}", why="its contents are compared with the other side's",
            worker=f"{snapshot} on the {called}", work=Pipeline(stages=(command,), keeps=f"{note}-{called}"), expected=None,
        )  # fmt: skip

    return SnapshotPair(
        name=name,
        source=listed(world.source, one.source.mark, "source"),
        target=listed(world.target, one.target.mark, "target"),
    )
