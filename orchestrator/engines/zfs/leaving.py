"""Looks at a pool that is going to be destroyed, and at what copies hold of it, all by guid. Reads."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from orchestrator.domain.command import Command, Effect
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.domain.leaving import Held, PoolSeen
from orchestrator.domain.place import Location
from orchestrator.engines.contract import Asked
from orchestrator.engines.zfs import commands, rooting
from orchestrator.engines.zfs.commands import At
from orchestrator.engines.zfs.parse import Unreadable
from orchestrator.engines.zfs.survey import run, survey, understood
from orchestrator.engines.zfs.words import Side
from orchestrator.process.executor import Reader

# Argument: the pool. Nothing of one that is not there, but the end.
_POOL = r"""
e=$(zpool list -H -o name "$1" 2>&1) || case $e in *"no such pool"*) printf "=end\n"; exit 0;; *) printf "%s\n" "$e" >&2; exit 1;; esac
printf "=datasets\n"; zfs list -Hp -r -t filesystem,volume -o name,type,guid,written,poolferry:flags,poolferry:placeholder "$1" || exit
printf "=snapshots\n"; zfs list -Hp -r -t snapshot -s createtxg -o name,guid "$1" || exit
printf "=end\n"
"""


def survey_pool(pool: str, reader: Reader) -> PoolSeen:
    """All datasets of a pool of this machine with their snapshots; none where it is not imported. Raises: OrchestratorError."""
    command = pool_command(pool)
    result = run(reader, command)
    seen = understood(command, result, lambda: parse_pool(pool, result.stdout.decode("utf-8", "surrogateescape")))
    return replace(seen, datasets=tuple(_looked_into(one, reader) for one in seen.datasets))


def pool_command(pool: str) -> Command:
    """Prints the datasets and snapshots of a pool."""
    return commands.script(_POOL, pool, effect=Effect.READS, where=At())


def parse_pool(pool: str, text: str) -> PoolSeen:
    """What the command printed. Raises: ValueError for a listing that did not come to its end."""
    part, datasets, snapshots = "", dict[str, list[str]](), dict[str, list[tuple[str, int]]]()
    for line in text.splitlines():
        if line.startswith("="):
            part = line
        elif part == "=datasets":
            name, *rest = line.split("\t")
            datasets[name] = rest
        elif part == "=snapshots":
            whole, guid = line.split("\t")
            dataset, _, mark = whole.partition("@")
            snapshots.setdefault(dataset, []).append((mark, int(guid)))
    if part != "=end":
        raise Unreadable("the listing ended too early")
    return PoolSeen(
        name=pool, datasets=tuple(_held(name, rest, snapshots.get(name)) for name, rest in datasets.items())
    )


def _held(name: str, rest: list[str], snapshots: Iterable[tuple[str, int]] | None) -> Held:
    kind, guid, written, flags, placeholder = rest
    return Held(
        name=name, volume=kind == "volume", guid=int(guid), snapshots=tuple(snapshots or ()),
        written=int(written) if written.isdigit() else 0, unsettled="b" in flags or placeholder == "on",
    )  # fmt: skip


def _looked_into(one: Held, reader: Reader) -> Held:
    """The same with whether it is empty, where no snapshot is there to tell of it. What cannot be read is not empty."""
    if one.snapshots or one.volume:
        return one
    side = Side(root=Location(path=one.name), pool_guid=0, version=())
    try:
        inside = rooting.parse_inside(run(reader, rooting.inside_command(side)).stdout)
    except OrchestratorError:
        return one
    return replace(one, empty=not inside)


def survey_held(job: Job, asked: Asked, reader: Reader) -> Mapping[str, frozenset[int]]:
    """The guids that the copy holds, by whole name of the source's dataset; not of what is cut. Raises: OrchestratorError."""
    target = survey(job, asked, reader, whole=True).target
    root = job.source.path
    return {
        (f"{root}/{name}" if name else root): frozenset(snapshot.guid for snapshot in one.snapshots)
        for name, one in target.datasets.items()
    }
