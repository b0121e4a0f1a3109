"""The proof that a copy holds each entry that its source has, and no other: name by name, from the sorted listings of both.

Records are those of `listing_command` and `source_command`. What the source changed since the look that decided what is copied is no
lack: the next run copies it. A folder that was moved comes with entries that nobody changed, so the folders above an entry count too.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import IO

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import CopiedEntries
from orchestrator.verify.entry import split_records

NEVER_COPIED = (b".~poolferry-partial~", b".poolferry-restoring.json")  # an older version copied them, at any path
REMAINDERS = (b".~poolferry-partial~",)  # what rsync keeps of half-copied files: no part of any tree
_BEHIND = b"\xff" * 4096
_FEW = 5
_MOST_FOLDERS = 100_000  # that changed; what lies in others counts as lacking, and the next look decides
_PIECE = 1 << 18
_MISSING, _SURPLUS = b"-", b"+"


class NotSwept(Exception):
    """A listing has the name of a remainder in it, if only in the path to which a link leads."""


def without_remainders(records: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same records. Raises: NotSwept."""
    (name,) = REMAINDERS
    for record in records:
        if name in record:
            raise NotSwept
        yield record


def require_swept(records: list[bytes]) -> None:
    """Check many records for the same. Raises: NotSwept."""
    (name,) = REMAINDERS
    if name in b"\0".join(records):
        raise NotSwept


@dataclass(frozen=True, slots=True, kw_only=True)
class IncompleteCopy:
    """The entries that a copy lacks, and those that its source has not: the counts, and the first names."""

    missing: int
    surplus: int
    missing_names: tuple[bytes, ...]
    surplus_names: tuple[bytes, ...]


class NameComparison:
    """A comparison of names that is fed from a merge of both listings. `spool`: an empty file for names that one side alone has.

    `skipped`: paths that the copy left out with a warning, with all below them. `elapsed`: the seconds since the look began that decided
    what is copied.
    """

    def __init__(
        self, spool: IO[bytes], copied: CopiedEntries, *, skipped: Collection[bytes], elapsed: Callable[[], float]
    ) -> None:
        self._spool, self._copied, self._skipped, self._elapsed = spool, copied, skipped, elapsed
        self._began = 0.0
        self._changed: set[bytes] = set()  # folders that both have, and in which the source changed something
        self._came: set[bytes] = set()  # new folders of the source
        self._surplus: set[bytes] = set()  # folders that the copy alone has

    def begin(self, now: float) -> None:
        """Take the source's time, in seconds, at which its listing begins."""
        self._began = now - self._elapsed()

    def note_both(self, record: bytes, end: int) -> None:
        """Note a folder that both have. `record`: the source's; `end`: where its path and `//` end."""
        if self._is_new(record):
            _note(self._changed, record[: end - 2])

    def note_source(self, record: bytes) -> None:
        """Note an entry that the source alone has."""
        path, _, rest = record.partition(b"//")
        if rest[:1] in self._copied.never or not self._copied.reserved.isdisjoint(path.split(b"/")):
            return
        if self._is_new(record):
            if rest[:1] == b"d":
                _note(self._came, path)
        elif not self._is_skipped(path):
            self._spool.write(_MISSING + path + b"\0")

    def note_copy(self, record: bytes) -> None:
        """Note an entry that the copy alone has."""
        path, _, rest = record.partition(b"//")
        if path in self._copied.above or self._is_skipped(path):
            return
        if rest[:1] == b"d":
            _note(self._surplus, path)
        self._spool.write(_SURPLUS + path + b"\0")

    def result(self) -> IncompleteCopy | None:
        """Return what is lacking; None for a copy that is whole."""
        names: dict[bytes, list[bytes]] = {_MISSING: [], _SURPLUS: []}
        counts = {_MISSING: 0, _SURPLUS: 0}
        self._spool.seek(0)
        for record in split_records(iter(lambda: self._spool.read(_PIECE), b"")):
            side, path = record[:1], record[1:]
            if self._came_along(path) if side == _MISSING else self._has_just_gone(path):
                continue
            counts[side] += 1
            if len(names[side]) < _FEW:
                names[side].append(path)
        if not any(counts.values()):
            return None
        return IncompleteCopy(
            missing=counts[_MISSING], surplus=counts[_SURPLUS], missing_names=tuple(names[_MISSING]),
            surplus_names=tuple(names[_SURPLUS]),
        )  # fmt: skip

    def _is_new(self, record: bytes) -> bool:
        return float(record.rpartition(b"\t")[2]) >= self._began

    def _is_skipped(self, path: bytes) -> bool:
        return bool(self._skipped) and (path in self._skipped or any(each in self._skipped for each in _above(path)))

    def _came_along(self, path: bytes) -> bool:
        """Return whether a folder above it is new at the source: it was moved there with all in it."""
        return bool(self._came) and any(each in self._came for each in _above(path))

    def _has_just_gone(self, path: bytes) -> bool:
        """Return whether the source took something out of the folder in which it lay, or the first above that is left."""
        return next(each for each in _above(path) if each not in self._surplus) in self._changed


def _note(folders: set[bytes], path: bytes) -> None:
    if len(folders) < _MOST_FOLDERS:
        folders.add(path)


def _above(path: bytes) -> Iterator[bytes]:
    """Yield the folders above a path, the nearest first, the root last."""
    while path:
        path = path.rpartition(b"/")[0]
        yield path


def select_records(records: Iterable[bytes], names: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the records of the names, and the root's. `names`: each with `//` behind it, sorted as the records are."""
    wanted = iter(names)
    name = next(wanted, _BEHIND)
    for record in records:
        key = record[: record.index(b"//") + 2]
        while name < key:
            name = next(wanted, _BEHIND)
        if name == key or key == b"//":
            yield record
