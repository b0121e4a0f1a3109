"""The record of the next look, written from the listings by which a new copy is verified: no moment lies between the two."""

import contextlib
import os
import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command
from orchestrator.engines.rsync.listing_text import ListingText
from orchestrator.engines.rsync.look_record import (
    BATCH,
    COPY,
    LISTED,
    SOURCE,
    ListingDifference,
    LookHeader,
    PackedEntries,
    RecordReader,
    RecordUnusable,
    RecordWriter,
    form_entry,
    list_root,
    listing_command,
    mark_young,
    pack_entries,
    path_of,
)
from orchestrator.engines.rsync.source_frames import SourceFrames
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


def count_files(entries: Iterable[bytes]) -> int:
    """Return how many of the entries are files."""
    return sum(entry.partition(b"//")[2].startswith(b"f") for entry in entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookDifferences:
    """The entries in which a look found both sides otherwise than recorded, and the source as it listed it."""

    source: ListingDifference
    copy: ListingDifference
    frames: SourceFrames


class NextLook:
    """The record of the next look on its way.

    `carries`: the record of the last look says of the source what the newest point's manifest was made of; `differing`: the paths at
    which this run's look found both different. `began_ns`: when the listings began. `form`: find's words for an entry.
    """

    form = LISTED
    entry = staticmethod(form_entry)

    def __init__(
        self, path: str, source: Location, *, settings: str, look_ns: int, whole_ns: int, since: int, differing: frozenset[bytes],
        carries: bool, seen: LookDifferences | None,
    ) -> None:  # fmt: skip
        """Make one, which has no effect until it begins. `look_ns`: when this run's look began; the rest is the header's."""
        self._path, self._source = path, source
        self._settings, self._look_ns, self._whole_ns, self._since = settings, look_ns, whole_ns, since
        self.differing, self.carries, self._seen = differing, carries and seen is not None, seen
        self.began_ns = 0
        self.point = self.manifest = ""
        self._guard = threading.RLock()  # both sides are listed at once
        self._filesystems = self._older_filesystems = ("", "")
        self._writer: RecordWriter | None = None
        self._sources: Iterator[PackedEntries] | None = None

    def __eq__(self, other: object) -> bool:
        """Plans are compared by what they do."""
        return isinstance(other, NextLook) and other._path == self._path

    def __hash__(self) -> int:
        return hash(self._path)

    def begin(self, tree: Location, point: str, *, carried: bool) -> bool:
        """Begin anew, before either side is listed; return whether it is recorded. `carried`: the source as this run's look listed it."""
        self.drop()
        self.point, self.manifest = point, ""
        with self._giving_up():
            self._begin(tree, point, carried=carried)
        return self._writer is not None

    def _begin(self, tree: Location, point: str, *, carried: bool) -> None:
        source, copy = filesystem_of(self._source.path), filesystem_of(tree.path)
        if not source or not copy:
            return
        self.began_ns, self._filesystems = next_tick(), (source, copy)
        header = LookHeader(
            settings=self._settings, made_with=self._settings, point=point, source=source, copy=copy, made_ns=self.began_ns,
            whole_ns=self._whole_ns, since=self._since, verified=True,
        )  # fmt: skip
        os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
        self._writer = RecordWriter(self._path, header)
        self._tree, self._root, self._root_attributes = tree.path, b"", attributes_of(tree.path)
        self._entries, self._files = -1, 0
        self._sources = None
        if carried and self._seen is not None:
            recorded = _frames(self._path, SOURCE)
            self._sources = self._seen.frames.packed(recorded)

    def listing(self, tree: Location) -> Command:
        """Return the command that lists a tree as the record has it."""
        return listing_command(tree)

    def batches(self, listed: Iterator[bytes], *, copy: bool) -> Iterator[list[bytes]]:
        """Yield the entries of a listing in its order, many at once, and record them."""
        while entries := list(islice(listed, BATCH)):
            with self._giving_up():
                self._add(entries, copy=copy)
            yield entries

    def copy_batches(self, pieces: Iterator[bytes]) -> Iterator[list[bytes]]:
        """Yield the entries of the copy's listing in its order, many at once, and record them. `pieces`: its text, cut anywhere."""
        listed = ListingText(pieces)
        while entries := listed.take(BATCH):
            with self._giving_up():
                self._add(entries, copy=True)
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
        if copy:
            self._entries, self._files = self._entries + len(entries), self._files + count_files(entries)
            if entries[0].startswith(b"//"):  # what is published gets another time of change
                self._root, entries = entries[0], entries[1:]
        if entries:
            limit = self.began_ns if copy else oldest_young(self._look_ns)
            self._write(COPY if copy else SOURCE, pack_entries(mark_young(entries, limit)))
        if copy and self._sources is not None and (frame := next(self._sources, None)) is not None:
            self._write(SOURCE, frame)  # in turns, so that the next look reads both listings at once

    def _write(self, which: bytes, frame: PackedEntries) -> None:
        with self._guard:
            if self._writer is not None:  # the other side may just have given it up
                self._writer.add(which, frame)

    def end_source(self) -> None:
        """Record what is left of the source as the look listed it, once all of the copy is listed."""
        with self._giving_up():
            for frame in self._sources or ():
                self._write(SOURCE, frame)

    def touched(self) -> frozenset[bytes]:
        """Return all paths that the run may have touched, or of which its look found either side otherwise than recorded.

        The folders above are among them, and the root: they get their times after the copy, and what leaves them meanwhile shows there.
        """
        paths = set(self.differing)
        if self._seen is not None:
            for difference in (self._seen.source, self._seen.copy):
                paths.update(map(path_of, difference.gone), map(path_of, difference.new))
        found = {b"", *paths} - {b"."}  # as rsync calls the root
        for path in paths:
            above = path.rpartition(b"/")[0]
            while above not in found:
                found.add(above)
                above = above.rpartition(b"/")[0]
        return frozenset(found)

    def changed(self, now: Mapping[bytes, bytes | None]) -> set[bytes]:
        """Return those of some paths of the source that are not as the last record has them. `now`: their entries; None: it is gone."""
        before: dict[bytes, bytes] = {}
        if self._seen is not None:
            before = dict.fromkeys(map(path_of, self._seen.source.new), b"")
            before |= {path_of(entry): entry for entry in self._seen.source.gone}
        return {
            path
            for path, entry in now.items()
            if (entry != before[path] if path in before else entry is None or _changed_since(entry, self._look_ns))
        }

    def older_copy(self, point: str, manifest: str) -> Iterator[list[bytes]]:
        """Yield the entries of a point as the last record has them, many at once; its root is none of them.

        What was yielded counts once all was. `manifest`: its digest. Raises: ValueError where the record is of another; OSError.
        """
        with open(self._path, "rb") as file:
            record = RecordReader(file)
            for which, frame in record.frames():
                if which == COPY:
                    yield frame.entries()
            header = record.header
            if not (header.point == point and header.verified and record.manifest == manifest):
                raise RecordUnusable
            self._older_filesystems = (header.source, header.copy)

    def same_places(self) -> bool:
        """Return whether both sides lie where they lay when the point before was recorded. After `begin`, and all of `older_copy`."""
        return self._older_filesystems == self._filesystems

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
        self._writer.end(self._entries, self._files, root=mark_young([root], now)[0], manifest=self.manifest)
        self._writer = None
        return True

    def drop(self) -> None:
        """Give up what was written."""
        with self._guard:
            writer, self._writer = self._writer, None
            if writer is not None:
                with contextlib.suppress(OSError):
                    writer.drop()


def _changed_since(entry: bytes, began_ns: int) -> bool:
    """Return whether an entry changed at that time or later; of a time in whole seconds, whether it may have."""
    second, _, rest = entry.rpartition(b"\t")[2].partition(b".")
    at_ns = int(second) * _SECOND + int(rest[:9])
    return at_ns >= (began_ns if at_ns % _SECOND else began_ns // _SECOND * _SECOND)


def attributes_of(path: str) -> dict[str, bytes]:
    """Return the attributes of a folder, access lists among them. Raises: OSError."""
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


def _frames(path: str, wanted: bytes) -> Iterator[PackedEntries]:
    """Yield one side's frames of a record. Raises: RecordUnusable · OSError."""
    with open(path, "rb") as file:
        for which, frame in RecordReader(file).frames():
            if which == wanted:
                yield frame
