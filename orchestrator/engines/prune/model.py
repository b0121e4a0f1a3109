"""The data model of the prune engine: the snapshots that came into a dataset, and the answer that lists them."""

import re
from datetime import datetime

from orchestrator.domain.answers import instant_at, parse_count
from orchestrator.domain.arrival import ReceivedPoint
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location
from orchestrator.domain.units import show_count

EXIT_STAYED = 75  # of our script: some are in use, and stay
_SNAPSHOT = re.compile(r"[A-Za-z0-9_.: /-]+@[A-Za-z0-9_.: -]+")
_GUID = re.compile(r"[0-9]{1,20}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneSurvey:
    """The survey of the root and of all below it. `at`: the time of this machine; `points`: in the order in which they came."""

    root: Location
    at: datetime
    points: tuple[ReceivedPoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotsGone:
    """The confirmation that snapshots are gone, by their guids."""

    root: Location
    guids: frozenset[tuple[str, str]]

    def __str__(self) -> str:
        return f"gone below {self.root}: {show_count(len(self.guids), 'snapshot')}"


def parse_snapshot(name: str) -> str:
    """Return the whole name of one snapshot. Raises: ValueError for another name."""
    if _SNAPSHOT.fullmatch(name) is None:
        raise ValueError(f"no name of one snapshot: {name[:300]!r}")
    return name


def parse_survey(said: bytes, *, root: Location) -> PruneSurvey:
    """Parse the answer of look.sh. Raises: ValueError."""
    first, *lines = said.decode("utf-8", "surrogateescape").split("\n")
    points = tuple(_parse_point(line, root.path) for line in lines if line)
    return PruneSurvey(root=root, at=instant_at(parse_count(first)), points=points)


def _parse_point(line: str, root: str) -> ReceivedPoint:
    name, guid, order, created, written, referenced, holds, clones = line.split("\t")
    dataset, _, short = parse_snapshot(name).partition("@")
    if dataset != root and not dataset.startswith(f"{root}/"):
        raise ValueError(f"a snapshot from elsewhere: {name[:300]!r}")
    if _GUID.fullmatch(guid) is None:
        raise ValueError(f"no guid: {guid[:100]!r}")
    return ReceivedPoint(
        series=dataset, name=short, identity=guid, order=parse_count(order), dated=instant_at(parse_count(created)),
        brought=parse_count(written), holds=parse_count(referenced), needed=_need(holds, clones),
    )  # fmt: skip


def _need(holds: str, clones: str) -> str:
    if holds not in ("0", "-"):
        return "a hold keeps it (`zfs holds` names it)"
    return f"a clone needs it: {clones.partition(',')[0]}" if clones not in ("", "-") else ""
