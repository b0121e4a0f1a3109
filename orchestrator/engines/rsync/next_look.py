"""The record of the next look, written from the listings by which a new copy is verified: no moment lies between the two."""

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator
from itertools import islice

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command
from orchestrator.engines.rsync.look_record import (
    BATCH,
    COPY,
    LISTED,
    SOURCE,
    YOUNG,
    ListingDifference,
    LookHeader,
    PackedEntries,
    RecordReader,
    RecordUnusable,
    RecordWriter,
    list_root,
    listing_command,
    path_of,
)
from orchestrator.process.mounted import read_mounted

# Those known to give each change of an entry, of its attributes too, a new time of change, and to keep inodes; since which Linux.
# tmpfs: an attribute that was set, such as a capability, gave none before 6.1 or 6.2, see mm/shmem.c, shmem_xattr_handler_set.
_FILESYSTEMS = {"ext4": (0, 0), "xfs": (0, 0), "btrfs": (0, 0), "tmpfs": (6, 2)}
_RELEASE = re.compile(r"(\d{1,9})\.(\d{1,9})")
_SECOND = 10**9
# A change at the source within these before the look began may have come after rsync read the entry, and within one tick of a clock.
_YOUNG = 3 * _SECOND
_PAUSE = 0.001


def kernel_time() -> int:
    """Return the time by the clock that filesystems use, in nanoseconds: the one thing that a time of change may be compared with."""
    fd = os.memfd_create("now", os.MFD_CLOEXEC)
    try:
        return os.fstat(fd).st_ctime_ns
    finally:
        os.close(fd)


def next_tick() -> int:
    """Wait for the next tick of that clock, and return its time: what changed before has an earlier time of change."""
    now = kernel_time()
    while (then := kernel_time()) == now:
        time.sleep(_PAUSE)
    return then


def filesystem_of(path: str) -> str:
    """Return type, root, mountpoint and number of the filesystem that holds a folder; empty where its times say too little."""
    try:
        found = read_mounted(path)
    except ValueError:
        return ""
    since = _FILESYSTEMS.get(found.kind)
    known = since is not None and linux_version(os.uname().release) >= since
    return f"{found.kind} {found.root} {found.point} {found.number}" if known else ""


def linux_version(release: str) -> tuple[int, int]:
    """Return the first two numbers of a kernel's release, such as "6.1.0-18-amd64"; (0, 0) where it begins with none."""
    found = _RELEASE.match(release)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def oldest_young(began_ns: int) -> int:
    """Return the time of change from which an entry of the source counts as young. `began_ns`: when the look began."""
    return began_ns - _YOUNG


def mark_young(entries: list[bytes], limit_ns: int) -> list[bytes]:
    """Return the entries, those marked that changed at that time or later: one more change might not show.

    Where a filesystem counts whole seconds, from the begin of that second.
    """
    limit, second = b"%d.%09d0" % divmod(limit_ns, _SECOND), b"%d.0000000000" % (limit_ns // _SECOND)
    times = [entry.rpartition(b"\t")[2] for entry in entries]
    if max(times) < second:
        return entries
    young = (at >= limit or at.endswith(b".0000000000") for at in times)
    return [
        entry + YOUNG if is_young and at >= second else entry
        for entry, at, is_young in zip(entries, times, young, strict=True)
    ]


def count_files(entries: Iterable[bytes]) -> int:
    """Return how many of the entries are files."""
    return sum(entry.partition(b"//")[2].startswith(b"f") for entry in entries)


class NextLook:
    """The record of the next look on its way.

    `carries`: the record of the last look says of the source what the newest point's manifest was made of; `differing`: the paths at
    which this run's look found both different. `began_ns`: when the listings began. `form`: find's words for an entry.
    """

    form = LISTED

    def __init__(
        self, path: str, source: Location, *, settings: str, look_ns: int, whole_ns: int, since: int, differing: frozenset[bytes],
        carries: bool,
    ) -> None:  # fmt: skip
        """Make one, which has no effect until it begins. `look_ns`: when this run's look began; the rest is the header's."""
        self._path, self._source = path, source
        self._settings, self._look_ns, self._whole_ns, self._since = settings, look_ns, whole_ns, since
        self.differing, self.carries = differing, carries
        self.began_ns = 0
        self.point = ""
        self._guard = threading.RLock()  # both sides are listed at once
        self._writer: RecordWriter | None = None
        self._known: Iterator[PackedEntries] | None = None

    def __eq__(self, other: object) -> bool:
        """Plans are compared by what they do."""
        return isinstance(other, NextLook) and other._path == self._path

    def __hash__(self) -> int:
        return hash(self._path)

    def begin(self, tree: Location, point: str, *, carried: bool) -> None:
        """Begin anew, before either side is listed. `carried`: the source's entries are compared with the last record."""
        self.drop()
        self.point = point
        with self._giving_up():
            self._begin(tree, point, carried=carried)

    def _begin(self, tree: Location, point: str, *, carried: bool) -> None:
        source, copy = filesystem_of(self._source.path), filesystem_of(tree.path)
        if not source or not copy:
            return
        self.began_ns = next_tick()
        header = LookHeader(
            settings=self._settings, made_with=self._settings, point=point, source=source, copy=copy, made_ns=self.began_ns,
            whole_ns=self._whole_ns, since=self._since, verified=True,
        )  # fmt: skip
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        self._writer = RecordWriter(self._path, header)
        self._tree, self._root, self._root_attributes = tree.path, b"", attributes_of(tree.path)
        self._entries, self._files = -1, 0
        self._difference = ListingDifference()
        self._known = _source_frames(self._path) if carried else None

    def listing(self, tree: Location) -> Command:
        """Return the command that lists a tree as the record has it."""
        return listing_command(tree)

    def batches(self, listed: Iterator[bytes], *, copy: bool) -> Iterator[list[bytes]]:
        """Yield the entries of a listing in its order, many at once, and record them."""
        while entries := list(islice(listed, BATCH)):
            with self._giving_up():
                self._add(entries, copy=copy)
            yield entries

    @contextlib.contextmanager
    def _giving_up(self) -> Iterator[None]:
        """Give the record up where it cannot be written, or the last one not be read: the copy is as good without."""
        try:
            yield
        except (OSError, RecordUnusable):
            self.drop()

    def _add(self, entries: list[bytes], *, copy: bool) -> None:
        if self._writer is None:
            return
        if not copy and self._known is not None:
            self._compare(entries)
        if copy:
            self._entries, self._files = self._entries + len(entries), self._files + count_files(entries)
            if entries[0].startswith(b"//"):  # what is published gets another time of change
                self._root, entries = entries[0], entries[1:]
        if entries:
            limit = self.began_ns if copy else oldest_young(self._look_ns)
            marked = mark_young(entries, limit)
            with self._guard:
                if self._writer is not None:  # the other side may just have given it up
                    self._writer.add(COPY if copy else SOURCE, marked)

    def _compare(self, entries: list[bytes]) -> None:
        frame = next(self._known, None) if self._known is not None else None
        if frame is not None and len(entries) in (frame.count, BATCH):
            self._difference.compare(frame, entries)
        else:
            self._difference.exchange(frame.entries() if frame is not None else [], entries)

    def changed(self) -> dict[bytes, bytes | None] | None:
        """Return the paths at which the source is not listed as it was recorded, each with its entry now; None: it is gone.

        None for all where the record says nothing.
        """
        with self._giving_up():
            for frame in self._known or ():
                self._difference.exchange(frame.entries(), [])
        if self._writer is None:
            return None
        found: dict[bytes, bytes | None] = {path_of(entry): None for entry in self._difference.gone}
        found.update((path_of(entry), entry) for entry in self._difference.new)
        return found

    def complete(self, tree: Location) -> bool:
        """Give the record its name; return whether there is one. `tree`: the copy where it lies now. Raises: OSError.

        Why the root apart: what is published is renamed, and so gets a new time of change.
        """
        if self._writer is None:
            return False
        now = next_tick()
        root = list_root(tree.path)
        same = root.rpartition(b"\t")[0] == self._root.rpartition(b"\t")[0]
        if not same or attributes_of(tree.path) != self._root_attributes:
            self.drop()
            return False
        self._writer.end(self._entries, self._files, root=mark_young([root], now)[0])
        self._writer = None
        return True

    def drop(self) -> None:
        """Give up what was written."""
        with self._guard:
            writer, self._writer = self._writer, None
            if writer is not None:
                with contextlib.suppress(OSError):
                    writer.drop()


def attributes_of(path: str) -> dict[str, bytes]:
    """Return the attributes of a folder, access lists among them. Raises: OSError."""
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


def _source_frames(path: str) -> Iterator[PackedEntries]:
    """Yield the source's frames of a record. Raises: RecordUnusable · OSError."""
    with open(path, "rb") as file:
        for which, frame in RecordReader(file).frames():
            if which == SOURCE:
                yield frame
