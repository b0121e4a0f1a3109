"""How one tree is shared out to lanes that copy side by side: every entry in exactly one lane, lanes of equal weight.

A lane is a list of paths for rsync -r --from0 --files-from: the path of a directory is its whole subtree, of anything
else just that. All names of one inode travel in one lane, since only then can a copy keep them one inode.

Pure.
"""

import heapq
from collections.abc import Iterable, Sequence

from orchestrator.domain.names import show_name
from orchestrator.domain.plan import Refusal
from orchestrator.domain.quick import dataclass
from orchestrator.domain.units import Bytes, show_size

# What the handling of one entry costs, told in bytes that could be copied in that time.
PER_FILE_COST = Bytes(65536)
_EXAMPLES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Paths that stay together. `inodes`: those with several names of which one is in here (or may be)."""

    paths: tuple[bytes, ...]
    size: int
    entries: int
    inodes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What one copying program takes, and how much that is."""

    paths: tuple[bytes, ...]
    size: Bytes
    entries: int

    @property
    def files_from(self) -> bytes:
        """The paths as rsync reads them with --from0 --files-from.

        Why "./": rsync 3.5.0 drops lines that begin with "#" or ";" without a word, with --from0 too.
        """
        return b"".join(b"./" + path + b"\0" for path in self.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """The lanes of a tree. Directories above what lanes name are made by each lane that needs them.

    Why nothing settles those afterwards: each rsync sets owner, mode and time of such a directory once all that it
    writes into it is there, so the last one leaves it right. Tried: 24 random trees, every file in any of 2 or 4 lanes.
    """

    lanes: tuple[Lane, ...]


def split_lanes(units: Sequence[Unit], lanes: int, *, per_file_cost: int = PER_FILE_COST) -> tuple[Lane, ...] | Refusal:
    """At most `lanes` lanes, the heaviest first; fewer when there are fewer units.

    Refuses: hard links tie the units into fewer groups than there would be lanes without them.
    """
    groups = tie(units)
    if len(groups) < min(lanes, len(units)):
        return _refusal([group for group in groups if len(group) > 1], lanes=lanes, possible=len(groups))
    piles = deal([weigh(group, per_file_cost) for group in groups], min(lanes, len(groups)))
    return tuple(lane_of([unit for place in pile for unit in groups[place]]) for pile in piles)


def deal(weights: Sequence[int], piles: int) -> list[list[int]]:
    """The places of `weights` in so many piles: the heaviest first, each onto the pile that is lightest by then."""
    loads = [(0, pile) for pile in range(piles)]
    dealt: list[list[int]] = [[] for _ in loads]
    for place in sorted(range(len(weights)), key=lambda place: -weights[place]):
        load, pile = loads[0]
        dealt[pile].append(place)
        heapq.heapreplace(loads, (load + weights[place], pile))
    return dealt


def tie(units: Sequence[Unit]) -> list[list[Unit]]:
    """The units in groups: those that hold names of one inode together, the others alone."""
    leader = list(range(len(units)))
    seen: dict[int, int] = {}
    for place, unit in enumerate(units):
        for inode in unit.inodes:
            one, other = _lead(leader, seen.setdefault(inode, place)), _lead(leader, place)
            leader[max(one, other)] = min(one, other)
    groups: dict[int, list[Unit]] = {}
    for place, unit in enumerate(units):
        groups.setdefault(_lead(leader, place), []).append(unit)
    return list(groups.values())


def weigh(units: Iterable[Unit], per_file_cost: int) -> int:
    """What units cost together, in bytes."""
    return sum(unit.size + unit.entries * per_file_cost for unit in units)


def _lead(leader: list[int], place: int) -> int:
    while leader[place] != place:
        leader[place] = place = leader[leader[place]]
    return place


def lane_of(units: Sequence[Unit]) -> Lane:
    """One lane of all these."""
    return Lane(
        paths=tuple(sorted(path for unit in units for path in unit.paths)),
        size=Bytes(sum(unit.size for unit in units)),
        entries=sum(unit.entries for unit in units),
    )


def _refusal(tied: list[list[Unit]], *, lanes: int, possible: int) -> Refusal:
    """Why hard links leave too few lanes: the heaviest groups, their inode, bytes and names."""
    sizes = sorted(((sum(unit.size for unit in group), group) for group in tied), key=lambda pair: -pair[0])
    return Refusal(
        why=f"hard links tie this tree together: {possible} of the {lanes} lanes asked for could carry something",
        evidence=tuple(f"{show_size(size)} tied by {_names(group)}" for size, group in sizes[:_EXAMPLES]),
        cure="write parallel = 1, or hard-links = false (each name then becomes a file of its own)",
    )


def _names(group: Sequence[Unit]) -> str:
    inode = next(inode for inode in group[0].inodes if any(inode in unit.inodes for unit in group[1:]))
    paths = [show_name(path) for unit in group for path in unit.paths]
    more = f" and {len(paths) - _EXAMPLES} more" if len(paths) > _EXAMPLES else ""
    return f"inode {inode}: {', '.join(paths[:_EXAMPLES])}{more}"
