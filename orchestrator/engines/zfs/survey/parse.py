"""Parsers for the output of the zfs programs: listings, properties, processes."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain

from orchestrator.domain.answers import instant_at
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import check_zfs_names
from orchestrator.domain.place import Location
from orchestrator.engines.zfs.model import (
    FLAGS,
    PLACEHOLDER,
    RECEIVE_MARK,
    RECEIVE_MARK_BARE,
    WAITS,
    Bookmark,
    ChangedEntry,
    Dataset,
    DatasetType,
    ReceiveProcess,
    SendFlags,
    SideSurvey,
    Snapshot,
    SshAddresses,
    parse_flags,
)
from orchestrator.engines.zfs.plan.hold_names import ReplicationTargetId, parse_hold_bookmark

_VERSION = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?")
ABSENT = "ABSENT"  # instead of a pool's health: there is no such pool
_ON, _OWN = "on", "local"
# Of each property that can weaken a copy, or burden its pool, the values that do not. Source: zfsprops(7).
_STRONG = ("on", "fletcher4", "sha256", "sha512", "skein", "edonr", "blake3")
_EXPOSING = (("readonly", "off"), ("canmount", "on"))
_HARMLESS = {"checksum": _STRONG, "copies": ("1",), "dedup": ("off",), "sync": ("standard",), "zoned": ("off", "-")}
_ABSURD = 1 << 60  # a larger estimate is a known error of `zfs send -n` (openzfs 1067, 16691)
_NUMBER = re.compile(r"-?\d+")
_RIGHTS_OF = re.compile(r"-{4} Permissions on (.*?) -+")


class UnreadableListing(ValueError):
    """The error for a listing in an unknown form: it is never treated as an empty one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SideListing:
    """The output of a survey of one side, in its parts. `health`: of the pool, ABSENT where there is none.

    `there`: the root dataset exists; `whole`: the listing is complete.
    """

    root: bool
    sudo: bool
    mbuffer: bool
    version: tuple[int, ...]
    pool_guid: int
    health: str
    there: bool
    whole: bool
    above: Mapping[str, tuple[int | None, bool]]
    properties: Mapping[str, Mapping[str, tuple[str, str]]]
    snapshots: Mapping[str, Sequence[Snapshot]]
    bookmarks: Mapping[str, Sequence[Bookmark]]
    created: Mapping[int, datetime]
    wire: SshAddresses | None = None


def mountpoint_without_altroot(mountpoint: str, altroot: str) -> str:
    """Return a mountpoint without its pool's altroot. `altroot`: the pool's property; "-" where it has none."""
    folder = altroot.rstrip("/")
    inside = altroot.startswith("/") and f"{mountpoint}/".startswith(f"{folder}/")
    return (mountpoint[len(folder) :] or "/") if inside else mountpoint


def parse_version(text: str) -> tuple[int, ...]:
    """Parse the numbers of a version such as "2.3.9-0+deb13u1"; () where there are none."""
    match = _VERSION.search(text[:100])
    return tuple(int(part) for part in match.groups() if part) if match else ()


def parse_survey(lines: Iterable[bytes], *, doubts: bool = True) -> SideListing:
    """Parse the output of a survey, line by line. Raises: ValueError for output that is no listing.

    `doubts` False: a dataset may have a last property of ours that is "on", as nobody can be asked for these apart.
    """
    reading = _ListingReader(doubts=doubts)
    for line in lines:
        if line:
            reading.feed(line.decode("utf-8", "surrogateescape"))
    return reading.look()


# The parts of a survey, each with those that may follow it.
_PARTS = {
    "": ("=here",), "=here": ("=wire", "=pool"), "=wire": ("=pool",), "=pool": ("=above", "=datasets"),
    "=datasets": ("=absent", "=marks", "=snapshots"), "=marks": ("=snapshots",), "=absent": ("=above", "=end"), "=snapshots": ("=end",),
    "=above": ("=datasets", "=end"), "=end": (),
}  # fmt: skip


class _ListingReader:
    """One output while it is parsed: a line that begins with "=" starts a part, as no dataset's name can begin so.

    The value of a property may have several lines, which then pass for others. No listing are: parts out of their order; datasets
    whose properties are not the first one's, in its order and together; and a dataset that has a last property of ours, as the
    lines of its value would stand behind a whole dataset. Who asks then asks for these properties apart.
    """

    def __init__(self, *, doubts: bool) -> None:
        self._doubts = doubts
        self._part = ""
        self._before = ""  # the first line of text before the answer
        self._here: list[str] = []
        self._pool: list[str] = []
        self._wire: list[str] = []
        self._seen: set[str] = set()
        self._above: dict[str, tuple[int | None, bool]] = {}
        self._properties: dict[str, dict[str, tuple[str, str]]] = {}
        self._kinds = ""  # of the first dataset's properties, in their order
        self._now: dict[str, tuple[str, str]] = {}  # the properties of the dataset that is told now
        self._snapshots: dict[str, list[Snapshot]] = {}
        self._bookmarks: dict[str, list[Bookmark]] = {}
        self._created: dict[int, datetime] = {}

    def feed(self, line: str) -> None:
        if self._part == "=snapshots" and not line.startswith("="):
            self._snapshot(line)
        elif self._part in ("=datasets", "=marks") and not line.startswith("="):
            self._property(line)
        elif line.startswith("="):
            self._open(line)
        elif self._part == "=above":
            name, available, encryption = _fields(line, 3)
            self._above[name] = (parse_number(available), encryption not in ("off", "-"))
        elif self._part:
            raise UnreadableListing(f"not as zfs prints it: {line!r}")
        elif not self._before:
            self._before = line

    def _open(self, line: str) -> None:
        part, *rest = line.split(" ", 4)
        self._end_dataset()
        if self._before and part == "=here":
            raise UnreadableListing(f"a login there prints text of its own before every answer, {self._before!r}")
        if part not in _PARTS[self._part] or part in self._seen - {"=above"}:
            raise UnreadableListing(f"not as zfs prints it: {line!r}")
        self._part = part
        self._seen.add(part)
        if self._part == "=here":
            self._here = rest
        elif self._part == "=pool":
            self._pool = rest
        elif self._part == "=wire":
            self._wire = rest

    def _property(self, line: str) -> None:
        name, kind, *value, source = _fields(line, 4)
        told = self._properties.get(name)
        if told is None:
            self._end_dataset()
            told = self._properties[name] = self._now = {}
        elif told is not self._now and self._part == "=datasets":
            raise UnreadableListing(f"lines of {name!r} do not stand together: a property has a value of several lines")
        if kind in told:
            raise UnreadableListing(f"{kind} of {name!r} is told twice: a property has a value of several lines")
        told[kind] = ("\t".join(value).strip(), source)

    def _end_dataset(self) -> None:
        """Check the properties of a dataset that is told whole now."""
        if not self._now or self._part != "=datasets":
            return
        kinds = " ".join(self._now)
        self._kinds = self._kinds or kinds
        last = next(reversed(self._now))
        value, source = self._now[last]
        if kinds != self._kinds or (":" in last and source != "-" and (self._doubts or value != _ON)):
            raise UnreadableListing("a property may have a value of several lines")

    def _snapshot(self, line: str) -> None:
        name, guid, createtxg, *created = _fields(line, 3)
        dataset, at, mark = name.partition("@")
        if at:
            found = Snapshot(name=mark, guid=int(guid), createtxg=int(createtxg))
            self._snapshots.setdefault(dataset, []).append(found)
        else:
            dataset, _, mark = name.partition("#")
            kept = Bookmark(name=mark, guid=int(guid), createtxg=int(createtxg))
            self._bookmarks.setdefault(dataset, []).append(kept)
        if created and at:
            self._created[int(guid)] = instant_at(int(created[0]))

    def look(self) -> SideListing:
        if self._before:
            raise UnreadableListing(f"not as zfs prints it: {self._before!r}")
        if len(self._here) != 4 or len(self._pool) != 2:
            raise UnreadableListing("the look ended before it said anything")
        user, sudo, mbuffer, version = self._here
        check_zfs_names(chain(self._above, self._properties, self._snapshots, self._bookmarks))
        check_zfs_names(one.name for many in self._snapshots.values() for one in many)
        check_zfs_names(one.name for many in self._bookmarks.values() for one in many)
        return SideListing(
            root=user == "0", sudo=sudo == "sudo", mbuffer=mbuffer == "mbuffer", version=parse_version(version),
            pool_guid=parse_number(self._pool[0]) or 0, health=self._pool[1],
            there="=datasets" in self._seen and "=absent" not in self._seen, whole="=end" in self._seen,
            above=self._above, properties=self._properties, snapshots=self._snapshots, bookmarks=self._bookmarks,
            created=self._created,
            # Source: ssh(1), SSH_CONNECTION: address and port of the client, then of the server.
            wire=SshAddresses(here=self._wire[0], there=self._wire[2]) if len(self._wire) == 4 else None,
        )  # fmt: skip


def _fields(line: str, least: int) -> list[str]:
    fields = line.split("\t")
    if len(fields) < least:
        raise UnreadableListing(f"not as zfs prints it: {line!r}")
    return fields


def parse_number(text: str) -> int | None:
    """Parse a number as `-p` prints it; None for "-" and for nothing."""
    return int(text) if _NUMBER.fullmatch(text) else None


def make_side(look: SideListing, root: Location) -> SideSurvey:
    """Return the side that a survey found, its datasets by their names below the root. Raises: ValueError."""
    path = root.path
    for name in look.properties:
        if not f"{name}/".startswith(f"{path}/"):
            raise UnreadableListing(f"not at or below {path}: {name!r}")
    datasets = {
        name[len(path) + 1 :]: _dataset(name[len(path) + 1 :], told, look.snapshots.get(name), look.bookmarks.get(name))
        for name, told in look.properties.items()
    }
    above = _above(path)
    near = max((name for name in look.above if name != path), key=len, default=None)
    own = look.properties.get(path, {}).get("available")
    available = parse_number(own[0]) if own else look.above[near][0] if near else None
    return SideSurvey(
        root=root, pool_guid=look.pool_guid, version=look.version, available=available,
        programs=look.root or look.sudo, sudo=look.sudo, mbuffer=look.mbuffer, wire=look.wire,
        above=frozenset(above if look.there else look.above), datasets=datasets,
        inherits_encryption=near is not None and look.above[near][1],
    )  # fmt: skip


def _above(path: str) -> tuple[str, ...]:
    parts = path.split("/")
    return tuple("/".join(parts[:depth]) for depth in range(1, len(parts)))


def ancestors(path: str) -> tuple[str, ...]:
    """Return the datasets above one, the pool's root dataset first."""
    return _above(path)


def _by_txg(found: Snapshot | Bookmark) -> int:
    return found.createtxg


def _dataset(
    name: str,
    told: Mapping[str, tuple[str, str]],
    snapshots: Sequence[Snapshot] | None,
    bookmarks: Sequence[Bookmark] | None,
) -> Dataset:
    value = {key: (None if text == "-" else text) for key, (text, _) in told.items()}
    kind, guid, createtxg = value.get("type"), value.get("guid"), value.get("createtxg")
    if kind is None or guid is None or createtxg is None:
        raise UnreadableListing(f"zfs listed too little about the dataset {name or 'at the root'!r}")
    token, whole = value.get("receive_resume_token"), tuple(sorted(snapshots or (), key=_by_txg))
    written, marked = value.get("written"), told.get(PLACEHOLDER) == (_ON, _OWN)
    return Dataset(
        name=name, kind=DatasetType(kind), guid=int(guid), createtxg=int(createtxg), snapshots=whole,
        bookmarks=tuple(sorted(bookmarks or (), key=_by_txg)), origin=value.get("origin") or None,
        encrypted=value.get("encryption") not in (None, "off"), encryption_root=value.get("encryptionroot"),
        key_loaded=value.get("keystatus") == "available", token=token,
        partial=token is not None or value.get("inconsistent") == "1",
        written=int(written) if written else None, mounted=value.get("mounted") == "yes",
        flags=_own_flags(told), placeholder=marked and not whole, bare=marked and bool(whole),
        waits=told.get(WAITS) == (_ON, _OWN),
        used=parse_number(value.get("used") or "-"), burdens=_burdens(told),
        exposed=tuple(f"{name}={bad}" for name, bad in _EXPOSING if value.get(name) == bad),
    )  # fmt: skip


def _own_flags(told: Mapping[str, tuple[str, str]]) -> SendFlags | None:
    text, source = told.get(FLAGS, ("", ""))
    return parse_flags(text) if source == _OWN else None


def _burdens(told: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return the properties, set on the dataset itself, that its copy is better without. Inherited ones are never sent."""
    return {
        name: told[name][0]
        for name, harmless in _HARMLESS.items()
        if name in told and told[name][1] in (_OWN, "received") and told[name][0] not in harmless
    }


def find_holds(datasets: Mapping[str, Dataset], target_id: ReplicationTargetId) -> dict[str, tuple[str, ...]]:
    """Return by dataset the names of the snapshots that this copy's holds keep, as the hold bookmarks record."""
    held: dict[str, tuple[str, ...]] = {}
    for name, dataset in datasets.items():
        guids = {mark.guid for mark in dataset.bookmarks if parse_hold_bookmark(mark.name) == target_id}
        if guids:
            held[name] = tuple(snapshot.name for snapshot in dataset.snapshots if snapshot.guid in guids)
    return {name: names for name, names in held.items() if names}


def parse_plain(lines: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Parse which of the datasets take a stream without properties, by their numbers. Raises: ValueError for an answer cut short."""
    *numbers, end = lines or ("",)
    if end != "=end":
        raise UnreadableListing("the answer ended too early")
    return tuple(names[int(number)] for number in numbers if number.isdecimal() and int(number) < len(names))


def parse_receiving(lines: Iterable[str], root: str) -> dict[str, ReceiveProcess]:
    """Parse the processes that receive at or below the root, by the dataset's name below it."""
    found: dict[str, ReceiveProcess] = {}
    for pid, argv in _processes(lines):
        receives = len(argv) > 2 and argv[0].rpartition("/")[2] == "zfs" and argv[1] in ("receive", "recv")
        if receives and f"{argv[-1]}/".startswith(f"{root}/"):
            found[argv[-1][len(root) + 1 :]] = ReceiveProcess(pid=pid, ours=_is_ours(argv))
    return found


def _is_ours(argv: Sequence[str]) -> bool:
    return RECEIVE_MARK in argv or tuple(argv[2:-1]) == RECEIVE_MARK_BARE


def _processes(lines: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    pid, argv = 0, list[str]()
    for line in lines:
        if head := re.fullmatch(r"=process (\d{1,10})", line):
            yield pid, argv
            pid, argv = int(head[1]), []
        else:
            argv.append(line)
    yield pid, argv


_ESCAPED = re.compile(rb"\\0?([0-7]{3})")


def parse_changes(lines: Iterable[bytes]) -> dict[str, tuple[ChangedEntry, ...]]:
    """Parse changed entries by full name of the dataset; one whose listing is cut short is left out. Raises: ValueError."""
    found: dict[str, tuple[ChangedEntry, ...]] = {}
    dataset, folder, entries = "", "", list[ChangedEntry]()
    for line in lines:
        text = line.decode("utf-8", "surrogateescape")
        if text.startswith("=dataset "):
            dataset, folder, entries = text.removeprefix("=dataset "), "", []
        elif text.startswith("=at "):
            folder = _unescape(text.removeprefix("=at ")).rstrip("/")
        elif text == "=end":
            found[dataset] = tuple(entries)
        elif text:
            how, kind, path, *_ = _fields(text, 3)
            entries.append(ChangedEntry(how=how, folder=kind == "/", path=_below(_unescape(path), folder)))
    return found


def _unescape(text: str) -> str:
    """Return a path without octal escapes. Source: proc(5), mounts; openzfs, lib/libzfs/libzfs_diff.c, stream_bytes."""
    raw = text.encode("utf-8", "surrogateescape")
    return _ESCAPED.sub(lambda found: bytes([int(found[1], 8) & 0xFF]), raw).decode("utf-8", "surrogateescape")


def _below(path: str, folder: str) -> str:
    if not f"{path}/".startswith(f"{folder}/"):
        raise UnreadableListing(f"not below {folder!r}: {path!r}")
    return path[len(folder) + 1 :].rstrip("/")


def parse_sizes(lines: Iterable[str]) -> list[int | None]:
    """Parse the sizes that dry-run sends reported, in order; None for one that is unknown, or absurd."""
    found = [line.split("\t") for line in lines if line.startswith("size")]
    sizes = [parse_number(fields[1]) if len(fields) == 2 else None for fields in found]
    return [size if size is not None and 0 <= size < _ABSURD else None for size in sizes]


def parse_points(lines: Iterable[str]) -> Iterator[tuple[str, datetime]]:
    """Yield (name, creation time) of each snapshot of a listing, in its order. Raises: ValueError."""
    for line in lines:
        name, created = _fields(line, 2)
        check_zfs_names((name,))
        yield name.partition("@")[2], instant_at(int(created))


def parse_property_listing(lines: Iterable[bytes]) -> dict[tuple[str, str], str]:
    """Parse property values, by name and property. Raises: ValueError."""
    fields = (_fields(line.decode("utf-8", "surrogateescape"), 3) for line in lines)
    return {(name, kind): "\t".join(value) for name, kind, *value in fields}


def parse_newest(lines: Iterable[bytes]) -> dict[str, list[Snapshot]]:
    """Parse snapshots by full name of the dataset, ordered by createtxg. Raises: ValueError."""
    found: dict[str, list[Snapshot]] = {}
    for line in lines:
        name, guid, createtxg = _fields(line.decode("utf-8", "surrogateescape"), 3)
        dataset, _, mark = name.partition("@")
        found.setdefault(dataset, []).append(Snapshot(name=mark, guid=int(guid), createtxg=int(createtxg)))
    for snapshots in found.values():
        snapshots.sort(key=_by_txg)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegatedRights:
    """Our user on a side and the permissions delegated to it, at the dataset itself or at the nearest one above; and its pool."""

    user: str
    read_only: bool
    resumable: str
    dataset: str
    rights: frozenset[str]
    origins: frozenset[tuple[str, str]] = frozenset()

    def granted_on(self, right: str) -> tuple[str, ...]:
        """Return the datasets on which a right was granted: this one, or such as it lies in."""
        return tuple(sorted(where for name, where in self.origins if name == right)) or (self.dataset,)


def parse_rights(lines: Iterable[str]) -> DelegatedRights:
    """Parse our permissions from `zfs allow`: lines like "<tab>user ferry create,mount"; sets (@name) are skipped."""
    told = {"=user": "", "=groups": "", "=readonly": "", "=resumable": "", "=at": ""}
    rights, origins, where = set[str](), set[tuple[str, str]](), ""
    for line in lines:
        word, _, rest = line.strip().partition(" ")
        where = heading[1] if (heading := _RIGHTS_OF.fullmatch(line)) else where
        granted = ""
        if word in told:
            told[word] = rest
            continue
        who, _, named = rest.partition(" ")
        if word == "everyone":
            granted = rest
        elif (word == "user" and who == told["=user"]) or (word == "group" and who in told["=groups"].split()):
            granted = named
        rights.update(filter(None, granted.split(",")))
        origins.update((right, where) for right in granted.split(",") if right and where)
    return DelegatedRights(
        user=told["=user"], read_only=told["=readonly"] == "on", resumable=told["=resumable"], dataset=told["=at"],
        rights=frozenset(rights), origins=frozenset(origins),
    )  # fmt: skip
