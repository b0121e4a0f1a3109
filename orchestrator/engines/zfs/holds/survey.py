"""Our holds and bookmarks on a pool: the command that lists them, and the parser of its output."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain

from orchestrator.domain.answers import instant_at
from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.job import Job
from orchestrator.domain.names import check_zfs_names
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.plan.hold_names import (
    ReplicationTargetId,
    hold_bookmark_name,
    parse_cursor_bookmark,
    parse_hold_bookmark,
    parse_hold_tag,
)
from orchestrator.engines.zfs.survey.parse import UnreadableListing, parse_number

HOLDS, BOOKMARKS = "hold", "bookmark"


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldOrBookmark:
    """Our hold or bookmark. `target_id`: its replication target id; `beside`: the bookmark that belongs to a hold.

    `since`: of a bookmark, when its snapshot was taken.
    """

    kind: str
    dataset: str
    name: str
    target_id: ReplicationTargetId
    since: datetime | None = None
    bytes: int | None = None
    beside: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPins:
    """The survey of one pool, on behalf of a job. `pools`: all that are imported on its machine, by guid.

    `guids`: of all snapshots, by dataset.
    """

    root: Location
    job: Job
    pools: Mapping[int, str]
    found: tuple[HoldOrBookmark, ...] = ()
    sudo: bool = False
    guids: Mapping[str, frozenset[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PinSurvey:
    """The survey of all pools that could be read, and why others could not."""

    pools: tuple[PoolPins, ...]
    unseen: tuple[tuple[Location, str], ...]


def pools_of_jobs(jobs: Iterable[Job]) -> dict[Location, Job]:
    """Return the pools to survey, sources first, each with a job on whose behalf."""
    known = tuple(jobs)
    sides = [(job.source, job) for job in known] + [(job.target.location, job) for job in known]
    found: dict[Location, Job] = {}
    for side, job in sides:
        found.setdefault(pool_of(side), job)
    return found


def pool_of(location: Location) -> Location:
    """Return the pool of a dataset."""
    return Location(path=location.path.partition("/")[0], host=location.host)


def holds_command(pool: Location) -> Command:
    """Build the command that prints a pool's bookmarks, its held snapshots and their holds, and the imported pools."""
    where = CommandHost(host=pool.host)
    return commands.script_command(
        "holds.sh", pool.path, effect=Effect.READS, where=where, with_functions=commands.HOLD_FUNCTIONS
    )


def parse_holds(lines: Iterable[bytes], pool: Location, job: Job) -> PoolPins:
    """Parse the output of `holds_command`. Raises: UnreadableListing."""
    parts: dict[str, list[str]] = {}
    part, user = "", ""
    for line in lines:
        text = line.decode("utf-8", "surrogateescape")
        if text.startswith("=user "):
            user = text.removeprefix("=user ")
        elif text.startswith("="):
            part = text
            parts.setdefault(part, [])
        elif text:
            parts.setdefault(part, []).append(text)
    if "=end" not in parts:
        raise UnreadableListing("the look ended before its end")
    held = {name: (parse_number(used), int(guid)) for _, used, guid, name in _rows(parts.get("=snapshots", ()), 4)}
    bookmarks = {(one.dataset, one.name): one for one in _bookmarks(parts.get("=bookmarks", ()))}
    holds = tuple(_holds(parts.get("=holds", ()), held, bookmarks))
    beside = {(one.dataset, one.beside) for one in holds}
    found = (*holds, *(one for at, one in bookmarks.items() if at not in beside))
    pools = {int(guid): name for name, guid in _rows(parts.get("=pools", ()), 2)}
    check_zfs_names(chain(pools.values(), (f"{one.dataset}@{one.name}" for one in found)))
    return PoolPins(
        root=pool,
        job=job,
        pools=pools,
        found=tuple(sorted(found, key=lambda one: (one.dataset, one.kind, one.name))),
        sudo=options_of(job).sudo and user != "0",
        guids=_guids(parts.get("=guids", ())),
    )


def _guids(lines: Iterable[str]) -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for guid, name in _rows(lines, 2):
        found.setdefault(name.partition("@")[0], set()).add(int(guid))
    return {dataset: frozenset(guids) for dataset, guids in found.items()}


def _rows(lines: Iterable[str], count: int) -> Iterator[list[str]]:
    for line in lines:
        fields = line.split("\t", count - 1)
        if len(fields) != count:
            raise UnreadableListing(f"not as zfs prints it: {line!r}")
        yield fields


def _bookmarks(lines: Iterable[str]) -> Iterator[HoldOrBookmark]:
    for whole, created in _rows(lines, 2):
        dataset, _, name = whole.partition("#")
        target_id = parse_cursor_bookmark(name) or parse_hold_bookmark(name)
        if target_id is not None:
            yield HoldOrBookmark(kind=BOOKMARKS, dataset=dataset, name=name, target_id=target_id, since=_time(created))


def _holds(
    lines: Iterable[str],
    held: Mapping[str, tuple[int | None, int]],
    bookmarks: Mapping[tuple[str, str], HoldOrBookmark],
) -> Iterator[HoldOrBookmark]:
    # The first line of a tag of several has two fields; the others do not name her snapshot, and are left out there. No such tag is ours.
    whole_lines = (line for line in lines if line.count("\t") > 1)
    for whole, tag, taken in _rows(whole_lines, 3):
        dataset, _, name = whole.partition("@")
        target_id = parse_hold_tag(tag)
        if target_id is not None and whole in held:
            used, guid = held[whole]
            beside = hold_bookmark_name(target_id, guid)
            yield HoldOrBookmark(
                kind=HOLDS, dataset=dataset, name=name, target_id=target_id, since=_time(taken), bytes=used,
                beside=beside if (dataset, beside) in bookmarks else None,
            )  # fmt: skip


def _time(text: str) -> datetime | None:
    """Parse seconds since 1970, or a time of the remote machine's clock, which is requested in UTC."""
    if text.isdigit():
        return instant_at(int(text))
    try:
        return datetime.strptime(text.strip(), "%a %b %d %H:%M %Y").replace(tzinfo=UTC)
    except ValueError:
        return None
