"""The data model of the prune engine: the snapshots that came into a dataset, and the answer that lists them."""

import re
from datetime import UTC, datetime

from orchestrator.domain.answers import instant_at, parse_count, parse_guid
from orchestrator.domain.arrival import ReceivedPoint, folder_mark
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import POINT_NAME, parse_point_name
from orchestrator.domain.place import Location
from orchestrator.domain.units import show_count

EXIT_STAYED = 75  # of our script: some are in use, and stay
_SNAPSHOT = re.compile(r"[A-Za-z0-9_.: /-]+@[A-Za-z0-9_.: -]+")
_NEVER = datetime(9000, 1, 1, tzinfo=UTC)  # of a name that is no time: beyond all


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneSurvey:
    """The survey of the root and of all below it. `at`: the time of this machine; `points`: in the order in which they came; `guid`: of the root.

    0: it is a folder.
    """

    root: Location
    at: datetime
    points: tuple[ReceivedPoint, ...]
    trash: bool = False  # a removal of folders was cut
    guid: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotsGone:
    """The confirmation that snapshots are gone, by their guids."""

    root: Location
    guids: frozenset[tuple[str, str]]

    def __str__(self) -> str:
        one, where = ("point", "in") if is_folder(self.root) else ("snapshot", "below")
        return f"gone {where} {self.root}: {show_count(len(self.guids), one)}"


def is_folder(root: Location) -> bool:
    """Return whether points are folders below the root, and not snapshots of a dataset."""
    return root.path.startswith("/")


def parse_folder(said: bytes, *, root: Location) -> PruneSurvey:
    """Parse the answer of look-at-folder.sh: the points in the order in which they got their names here. Raises: ValueError."""
    found, trash = list[tuple[float, str, int]](), False
    first, *records = said.decode("utf-8", "surrogateescape").split("\0")
    for record in records[:-1]:
        number, changed, kind, path = record.split(" ", 3)
        name = path.removeprefix("points/")
        trash = trash or path == ".poolferry/trash"
        if kind == "d" and name != path and POINT_NAME.fullmatch(name):
            found.append((float(changed), name, parse_count(number)))
    points = tuple(_folder_point(root, name, number) for _, name, number in sorted(found))
    return PruneSurvey(root=root, at=instant_at(parse_count(first)), points=points, trash=trash)


def _folder_point(root: Location, name: str, number: int) -> ReceivedPoint:
    try:
        dated = parse_point_name(name)
    except ValueError:
        dated = _NEVER
    return ReceivedPoint(
        series=root.path, name=name, identity=str(number), order=0, dated=dated, tree=f"{root.path}/points/{name}",
        record=folder_mark(name, number),
    )  # fmt: skip


def parse_snapshot(name: str) -> str:
    """Return the whole name of one snapshot. Raises: ValueError for another name."""
    if _SNAPSHOT.fullmatch(name) is None:
        raise ValueError(f"no name of one snapshot: {name[:300]!r}")
    return name


def parse_survey(said: bytes, *, root: Location) -> PruneSurvey:
    """Parse the answer of look.sh. Raises: ValueError."""
    first, guid, *lines = said.decode("utf-8", "surrogateescape").split("\n")
    points = tuple(_parse_point(line, root.path) for line in lines if line)
    return PruneSurvey(root=root, at=instant_at(parse_count(first)), points=points, guid=parse_guid(guid))


def _parse_point(line: str, root: str) -> ReceivedPoint:
    name, guid, order, created, written, referenced, holds, clones = line.split("\t")
    dataset, _, short = parse_snapshot(name).partition("@")
    if dataset != root and not dataset.startswith(f"{root}/"):
        raise ValueError(f"a snapshot from elsewhere: {name[:300]!r}")
    parse_guid(guid)
    return ReceivedPoint(
        series=dataset, name=short, identity=guid, order=parse_count(order), dated=instant_at(parse_count(created)),
        brought=parse_count(written), holds=parse_count(referenced), needed=_need(holds, clones),
    )  # fmt: skip


def _need(holds: str, clones: str) -> str:
    if holds not in ("0", "-"):
        return "a hold keeps it (`zfs holds` names it)"
    return f"a clone needs it: {clones.partition(',')[0]}" if clones not in ("", "-") else ""
