"""Judgement of one entry of a tree against its manifest entry, by reading it.

A file with a wrong digest is read once more from the disk: a change in the meantime is reported as such, and two different
readings indicate a fault of the disk, the cable or the memory.
"""

import errno
import os
import stat
from typing import NamedTuple

from orchestrator.verify.attributes import UNRECORDED, read_attributes
from orchestrator.verify.digest import FileHasher, Makers, OpenTree, hash_maker
from orchestrator.verify.entry import (
    EXACT,
    UNKNOWN,
    UNREAD,
    ManifestEntry,
    Tolerance,
    differences,
    same_time,
    was_never_copied,
)

# The values of domain.point.Verdict, whose import would double the start of a worker; a test compares the two.
MISSING, EDITED, ROTTEN, METADATA = "missing", "edited", "rotten", "metadata"
UNREADABLE, UNPROVED = "unreadable", "unproved"

_ENTRY_TYPES = {
    stat.S_IFREG: "f", stat.S_IFDIR: "d", stat.S_IFLNK: "l", stat.S_IFIFO: "p", stat.S_IFSOCK: "s", stat.S_IFBLK: "b",
    stat.S_IFCHR: "c",
}  # fmt: skip
# Where a filesystem takes no such name, nothing has it there.
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL)
_REMEMBERED = 8192


class CheckTask(NamedTuple):
    """Work to do with each entry.

    `mode`: "check" compares; "fill" reads files without a digest; "digest" compares and makes digests of `algorithm`.
    `created`: when the manifest was written, as its heading says so.
    """

    mode: str
    algorithm: str
    tolerance: Tolerance = EXACT
    created: str = ""


class EntryVerdict(NamedTuple):
    """Result of judging an entry; no `verdict`: as in the manifest. `digest`: as the task requests, "" without one."""

    verdict: str
    detail: str
    digest: str


_SOUND = EntryVerdict("", "", "")


class EntryChecker:
    """Judge of the entries of one tree."""

    def __init__(self, tree: OpenTree, reader: FileHasher, task: CheckTask) -> None:
        self._tree = tree
        self._reader = reader
        self._task = task
        self._checks = task.mode != "fill"
        self._makers: dict[str, Makers | None] = {}
        self._seen: dict[tuple[int, str], str] = {}

    def judge(self, entry: ManifestEntry) -> EntryVerdict:
        """Judge one entry."""
        if entry[1] != "f":
            return self._name(entry) if self._checks else _SOUND
        if entry[10][0] == UNREAD or (self._task.mode == "check" and entry[10][0] == UNKNOWN):
            return self._unproved(entry) if self._checks else _SOUND
        try:
            fd = self._tree.open(entry[0])
        except OSError as error:
            return self._closed(entry, error)
        try:
            return self._file(entry, fd)
        except OSError as error:
            return EntryVerdict(UNREADABLE, f"reading fails: {error.strerror}", self._none())
        finally:
            os.close(fd)

    def _file(self, entry: ManifestEntry, fd: int) -> EntryVerdict:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            return EntryVerdict(EDITED, differences(entry, as_entry(entry.path, before))[0], self._none())
        expected = entry[10].removeprefix(UNKNOWN)
        algorithm, _, wanted = expected.partition(":")
        makers = self._makers[algorithm] if algorithm in self._makers else self._makers_for(algorithm)
        if not makers:
            return EntryVerdict(
                UNREADABLE, f"nothing makes the digest {algorithm}, which its manifest names", self._none()
            )
        if before.st_nlink > 1 and (made := self._seen.get((before.st_ino, expected))) is not None:
            return self._sound(entry, fd, before, made)
        digests = self._reader.digest(fd, before.st_size, makers)
        if expected and wanted != digests[0]:
            return self._accuse(entry, fd, before, digests)
        made = f"{self._task.algorithm}:{digests[-1]}" if self._task.mode != "check" else ""
        if self._task.mode != "check" and not _same(before, os.fstat(fd)):
            return EntryVerdict(EDITED, "changed while it was read", self._none())
        if before.st_nlink > 1 and expected:
            self._remember(before.st_ino, expected, made)
        return self._sound(entry, fd, before, made)

    def _sound(self, entry: ManifestEntry, fd: int, found: os.stat_result, made: str) -> EntryVerdict:
        """Judge the metadata of a file whose bytes match the manifest."""
        attributes = read_attributes(fd) if entry[11] and self._checks else UNRECORDED
        if (
            attributes == entry[11]
            and found.st_mtime_ns == entry[3]
            and found.st_mode & 0o7777 == entry[4]
            and found.st_uid == entry[5]
            and found.st_gid == entry[6]
            and found.st_size == entry[2]
        ):
            return EntryVerdict("", "", made) if made else _SOUND
        if not self._checks:
            same = found.st_mtime_ns == entry.mtime_ns and found.st_size == entry.size
            return EntryVerdict("", "", made) if same else EntryVerdict(EDITED, "changed since it was listed", UNREAD)
        told = differences(entry, as_entry(entry.path, found, attributes=attributes), self._task.tolerance)
        return EntryVerdict(METADATA, "; ".join(told), made) if told else EntryVerdict("", "", made)

    def _accuse(self, entry: ManifestEntry, fd: int, before: os.stat_result, first: tuple[str, ...]) -> EntryVerdict:
        """Return the verdict on a file whose digest differs from the manifest."""
        expected = entry.digest.removeprefix(UNKNOWN)
        algorithm, _, wanted = expected.partition(":")
        kept = expected if self._task.mode == "fill" else ""
        second = self._reader.again(fd, self._makers_for(algorithm) or ())
        after = os.fstat(fd)
        if not _same(before, after):
            return EntryVerdict(EDITED, "changed while it was read", self._none())
        if second != first:
            now = "as expected" if second[0] == wanted else second[0]
            return EntryVerdict(UNREADABLE, f"two readings differ: {algorithm}:{first[0]}, then {now}", kept)
        what = f"{algorithm}:{second[0]}, expected {expected}"
        here = as_entry(entry.path, after)
        if here.size != entry.size or not same_time(entry.mtime_ns, here.mtime_ns, self._task.tolerance):
            return EntryVerdict(EDITED, "; ".join((what, *differences(entry, here, self._task.tolerance))), kept)
        return EntryVerdict(ROTTEN, f"{what}; {self._how(entry, after)}", kept)

    def _how(self, entry: ManifestEntry, found: os.stat_result) -> str:
        """Explain from the inode how bytes changed while size and time did not."""
        if found.st_ino != entry.inode:
            return "size and time as expected, in another inode: replaced with its time kept, or wrong from the start"
        if found.st_ctime_ns <= _nanoseconds(self._task.created):
            return "nothing was written to it since: it rotted"
        return "size and time as expected: it rotted, or an edit put its time back"

    def _name(self, entry: ManifestEntry) -> EntryVerdict:
        """Judge an entry without content."""
        try:
            found = self._tree.stat(entry.path)
            target = self._tree.target(entry.path) if stat.S_ISLNK(found.st_mode) else b""
            attributes = self._tree.attributes(entry.path) if entry.attributes else UNRECORDED
        except OSError as error:
            return self._closed(entry, error)
        told = differences(entry, as_entry(entry.path, found, target, attributes), self._task.tolerance)
        verdict = METADATA if _ENTRY_TYPES.get(stat.S_IFMT(found.st_mode)) == entry.kind else EDITED
        return EntryVerdict(verdict, "; ".join(told), "") if told else _SOUND

    def _unproved(self, entry: ManifestEntry) -> EntryVerdict:
        try:
            self._tree.stat(entry.path)
        except OSError as error:
            if not (error.errno in _GONE and was_never_copied(entry)):
                return self._closed(entry, error)
        return EntryVerdict(UNPROVED, "it could not be read when it was copied", "")

    def _closed(self, entry: ManifestEntry, error: OSError) -> EntryVerdict:
        """Judge an entry that cannot be opened."""
        if error.errno in _GONE:
            return EntryVerdict(MISSING, "not there", self._none())
        try:
            found = self._tree.stat(entry.path)
        except OSError:
            return EntryVerdict(UNREADABLE, f"it does not open: {error.strerror}", self._none())
        if _ENTRY_TYPES.get(stat.S_IFMT(found.st_mode)) != entry.kind:
            return EntryVerdict(EDITED, differences(entry, as_entry(entry.path, found))[0], self._none())
        return EntryVerdict(UNREADABLE, f"it does not open: {error.strerror}", self._none())

    def _none(self) -> str:
        """Return the placeholder for a digest where there can be none."""
        return UNREAD if self._task.mode == "fill" else ""

    def _makers_for(self, algorithm: str) -> Makers | None:
        """Return the hashes to make: first the manifest's, last the requested one. None: the manifest's is unknown."""
        if algorithm not in self._makers:
            names = [algorithm] if self._task.mode == "check" else [algorithm, self._task.algorithm]
            try:
                self._makers[algorithm] = tuple(hash_maker(name) for name in dict.fromkeys(names) if name)
            except ValueError:
                self._makers[algorithm] = None
        return self._makers[algorithm]

    def _remember(self, inode: int, expected: str, made: str) -> None:
        if len(self._seen) >= _REMEMBERED:
            self._seen.clear()
        self._seen[inode, expected] = made


def as_entry(path: bytes, found: os.stat_result, target: bytes = b"", attributes: str = UNRECORDED) -> ManifestEntry:
    """Convert a stat result to an entry."""
    kind = _ENTRY_TYPES.get(stat.S_IFMT(found.st_mode), "D")
    return ManifestEntry(
        path, kind, found.st_size if kind == "f" else 0, found.st_mtime_ns, stat.S_IMODE(found.st_mode), found.st_uid,
        found.st_gid, found.st_nlink, found.st_ino, target, attributes=attributes,
    )  # fmt: skip


def _nanoseconds(created: str) -> int:
    from datetime import datetime  # few files rot

    return int(datetime.fromisoformat(created).timestamp() * 1_000_000) * 1_000 if created else 0


def _same(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )
