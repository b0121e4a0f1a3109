"""The split of one tree into parallel copies: every entry in exactly one copy, copies of equal weight.

A parallel copy is a list of paths for rsync -r --from0 --files-from: the path of a directory is its whole subtree, any other
path only itself. All names of one inode are in one copy, since only then does it keep them one inode.

Why the listing is collected so tightly: it has millions of lines, so of a plain file only its name and size are kept, packed;
of a file with several links its paths too. Directories are split only where one is too heavy, or where hard links would tie too
much.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import show_name
from orchestrator.domain.plan import Refusal
from orchestrator.domain.units import Bytes, show_size

# Cost of handling one entry, in bytes that could be copied in that time.
PER_FILE_COST = Bytes(65536)
_EXAMPLES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PathGroup:
    """Paths that stay together. `inodes`: those with several names of which one is (or may be) in this group."""

    paths: tuple[bytes, ...]
    size: int
    entries: int
    inodes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelCopy:
    """The share of one copying program: its paths, bytes and entries."""

    paths: tuple[bytes, ...]
    size: Bytes
    entries: int

    @property
    def files_from(self) -> bytes:
        """Return the paths as rsync reads them with --from0 --files-from.

        Why "./": rsync 3.5.0 drops lines that begin with "#" or ";" without a message, with --from0 too.
        """
        return b"".join(b"./" + path + b"\0" for path in self.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelCopies:
    """The parallel copies of a tree. Directories above the listed paths are made by each copy that needs them.

    Why nothing corrects those afterwards: each rsync sets owner, mode and time of such a directory after its last write into
    it, so the last one leaves it right. Tried: 24 random trees, every file in any of 2 or 4 copies.
    """

    parallel_copies: tuple[ParallelCopy, ...]


def plan_parallel_copies(
    units: Sequence[PathGroup], parallel_copies: int, *, per_file_cost: int = PER_FILE_COST
) -> tuple[ParallelCopy, ...] | Refusal:
    """Return at most `parallel_copies` parallel copies, the heaviest first; fewer when there are fewer units.

    Refuses: hard links tie the units into fewer groups than there would be parallel copies without them.
    """
    groups = group_hard_links(units)
    if len(groups) < min(parallel_copies, len(units)):
        return _refusal(
            [group for group in groups if len(group) > 1], parallel_copies=parallel_copies, possible=len(groups)
        )
    piles = distribute_weights([copy_cost(group, per_file_cost) for group in groups], min(parallel_copies, len(groups)))
    return tuple(make_parallel_copy([unit for place in pile for unit in groups[place]]) for pile in piles)


def distribute_weights(weights: Sequence[int], piles: int) -> list[list[int]]:
    """Distribute the indexes of `weights` over so many groups: the heaviest first, each to the lightest group."""
    loads = [(0, pile) for pile in range(piles)]
    dealt: list[list[int]] = [[] for _ in loads]
    for place in sorted(range(len(weights)), key=lambda place: -weights[place]):
        load, pile = loads[0]
        dealt[pile].append(place)
        heapq.heapreplace(loads, (load + weights[place], pile))
    return dealt


def group_hard_links(units: Sequence[PathGroup]) -> list[list[PathGroup]]:
    """Group the units: those with names of one inode together, the others alone."""
    leader = list(range(len(units)))
    seen: dict[int, int] = {}
    for place, unit in enumerate(units):
        for inode in unit.inodes:
            one, other = _lead(leader, seen.setdefault(inode, place)), _lead(leader, place)
            leader[max(one, other)] = min(one, other)
    groups: dict[int, list[PathGroup]] = {}
    for place, unit in enumerate(units):
        groups.setdefault(_lead(leader, place), []).append(unit)
    return list(groups.values())


def copy_cost(units: Iterable[PathGroup], per_file_cost: int) -> int:
    """Return the total cost of units, in bytes."""
    return sum(unit.size + unit.entries * per_file_cost for unit in units)


def _lead(leader: list[int], place: int) -> int:
    while leader[place] != place:
        leader[place] = place = leader[leader[place]]
    return place


def make_parallel_copy(units: Sequence[PathGroup]) -> ParallelCopy:
    """Make one parallel copy of all these units."""
    return ParallelCopy(
        paths=tuple(sorted(path for unit in units for path in unit.paths)),
        size=Bytes(sum(unit.size for unit in units)),
        entries=sum(unit.entries for unit in units),
    )


def _refusal(tied: list[list[PathGroup]], *, parallel_copies: int, possible: int) -> Refusal:
    """Build the refusal when hard links leave too few copies: the heaviest groups, their inode, bytes and names."""
    sizes = sorted(((sum(unit.size for unit in group), group) for group in tied), key=lambda pair: -pair[0])
    return Refusal(
        why=f"hard links tie this tree together: {possible} of the {parallel_copies} parallel copies could be used",
        evidence=tuple(f"{show_size(size)} tied by {_names(group)}" for size, group in sizes[:_EXAMPLES]),
        hint="write parallel = 1, or hard-links = false (each name then becomes a file of its own)",
    )


def _names(group: Sequence[PathGroup]) -> str:
    inode = next(inode for inode in group[0].inodes if any(inode in unit.inodes for unit in group[1:]))
    paths = [show_name(path) for unit in group for path in unit.paths]
    more = f" and {len(paths) - _EXAMPLES} more" if len(paths) > _EXAMPLES else ""
    return f"inode {inode}: {', '.join(paths[:_EXAMPLES])}{more}"


ROOT = b"."
LOOSE_AT_MOST = 10_000
GROUPS_PER_COPY = 4


class _FolderTotals:
    """One directory: its plain files packed; `size` and `entries` are sums over its subtree, itself included.

    Why it does not know the one above: a circle of millions of names would stay in memory until Python looks for circles.
    """

    __slots__ = ("entries", "folders", "linked", "names", "path", "size", "sizes")

    def __init__(self, path: bytes) -> None:
        from array import array  # most runs have no tree to split

        self.path = path
        self.folders: list[_FolderTotals] = []
        self.names = bytearray()
        self.sizes = array("q")
        self.linked = 0
        self.size = 0
        self.entries = 1


def _parent(path: bytes) -> bytes:
    """Return the folder that holds an entry; of one in the root nothing."""
    return path.rpartition(b"/")[0]


class _HardLinkedFile:
    """A file with several links: its names in this tree, each with its directory."""

    __slots__ = ("names", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.names: list[tuple[_FolderTotals, bytes]] = []


# Bytes of memory that an entry takes beside its name or its path, measured with CPython 3.11 and 3.13.
_PER_FILE, _PER_NAME, _PER_FOLDER = 10, 320, 700
_TOO_LARGE = "a tree whose listing takes more than half the memory of this machine"


class TreeSplitter:
    """A collector of a listing; call `parallel_copies` once it is complete.

    Entries may come in any order, each once, as paths relative to the root (the root itself, "." or nothing, may be included).
    `kind`: b"d" is a directory, any other value is not. Inodes are those of one filesystem. `most`: bytes of memory. `shared`:
    folders of which only some entries are copied, so that no parallel copy takes one of them whole.
    """

    def __init__(self, *, most: int = 1 << 62, shared: Sequence[str] = ()) -> None:
        self._above = tuple(path.encode("utf-8", "surrogateescape") for path in shared)
        self._root = _FolderTotals(ROOT)
        self._folders = {b"": self._root}
        self._linked: dict[int, _HardLinkedFile] = {}
        self._room = most
        self.files = 0
        self.largest = 0  # bytes of the largest file, where who adds them tells it
        self.large: list[tuple[bytes, int]] = []  # the same of large plain files, with their bytes
        self.missed = (
            False  # entries that could not be listed; a folder that is shared out would lose them without a word
        )

    def add(self, path: bytes, kind: bytes, size: int, inode: int, nlink: int) -> None:
        """Add one entry. `size` counts once per inode. Raises: ValueError when the memory cannot hold more."""
        above, _, name = path.rpartition(b"/")
        self._room -= _PER_FILE + len(name) if nlink <= 1 else _PER_NAME + len(path)
        if self._room < 0:
            raise ValueError(_TOO_LARGE)
        if kind == b"d":
            if path != ROOT:
                self._folder(path)
            return
        self.files += kind == b"f"
        folder = self._folders.get(above) or self._folder(above)
        if nlink > 1:
            self._link(folder, path, size, inode)
            return
        folder.names += name + b"\0"
        folder.sizes.append(size)

    def totals(self) -> tuple[int, int]:
        """Return the number of entries, without the root, and their bytes; an inode's bytes count once."""
        plain = sum(len(folder.sizes) + folder.linked for folder in self._folders.values())
        size = sum(sum(folder.sizes) for folder in self._folders.values())
        return plain + len(self._folders) - 1, size + sum(linked.size for linked in self._linked.values())

    def _folder(self, path: bytes) -> _FolderTotals:
        """Return the directory at `path`; create it and its missing ancestors, ancestors first."""
        missing = []
        while path not in self._folders:
            missing.append(path)
            path = _parent(path)
        folder = self._folders[path]
        for below in reversed(missing):
            self._room -= _PER_FOLDER + len(below)
            if self._room < 0:
                raise ValueError(_TOO_LARGE)
            above, folder = folder, _FolderTotals(below)
            above.folders.append(folder)
            self._folders[below] = folder
        return folder

    def _link(self, folder: _FolderTotals, path: bytes, size: int, inode: int) -> None:
        linked = self._linked.setdefault(inode, _HardLinkedFile(size))
        linked.names.append((folder, path))
        folder.linked += 1

    def parallel_copies(self, parallel_copies: int, *, per_file_cost: int = PER_FILE_COST) -> ParallelCopies | Refusal:
        """Split the tree into at most `parallel_copies` parallel copies; fewer when there is too little to split.

        Refuses: hard links alone are the reason for fewer copies than requested. An entry that appears in a shared directory
        after the listing is in no copy; the next run copies it.
        """
        self._roll_up()
        cut = _FolderSplit(self._folders, self._linked, parallel_copies=parallel_copies, per_file_cost=per_file_cost)
        cut.keep_shared(self._folders[path] for path in self._above if path in self._folders)
        cut.until_light()
        made = plan_parallel_copies(cut.units(), parallel_copies, per_file_cost=per_file_cost)
        if isinstance(made, Refusal):
            return made
        if len(made) > 1:
            return ParallelCopies(parallel_copies=made)
        whole = PathGroup(paths=(ROOT,), size=self._root.size, entries=self._root.entries)
        return ParallelCopies(parallel_copies=(make_parallel_copy([whole]),))

    def _roll_up(self) -> None:
        """Sum sizes and entries over each subtree; the size of an inode counts at its first name."""
        for folder in self._folders.values():
            folder.size, folder.entries = sum(folder.sizes), len(folder.sizes) + folder.linked + 1
        for linked in self._linked.values():
            linked.names[0][0].size += linked.size
        for path, folder in reversed(self._folders.items()):
            if path:
                above = self._folders[_parent(path)]
                above.size += folder.size
                above.entries += folder.entries


class _FolderSplit:
    """The directories that are shared between parallel copies, and the resulting units. The root is always shared."""

    def __init__(
        self,
        folders: dict[bytes, _FolderTotals],
        linked: dict[int, _HardLinkedFile],
        *,
        parallel_copies: int,
        per_file_cost: int,
    ) -> None:
        self._folders, self._root = folders, folders[b""]
        self._linked = linked
        self._lanes = parallel_copies
        self._cost = per_file_cost
        self._limit = (self._root.size + self._root.entries * per_file_cost) / (GROUPS_PER_COPY * parallel_copies)
        self._forced = {self._root}
        self._whole: dict[bytes, _FolderTotals] = {}
        self._shared: dict[_FolderTotals, None] = {}  # in a fixed order, so that a repeated plan is the same

    def keep_shared(self, folders: Iterable[_FolderTotals]) -> None:
        """Split these folders in any case."""
        self._forced |= set(folders)

    def until_light(self) -> None:
        """Split until no group of tied units is too heavy and there are enough for all copies, or no split is left."""
        while True:
            self._walk()
            groups = group_hard_links(self._tied())
            if len(groups) + sum(min(len(each.sizes), self._lanes) for each in self._shared) >= self._lanes:
                groups = [group for group in groups if copy_cost(group, self._cost) > self._limit]
            whole = (self._whole.get(path) for group in groups for unit in group for path in unit.paths)
            more = {folder for folder in whole if folder and folder.entries > 1}
            if not more:
                return
            self._forced |= more

    def units(self) -> list[PathGroup]:
        """Return all units of the tree."""
        return [*self._tied(), *(unit for folder in self._shared for unit in self._loose(folder))]

    def _walk(self) -> None:
        self._whole, self._shared = {}, {}
        waiting = [self._root]
        while waiting:
            folder = waiting.pop()
            heavy = folder.entries > 1 and folder.size + folder.entries * self._cost > self._limit
            if heavy or folder in self._forced:
                self._shared[folder] = None
                waiting += folder.folders
            else:
                self._whole[folder.path] = folder

    def _tied(self) -> list[PathGroup]:
        """Return the units that hard links may tie: whole directories, and linked files in a shared directory."""
        inodes: dict[_FolderTotals, list[int]] = {folder: [] for folder in self._whole.values()}
        names = []
        for inode, linked in self._linked.items():
            size = linked.size
            for folder, path in linked.names:
                if folder in self._shared:
                    names.append(PathGroup(paths=(path,), size=size, entries=1, inodes=(inode,)))
                else:
                    inodes[self._holder(folder)].append(inode)
                size = 0
        whole = [
            PathGroup(paths=(folder.path,), size=folder.size, entries=folder.entries, inodes=tuple(held))
            for folder, held in inodes.items()
        ]
        return whole + names

    def _holder(self, folder: _FolderTotals) -> _FolderTotals:
        while folder is not self._root and (above := self._folders[_parent(folder.path)]) not in self._shared:
            folder = above
        return folder

    def _loose(self, folder: _FolderTotals) -> Iterator[PathGroup]:
        """Yield the plain files of a shared directory as units: each alone, or in a few groups if very many."""
        before = b"" if folder is self._root else folder.path + b"/"
        paths = [before + name for name in bytes(folder.names).split(b"\0")[:-1]]
        if len(paths) <= LOOSE_AT_MOST:
            yield from (
                PathGroup(paths=(path,), size=size, entries=1) for path, size in zip(paths, folder.sizes, strict=True)
            )
            return
        for pile in distribute_weights(
            [size + self._cost for size in folder.sizes], min(GROUPS_PER_COPY * self._lanes, len(paths))
        ):
            size = sum(folder.sizes[place] for place in pile)
            yield PathGroup(paths=tuple(paths[place] for place in pile), size=size, entries=len(pile))
