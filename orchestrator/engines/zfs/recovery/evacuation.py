"""Surveys of a pool that will be destroyed, and of its data on copies, all by guid."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import chain

from orchestrator.domain.answers import instant_at
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.evacuation import PoolContents, PoolDataset
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import check_zfs_names, unescape_mount_path
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.model import FLAGS, PLACEHOLDER, WAITS, SideSurvey, ZfsSurvey
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.recovery import pool_consumers as resting
from orchestrator.engines.zfs.restore import pool_root as rooting
from orchestrator.engines.zfs.survey.parse import UnreadableListing
from orchestrator.engines.zfs.survey.survey import parse_result, run_read_command, survey
from orchestrator.process.executor import Reader


def survey_pool(pool: str, reader: Reader) -> PoolContents:
    """Return all datasets and snapshots of a local pool; none if it is not imported. Raises: OrchestratorError."""
    command = pool_command(pool)
    result = run_read_command(reader, command)
    seen = parse_result(command, result, lambda: parse_pool(pool, result.stdout.decode("utf-8", "surrogateescape")))
    return replace(seen, datasets=tuple(_looked_into(one, reader) for one in seen.datasets))


def pool_command(pool: str) -> Command:
    """Build the command that prints the datasets and snapshots of a pool."""
    return commands.script_command("look-at-pool.sh", pool, effect=Effect.READS, where=CommandHost())


def parse_pool(pool: str, text: str) -> PoolContents:
    """Parse the output of `pool_command`. Raises: ValueError for an incomplete listing."""
    part, datasets, snapshots = "", dict[str, list[str]](), dict[str, list[tuple[str, int]]]()
    owned: dict[tuple[str, str], str] = {}
    others: dict[str, list[str]] = {}
    taken, mounts = dict[int, datetime](), list[tuple[str, str]]()
    for line in text.split("\n"):
        if line.startswith("="):
            part = line
        elif part == "=datasets":
            name, *rest = line.split("\t")
            datasets[name] = rest
        elif part == "=owned":
            name, kind, value = line.split("\t", 2)  # a mount point may hold a TAB
            owned[name, kind] = value.rstrip(" ")
        elif part == "=snapshots":
            whole, guid, creation = line.split("\t")
            dataset, _, mark = whole.partition("@")
            snapshots.setdefault(dataset, []).append((mark, int(guid)))
            taken[int(guid)] = instant_at(int(creation))
        elif part == "=mounts":
            what, _, at = line.partition(" ")
            mounts.append((unescape_mount_path(what), unescape_mount_path(at)))
        elif line:
            others.setdefault(part, []).append(line)
    if part != "=end":
        raise UnreadableListing("the listing ended too early")
    check_zfs_names(chain(datasets, snapshots, (mark for many in snapshots.values() for mark, _ in many)))
    held = tuple(_pool_dataset(name, told, owned, snapshots.get(name)) for name, told in datasets.items())
    volumes = (one.name for one in held if one.volume)
    return PoolContents(
        name=pool, datasets=held, taken=taken, mounts=tuple(mounts), unmounted=tuple(_unmounted(datasets, owned)),
        guests=resting.find_guest_pools(pool, datasets, volumes, resting.parse_storage_layers(others, mounts)),
    )  # fmt: skip


def _pool_dataset(
    name: str, rest: list[str], owned: Mapping[tuple[str, str], str], snapshots: Iterable[tuple[str, int]] | None
) -> PoolDataset:
    kind, guid, written, _, _ = rest
    flags, placeholder, waits = (owned.get((name, mark), "") for mark in (FLAGS, PLACEHOLDER, WAITS))
    return PoolDataset(
        name=name, volume=kind == "volume", guid=int(guid), snapshots=tuple(snapshots or ()),
        written=int(written) if written.isdigit() else 0, unsettled="b" in flags or "on" in (placeholder, waits),
    )  # fmt: skip


def _unmounted(datasets: Mapping[str, list[str]], owned: Mapping[tuple[str, str], str]) -> Iterator[tuple[str, str]]:
    for name, (*_, canmount, mounted) in datasets.items():
        mountpoint = owned.get((name, "mountpoint"), "")
        if (canmount, mounted) == ("on", "no") and mountpoint.startswith("/"):
            yield name, mountpoint


def _looked_into(one: PoolDataset, reader: Reader) -> PoolDataset:
    """Return the dataset with `empty` filled in, if it has no snapshots. An unreadable one is not empty."""
    if one.snapshots or one.volume:
        return one
    side = SideSurvey(root=Location(path=one.name), pool_guid=0, version=())
    try:
        inside = rooting.parse_inside(run_read_command(reader, rooting.inside_command(side)).stdout)
    except OrchestratorError:
        return one
    return replace(one, empty=not inside)


def survey_copy_guids(job: Job, request: RunRequest, reader: Reader) -> Mapping[str, frozenset[int]]:
    """Return the guids that the copy holds, by source dataset; not of partial receives.

    Raises: OrchestratorError, also for a copy on the source's own pool, by any name of its host: it would be destroyed with it.
    """
    world = survey(job, request, reader, whole=True)
    if is_same_pool(world):
        raise OrchestratorError("it lies on this very pool", hint="copy to another pool")
    target, root = world.target, job.source.path
    return {
        (f"{root}/{name}" if name else root): frozenset(snapshot.guid for snapshot in one.snapshots)
        for name, one in target.datasets.items()
    }


def is_same_pool(world: ZfsSurvey) -> bool:
    """Return whether both sides lie on the same pool. A missing pool has no guid."""
    return bool(world.source.pool_guid) and world.source.pool_guid == world.target.pool_guid


def survey_source_guids(job: Job, request: RunRequest, reader: Reader) -> Mapping[str, frozenset[int]]:
    """Return the guids that the source holds and the job copies, by full dataset name. Raises: OrchestratorError."""
    case = PlanContext(job, survey(job, request, reader, whole=True), request)
    there = case.world.source.datasets
    return {
        case.source_name(name): frozenset(one.guid for one in there[name].snapshots if case.fits(one))
        for name in case.names
        if name in there
    }
