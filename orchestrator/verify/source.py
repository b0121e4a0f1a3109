"""The review of a copy: its entries as the source has them now, beside what the copy holds."""

import weakref
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect
from orchestrator.domain.source_tree import SourceTree
from orchestrator.process.background import nameless_file
from orchestrator.process.scripts import end_whole_function, script_command
from orchestrator.verify.attributes import (
    NO_ATTRIBUTES,
    OWN_NAMES,
    UNRECORDED,
    attribute_differences,
    keep_parts,
    parse_attributes,
)
from orchestrator.verify.entry import Tolerance, differences, parse_listing, split_records
from orchestrator.verify.shared_files import SharedFiles
from orchestrator.verify.tree_attributes import TreeAttributes

if TYPE_CHECKING:
    from orchestrator.verify.completeness import NameComparison

_FORMAT = r"//%y\t%s\t%T@\t%m\t%U\t%G\t%n\t%i\t%l\t%C@\0"
_HERE = b"./"  # begins each path in a listing of several folders
_FEW = 1000
_BEHIND = b"\xff" * 4096
_ABSENT = b"absent"
_PIECE = 1 << 18
_FILE, _FOLDER = b"fd"


def source_command(source: SourceTree, *, one_filesystem: bool, attributes: bool) -> Command:
    """Build the command that lists a source with the times of change and, where asked for, attributes."""
    form = f"{'%p' if source.parts else '%P'}{_FORMAT}"
    words = ("one-filesystem" if one_filesystem else "", "attributes" if attributes else "", form)
    values = (source.root.path, *words, *(f"./{part}" for part in source.parts))
    return script_command(
        "verify", "list-source.sh", *values, effect=Effect.READS, host=source.root.host, before=end_whole_function()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """An entry of the copy that is not as the source's. `what`: the differences; empty for names that share a file too many.

    `of_attributes`: of access lists and attributes alone.
    """

    path: bytes
    kind: str
    what: tuple[str, ...]
    told: bytes  # the source's record, to see whether it changes
    of_attributes: bool = False


class SourceComparison:
    """A comparison of the listing of a copy with its source's, entry by entry, both sorted.

    `elapsed`: the seconds since the copy began. What the source changed meanwhile is no difference: the next run copies it.
    `stored`: the copy has no attribute by a name of rsync's own; `own_names`: so many entries of the source have some.
    `asked`: where the names are noted whose attributes the copy must be asked for, see `asked_names`; `asks_all`: those of all. `names`: is told
    which names both have, and which one side alone.
    """

    def __init__(
        self, tolerance: Tolerance, *, elapsed: Callable[[], float], skipped: frozenset[bytes], mirror: bool, links: bool,
        parts: str, folder: str, names: "NameComparison | None" = None, stored: bool = False,
    ) -> None:  # fmt: skip
        self._stored = stored
        self.own_names = 0
        self._tolerance, self._elapsed, self._skipped = tolerance, elapsed, skipped
        self._mirror, self._links, self._parts = mirror, links, parts
        self.names = names
        self._shared = SharedFiles(folder)
        self._asked = nameless_file(folder)
        weakref.finalize(self, self._asked.close)
        self._folder = folder
        self.asked = 0
        self.asks_all = False
        self.differences: list[Difference] = []
        self.count = 0
        self.attributes = False
        self._began = 0.0
        self._changed: set[bytes] = set()
        self.odd_times = self.attribute_differences = 0  # among `count`

    @property
    def began_ns(self) -> int:
        """Return when the copy began, by the clock of the source's machine, in nanoseconds since 1970."""
        return int(self._began * 10**9) - 1000  # what a float has of it

    def begin(self, records: Iterator[bytes]) -> Iterator[bytes]:
        """Take the time from the first record; yield those of entries. What is left then are attributes."""
        now = float(next(records))
        self._began = now - self._elapsed()
        if self.names:
            self.names.begin(now)
        return (record.removeprefix(_HERE) for record in iter(lambda: next(records, b""), b""))

    def read_attributes(self, records: Iterator[bytes]) -> Iterator[bytes]:
        """Yield the records of attributes."""
        first = next(records, None)
        if first == _ABSENT or not self._parts:
            return
        self.attributes = True
        if first is not None:
            lines = chain((first,), records)
            yield from parse_attributes(self._without_own(lines) if self._stored else lines)

    def take_attributes(self, noted: TreeAttributes) -> Iterator[bytes]:
        """Yield the records of attributes that were read beside a listing, once that was read to its end."""
        self.attributes, self.own_names, self._changed = True, noted.own_names, noted.changed
        return noted.records()

    def _without_own(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield getfattr's lines without those of rsync's own names, which a copy with fake-super does not have; count their entries."""
        counted = False
        for line in lines:
            own = line.startswith(OWN_NAMES)
            self.own_names += own and not counted
            counted = own or (counted and line != b"")
            if not own:
                yield line

    def join(
        self, listing: Iterable[bytes], source: Iterable[bytes], attributes: Iterable[bytes]
    ) -> Iterator[tuple[bytes, str]]:
        """Yield the copy's records, each with the text of its attributes as the source has them."""
        theirs, texts = iter(source), iter(attributes)
        other = next(theirs, _BEHIND)
        text = next(texts, _BEHIND)
        none = NO_ATTRIBUTES if self.attributes else UNRECORDED
        names, there, changed = self.names, False, self._changed
        began = b"%.9f" % self._began  # as find prints times: ten digits before the point, from 2001 to 2286
        for record in listing:
            if there:
                other, there = next(theirs, _BEHIND), False
            # Most entries of a copy are files with one name, no attributes, and as at a source that did not change.
            alike = record[: record.rfind(b"\t", 0, -1) + 1]  # without the inode
            if (
                text is _BEHIND
                and other.startswith(alike)
                and alike.endswith(b"\t1\t")
                and record[record.index(b"//") + 2] == _FILE
                and record.endswith(b"\t")
                and not (changed or self.asks_all)
                and other[other.rindex(b"\t") + 1 :] < began
            ):
                there = True
                yield record, none
                continue
            end = record.index(b"//") + 2
            key = record[:end]
            while other[:end] < key:
                if names:
                    names.note_source(other)
                other = next(theirs, _BEHIND)
            while text[:end] < key:
                text = next(texts, _BEHIND)
            there = other.startswith(key)
            shared = False
            if there:
                shared = self._compare(record, other, end)
                if names and other[end] == _FOLDER:
                    names.note_both(other, end)
            elif names:
                names.note_copy(record)
            told = none
            if text.startswith(key):
                told = keep_parts(text[end:].decode("ascii"), self._parts)
            if self.attributes and (
                self.asks_all
                or told != none
                or not there
                or shared
                or not other[other.rindex(b"\t") + 1 :] < began
                or key[:-2] in changed
            ):
                self._ask(key, told if there else UNRECORDED, other if there else b"")
            yield record, told
        if names:
            for left in chain(() if there or other is _BEHIND else (other,), theirs):
                names.note_source(left)
        self._add_apart(self._shared.late())

    def _ask(self, key: bytes, told: str, other: bytes) -> None:
        self.asked += 1
        self._asked.write(b"%b%b\t%b\0" % (key, told.encode(), other))

    def asked_names(self) -> Iterator[bytes]:
        """Yield the names that have attributes or share a file, of which the source knows nothing, or that changed there since the copy began."""
        for record in self._records():
            yield record[: record.index(b"//")]

    def _records(self) -> Iterator[bytes]:
        return split_records(self._pieces())

    def _pieces(self) -> Iterator[bytes]:
        """Yield what was noted, from a place of its own: two may read at once, one a little behind the other."""
        at = 0
        while True:
            self._asked.seek(at)
            if not (piece := self._asked.read(_PIECE)):
                return
            at += len(piece)
            yield piece

    def join_attributes(self, found: Iterable[bytes]) -> dict[bytes, str]:
        """Compare attributes with those of the copy, sorted; return those of entries that are not as the source's."""
        changed: dict[bytes, str] = {}
        texts = iter(found)
        text = next(texts, _BEHIND)
        for record in self._records():
            end = record.index(b"//") + 2
            path, (expected, _, other) = record[: end - 2], record[end:].partition(b"\t")
            while text[:end] < record[:end]:
                text = next(texts, _BEHIND)
            has = keep_parts(text[end:].decode("ascii"), self._parts) if text[:end] == record[:end] else NO_ATTRIBUTES
            told = attribute_differences(expected.decode("ascii"), has)
            if other and told and self._is_old(other, path):
                kind = chr(other[end])
                self._add(
                    Difference(path=path, kind=kind, what=told, told=expected + b"\t" + other, of_attributes=True)
                )
            if has != expected.decode("ascii"):
                changed[path] = has
        return changed

    def _is_old(self, other: bytes, path: bytes) -> bool:
        """Return whether the source's entry is as it was when the copy began, and was copied at all."""
        return float(other.rpartition(b"\t")[2]) < self._began and path not in self._skipped

    def _compare(self, record: bytes, other: bytes, end: int) -> bool:
        """Compare two records of an entry; return True for a file of a mirror with several names.

        Why: where the source has them apart by now, rsync gives one file the attributes of each name, one after the other.
        """
        same, links, inode, _ = record.rsplit(b"\t", 3)  # of a file, as its target is empty
        named = record[end : end + 2] == b"f\t" and links != b"1"
        shared = named and self._mirror  # in a point each file that is linked to the one before has several names
        if record[end : end + 2] == b"f\t" and other.startswith(same + b"\t"):
            there = other[len(same) + 1 :].split(b"\t", 2)[1]
            if self._links and named and self._shared.is_apart(inode, there, other):
                self._add_apart((other,))
            return shared
        found = parse_listing(record)
        if self._mirror and not found.path:
            return shared
        told = differences(parse_listing(other.rpartition(b"\t")[0]), found, self._tolerance)
        if told and self._is_old(other, found.path):
            self._add(Difference(path=found.path, kind=found.kind, what=told, told=other))
        return shared

    def _add_apart(self, others: Iterable[bytes]) -> None:
        """Note names that share a file with another one, which the source has apart."""
        for other in others:
            path = other[: other.index(b"//")]
            if self._is_old(other, path):
                self._add(Difference(path=path, kind="f", what=(), told=other))

    def _add(self, found: Difference) -> None:
        self.count += 1
        self.odd_times += is_unstorable(found, refused=False)
        self.attribute_differences += found.of_attributes
        if len(self.differences) < _FEW:
            self.differences.append(found)


_USUAL_TIMES_NS = (
    315_532_800 * 10**9,
    2**31 * 10**9,
)  # 1980 to 2038: what every filesystem holds; FAT begins with 1980


def is_unstorable(entry: Difference, *, refused: bool) -> bool:
    """Return whether no more is lost than a time that few filesystems hold, or attributes. `refused`: the target had no room for some."""
    if entry.of_attributes or not entry.what or not all(what.startswith("mtime ") for what in entry.what):
        return refused and entry.of_attributes
    source = parse_listing(entry.told.rpartition(b"\t")[0])
    return not _USUAL_TIMES_NS[0] <= source.mtime_ns < _USUAL_TIMES_NS[1]


def describe_difference(entry: Difference) -> str:
    """Return what is different, for a message."""
    return "; ".join(entry.what) or "shares its file with another name, which it does not in the source"


def attributes_command(tree: Location, *, whole: bool = False) -> Command:
    """Build the command that prints the attributes of the entries that are named, NUL-terminated, on its input.

    `whole`: of all entries of the tree.
    """
    words = ("all" if whole else "",)
    return script_command(
        "verify",
        "list-attributes.sh",
        tree.path,
        *words,
        effect=Effect.READS,
        host=tree.host,
        before=end_whole_function(),
    )


def parse_copy_attributes(records: Iterator[bytes]) -> Iterator[bytes] | None:
    """Return the records of `attributes_command`; None where the machine has no getfattr."""
    first = next(records, None)
    if first == _ABSENT:
        return None
    return iter(()) if first is None else parse_attributes(chain((first,), records))
