r"""Parsers of the output of rsync and of the survey scripts, and the meter of a running copy.

rsync writes control bytes and bytes that are no UTF-8 as \#ooo (three octal digits), and the \ of a literal \#ooo too, so
decoding loses nothing (41 of 41 hostile names were decoded to the byte, with rsync 3.5.0, in C and C.UTF-8).
"""

import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice

from orchestrator.domain.answers import NOT_READ, instant_at, parse_count, parse_json
from orchestrator.domain.errors import OrchestratorError, VerificationFailed
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.gate import GateHello, parse_hello
from orchestrator.domain.names import JOB_NAME, parse_point_name
from orchestrator.domain.place import Location
from orchestrator.domain.point import Changes, FolderChanges, RestorePoint
from orchestrator.domain.source_tree import SourceTree
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.engine import ManifestCounts, SkippedEntries
from orchestrator.engines.rsync.large_files import LargeFilesReader
from orchestrator.engines.rsync.model import (
    CANNOT_CLOSE,
    MARKER,
    MOST_ALTERED,
    MOST_DIFFERING,
    MOST_JOINED,
    OURS,
    PARTIALS,
    RESERVED,
    ROOT,
    TEMPORARY,
    UNREADABLE_OWNER,
    UNWRITTEN,
    WORK,
    CountsEqual,
    DifferingPaths,
    RsyncProgram,
    SourceSurvey,
    TargetSurvey,
)

_MOVED = re.compile(rb"pf:[><ch]f[^|\n]*\|[^|\n]*\|[^|\n]*\| *([0-9a-f]*) *\|([^\n]*)").findall
_OCTAL = rb"\\#([0-3][0-7]{2})"  # a number above 377 is no byte and no escape of rsync's
_PROGRESS = rb"[\r\n]\s*(\d{1,18})\s+\d+%\s"  # no disk has longer numbers
_RECENT = 4096
_HEADS = (b"d", b"a", b"n", b"ap", b"np")  # a folder; absent, or no folder; with a folder above it
_COUNT = rb"(?m)^(Number of files|Total transferred file size|Literal data): (-?\d{1,20})(?!\d)"  # rsync's sums of sizes overflow
_REGULAR = rb"(?m)^Number of files: \d{1,18} \((?:reg: (\d{1,18})(?!\d))?"
_SUM_ESCAPE = re.compile(rb"\\[\\nr]")
_SUM_MEANS = {b"\\\\": b"\\", b"\\n": b"\n", b"\\r": b"\r"}
_AT_ONCE = 1000  # lines
_EXAMPLES = 20
_CLOSING = 100  # lines; the final statistics have fewer than 20
# Lines of --debug=FILTER. A line end in a name is written out, so no name makes one. Source: rsync, exclude.c, report_filter_result.
_ABOUT_FILTERS = (b"[sender] ", b"[generator] ", b"[receiver] ")
_NAMES = b"|".join(re.escape(name.encode()) for name in RESERVED)
_HIDDEN = rb"\[sender\] hiding \w+ (.*) because of pattern (?:%s)$" % _NAMES
_RESERVED = {name.encode() for name in RESERVED}
_MOST_OTHERS = 1_000_000  # each pipe and socket of a tree has a line of its own
_MOST_FOLDERS = 1_000_000


def parse_name(text: bytes) -> bytes:
    """Decode a name that rsync escaped."""
    return re.sub(_OCTAL, lambda match: bytes((int(match[1], 8),)), text) if b"\\#" in text else text


def format_moved_line(path: bytes) -> bytes:
    """Return a line that `parse_moved` reads as a file without a digest."""
    return b"pf:>f|0|0||" + b"".join(b"\\#%03o" % byte for byte in path) + b"\n"


def parse_moved(lines: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
    """Yield (path, xxh128 in hex) of each file in the kept output of a copying step; "" where it shows no digest.

    A hard link, or a file with new metadata alone, is made without reading; progress in between is ignored.
    """
    told = iter(lines)
    while many := b"\n".join(islice(told, _AT_ONCE)):
        for digest, name in _MOVED(many):
            yield parse_name(name) if b"\\#" in name else name, digest.decode()


def parse_sums(lines: Iterable[bytes]) -> Iterator[tuple[bytes, str]]:
    """Yield (path, digest) of each line of sha256sum; a line with escaped newlines or backslashes begins with a backslash."""
    for line in lines:
        escaped = line.startswith(b"\\")
        digest, _, name = line.rstrip(b"\n").lstrip(b"\\").partition(b"  ")
        path = _SUM_ESCAPE.sub(lambda match: _SUM_MEANS[match[0]], name) if escaped else name
        yield path.removeprefix(b"./"), f"sha256:{digest.decode()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetMarker:
    """The marker of a target: the job that owns the copies."""

    job: str
    coarse: bool
    stored: bool = False


_FORMAT, _MARKER_KEYS = 1, {"format", "job", "coarse", "fake-super"}
_UNREADABLE = TargetMarker(job=UNREADABLE_OWNER, coarse=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RsyncStats:
    """The final statistics of rsync."""

    files: int  # entries in the source's list
    regular: int
    literal: int
    transferred_size: int


def parse_stats(text: bytes) -> RsyncStats | None:
    """Parse the statistics that --stats prints; None when rsync ended before them."""
    found = {key: int(number) for key, number in re.findall(_COUNT, text)}
    regular = re.search(_REGULAR, text)
    if len(found) < 3 or (regular is None and found[b"Number of files"]):  # no kinds for an empty list
        return None
    return RsyncStats(
        files=found[b"Number of files"],
        regular=int(regular[1] or 0) if regular else 0,
        literal=found[b"Literal data"],
        transferred_size=found[b"Total transferred file size"],
    )


def parse_progress(chunk: bytes) -> int | None:
    """Return the bytes so far, from the last progress record at the end of a chunk of output."""
    found = re.findall(_PROGRESS, chunk[-_RECENT:])
    return int(found[-1]) if found else None


class DryRunReader:
    """A counter of the itemized lines of a survey; its memory use does not grow with their number. `listed_bytes`: of files that are copied."""

    def __init__(self, tree: SourceTree | None = None, *, most_differing: int = MOST_DIFFERING) -> None:
        self._tree = tree or SourceTree(root=Location(path="/"))
        self._most_differing = most_differing
        self._changed_folders: list[bytes] = []
        self._present: list[bytes] = []
        self.deleted = self.changed = self.created = self.other = 0
        self.files_gone = self.files_new = 0
        self.deleted_names: list[bytes] = []
        self.changed_names: list[bytes] = []
        self.altered: list[bytes] = []
        self.reserved: list[bytes] = []
        self._differing: list[bytes] = []
        self._joined: list[bytes] = []
        self.folders: dict[bytes, list[int]] = {}
        self._tail: deque[bytes] = deque(maxlen=_CLOSING)
        self._others = 0
        self._left_out = self._files_left_out = self.listed_bytes = 0
        self.large = LargeFilesReader(parse_name)

    def feed(self, line: bytes) -> None:
        """Read one line of the survey's output."""
        if not line.startswith(b"pf:"):
            if hidden := re.match(_HIDDEN, line):
                self._note_reserved(hidden[1])
                return
            if line.startswith(_ABOUT_FILTERS):
                return
            self._tail.append(line)
            self._others += 1
            if self._others > _MOST_OTHERS:
                raise ValueError("lines without end that are none of a dry run")
            return
        item, size, name = line[3:].split(b"|", 2)
        if item[1:2] != b"d" or item[2:3] == b"+" or item.startswith(b"*"):
            self._note_differing(item, name)
        elif len(self._changed_folders) <= self._most_differing:
            self._changed_folders.append(parse_name(name.removesuffix(b"/")))
        if item.startswith(b"*deleting"):
            self.deleted += 1
            self.files_gone += not name.endswith(b"/")
            self._note(self.deleted_names, name, 0)
        elif name.removesuffix(b"/").rpartition(b"/")[2] in _RESERVED:  # of a far source; the copy leaves it out
            self._note_reserved(name.removesuffix(b"/"))
            self._left_out += 1
            self._files_left_out += item[1:2] == b"f"
            return
        elif name == b"./":  # the root is no entry; a change of its mode counts
            self.other += item[2:].strip(b".") not in (b"t", b"+++++++++")
        elif item[2:3] == b"+":
            self.created += 1
            self.files_new += item[1:2] == b"f"
        elif item[0:1] in (b">", b"<") and item[1:2] == b"f":
            self.changed += 1
            self._note(self.changed_names, name, 1)
        elif item[1:2] != b"d" or item[2:].strip(b".") != b"t":  # a new time of a folder is no change of its content
            self.other += 1
            if item[1:2] in (b"f", b"S", b"D") and len(self.altered) < MOST_ALTERED:
                self.altered.append(parse_name(name))
        self.listed_bytes += self.large.note(item, int(size), name) if item[1:2] == b"f" else 0

    def _note_differing(self, item: bytes, name: bytes) -> None:
        if len(self._differing) <= self._most_differing:
            path = parse_name(name.removesuffix(b"/"))
            self._differing.append(path)
            if not item.startswith(b"*"):
                self._present.append(path)
            if item.startswith(b"h"):
                self._joined.append(path)

    def differing(self) -> DifferingPaths | None:
        """Return the paths that differ; None when they are too many."""
        most = self._most_differing
        if max(len(self._differing), len(self._changed_folders)) > most or len(self._joined) > MOST_JOINED:
            return None
        return DifferingPaths(
            paths=tuple(self._differing),
            joined=tuple(self._joined),
            present=tuple(self._present),
            folders=tuple(self._changed_folders),
        )

    def _note_reserved(self, name: bytes) -> None:
        if len(self.reserved) < _EXAMPLES:
            self.reserved.append(parse_name(name))

    def _note(self, names: list[bytes], name: bytes, which: int) -> None:
        name = parse_name(name)
        if len(names) < _EXAMPLES:
            names.append(name)
        if top := self._tree.group_of(name):
            self.folders.setdefault(top, [0, 0])[which] += 1
            if len(self.folders) > _MOST_FOLDERS:
                raise ValueError("more folders at the top of a tree than can be counted")

    def changes(self) -> Changes | None:
        """Return the counts, None when rsync's final statistics are missing."""
        stats = parse_stats(b"\n".join(self._tail))
        if stats is None:
            return None
        entries = (
            stats.files - (not self._tree.parts) - self._left_out
        )  # without the root, which is none of several folders
        files = stats.regular - self._files_left_out
        return replace(
            self.counted(),
            entries_before=max(0, entries - self.created + self.deleted), entries_now=max(0, entries),
            files_before=max(0, files - self.files_new + self.files_gone), files_now=max(0, files),
            moving=self.listed_bytes,
        )  # fmt: skip

    def moving(self) -> int | None:
        """Return the bytes that rsync would copy; None when its final statistics are missing."""
        return self.listed_bytes if parse_stats(b"\n".join(self._tail)) else None

    def counted(self) -> Changes:
        """Return what the lines alone say."""
        top_folders = {
            top: FolderChanges(before=None, deleted=gone, changed=new) for top, (gone, new) in self.folders.items()
        }
        return Changes(
            entries_before=None, files_before=None, entries_now=None, deleted=self.deleted, changed=self.changed,
            created=self.created, other=self.other, altered=tuple(self.altered), files_new=self.files_new,
            files_gone=self.files_gone, folders=top_folders, deleted_examples=tuple(self.deleted_names),
            changed_examples=tuple(self.changed_names),
        )  # fmt: skip


def parse_sources(text: bytes, tree: SourceTree) -> tuple[SourceSurvey, ...]:
    """Parse the output of `survey_source_command`: a survey of each folder."""
    records = iter(text.split(b"\0"))
    return tuple(_parse_folder(folder.path, records) for folder in tree.folders)


def _parse_folder(folder: str, records: Iterator[bytes]) -> SourceSurvey:
    head = next(records, b"")
    kind, _, rest = head.partition(b" ")
    if kind not in (b"a", b"f", b"l", b"d"):
        raise ValueError("the look at the source does not say what is there")
    if kind != b"d":
        leads = rest.decode("utf-8", "surrogateescape")
        return SourceSurvey(
            folder=folder, exists=kind != b"a", directory=False, device=0, mounted=False, empty=False, leads=leads
        )
    own, owner, mode, parent = rest.split()[:4]
    return SourceSurvey(
        folder=folder,
        exists=True,
        directory=True,
        device=int(own),
        mounted=int(own) != int(parent),
        empty=not next(records, b"").startswith(b"x"),
        owner=int(owner),
        shared=_writable(mode),
    )


def join_surveys(parts: tuple[SourceSurvey, ...]) -> SourceSurvey:
    """Return the survey of a whole source: of its one folder, or of several that must all be there."""
    if len(parts) == 1:
        return parts[0]
    return SourceSurvey(
        exists=all(each.exists for each in parts), directory=all(each.directory for each in parts), device=parts[0].device,
        mounted=all(each.mounted for each in parts), empty=all(each.empty for each in parts),
        shared=any(each.shared for each in parts),
    )  # fmt: skip


def _writable(mode: bytes | str) -> bool:
    """Return True when group or others may write. An access list with more rights shows in the group's bits too."""
    return bool(int(mode, 8) & 0o022)


def split_surveys(text: bytes) -> tuple[bytes, bytes]:
    """Split the output of `survey_both_command`: the source's part, the target's part."""
    head, zero, rest = text.partition(b"\0")
    if not head.startswith(b"d"):
        return head + zero, rest
    filled, end, rest = rest.partition(b"\0")
    return head + zero + filled + end, rest


def parse_target(text: bytes, root: Location, *, mirror: bool) -> TargetSurvey:
    """Parse the output of `survey_target_command`. Partial files and damaged entries are read by other commands.

    In a mirror everything but our own folder belongs to the source, with any name.
    """
    records = text.split(b"\0")
    if records[0] not in _HEADS or len(records) < 2:
        raise ValueError("the look at the target does not say what is there")
    if records[0] != b"d":
        above = [_entry(record) for record in records[1:-1] if record]
        return _absent(
            parent=b"p" in records[0],
            is_file=records[0].startswith(b"n"),
            space=_free_space(records[-1]),
            above=above,
        )
    space, marker = _free_space(records[1]), parse_marker(records[2])
    seen = [_entry(record) for record in records[3:] if record]
    told = {where: name for where, _, name in seen if where in "uhlm"}
    modes = {name: mode for where, mode, name in seen if where == "k" and not (mirror and name == "points")}
    root_mode, root_owner = next(((mode, int(name)) for where, mode, name in seen if where == "g"), ("700", 0))
    names = [(where, kind, name) for where, kind, name in seen if not (mirror and where == "p")]
    points = {name for where, kind, name in names if where == "p" and kind == "d" and _is_point(name)}
    files = {name for where, kind, name in names if where == "p" and kind == "f"}
    ours = {OURS} if mirror else {"points", "latest", OURS}
    litter, orphans = _litter(names, points)
    trusted = {0, *_users(seen)}
    opened = [name for name, mode in modes.items() if int(mode, 8) & 0o077]
    if not mirror and _users(seen)[:1] == (0,) and (_exchangeable(root_mode, root_owner, trusted)):
        opened.insert(0, ROOT)
    return TargetSurvey(
        exists=True, parent=True, mounted=told["h"] != told["u"], owner=marker.job if marker else None,
        coarse=marker is not None and marker.coarse, stored=marker is not None and marker.stored,
        points=tuple(_point(root, name, files, stored=marker is not None and marker.stored) for name in sorted(points)),
        damaged=(),
        work=("o", "d", "work") in names,
        unwritten={("o", "d", "work"), ("o", "f", UNWRITTEN)} <= set(names),
        half=(), litter=litter, orphans=orphans,
        foreign=tuple(name for where, _, name in names if where == "r" and name not in ours),
        free_bytes=space[0], free_inodes=space[1], whole_bytes=space[2],
        mirrored=instant_at(float(told["m"])) if "m" in told else None,
        dated=_dated(seen) if mirror and "m" not in told else (),
        latest=None if mirror else told.get("l", "").removeprefix("points/") or None,
        open=() if ("o", "f", CANNOT_CLOSE) in names else tuple(opened),
        swapped=_swapped(names, ours - {"latest"}),
        root_owner=root_owner, root_shared=_writable(root_mode), by_root=_users(seen)[:1] == (0,), led=_led(seen, trusted),
    )  # fmt: skip


def _dated(seen: list[tuple[str, str, str]]) -> tuple[str, ...]:
    """Return the restore points at a place that no mirror was begun in; a mirror's own source may hold folders of such names."""
    if ("o", "d", "partial") in seen:
        return ()
    files = {name for where, kind, name in seen if where == "p" and kind == "f"}
    found = (name for where, kind, name in seen if where == "p" and kind == "d" and _is_point(name))
    return tuple(sorted(name for name in found if f"{name}.manifest.gz" in files))


def _users(seen: list[tuple[str, str, str]]) -> tuple[int, ...]:
    """Return the user that the survey ran as, and the owner of our folder: an NFS server may give to nobody what root makes."""
    return tuple(int(name) for where, _, name in seen if where in "iv" and name)


def _exchangeable(mode: str, owner: int, trusted: set[int]) -> bool:
    """Return True when an untrusted user may rename what lies in a folder. With the sticky bit all rename only their own."""
    return owner not in trusted or (_writable(mode) and not int(mode, 8) & 0o1000)


def _led(seen: list[tuple[str, str, str]], trusted: set[int]) -> bool:
    """Return True when an untrusted user may exchange a folder above the target's root, or its path leads through links."""
    above = (_exchangeable(mode, int(owner), trusted) for where, mode, owner in seen if where == "b")
    return any(above) or any(where == "i" and kind == "linked" for where, kind, _ in seen)


def _swapped(names: list[tuple[str, str, str]], ours: set[str]) -> tuple[str, ...]:
    """Return the names of our folders at which another kind of entry lies."""
    inside = {name.partition("/")[2] for name in (WORK, PARTIALS, TEMPORARY)} | {"trash"}
    rooms = [name for where, kind, name in names if where == "r" and kind != "d" and name in ours]
    return (
        *rooms,
        *(f"{OURS}/{name}" for where, kind, name in names if where == "o" and kind != "d" and name in inside),
    )


def _free_space(text: bytes) -> tuple[int | None, int | None, int | None]:
    """Return free bytes, free inodes and all bytes of a filesystem; None where unknown, or where it counts no inodes."""
    if not 4 <= len(words := [parse_count(word) for word in text.split()]) <= 5:
        return None, None, None
    blocks, size, inodes, free, *whole = words  # a gate of before told no more than four
    return blocks * size, free if inodes else None, whole[0] * size if whole else None


def _absent(
    *, parent: bool, is_file: bool, space: tuple[int | None, int | None, int | None], above: list[tuple[str, str, str]]
) -> TargetSurvey:
    return TargetSurvey(
        exists=False, parent=parent, mounted=False, owner=None, coarse=False, points=(), damaged=(), work=False,
        half=(), litter=(), foreign=("a file",) if is_file else (), free_bytes=space[0], free_inodes=space[1], latest=None,
        led=_led(above, {0, *_users(above)}), whole_bytes=space[2], by_root=_users(above)[:1] == (0,),
    )  # fmt: skip


def parse_marker(text: bytes) -> TargetMarker | None:
    """Return the marker of a target; None where there is none. Raises: OrchestratorError for one of a newer poolferry."""
    if not text.strip():
        return None
    try:
        value = parse_json(text)
        job, written, coarse = value["job"], value.get("format", _FORMAT), value.get("coarse", False)
        stored = value.get("fake-super", False)
    except NOT_READ:
        return _UNREADABLE
    if not isinstance(job, str) or not JOB_NAME.fullmatch(job) or type(written) is not int or written < 1:
        return _UNREADABLE
    if written > _FORMAT:
        raise OrchestratorError(
            f"{MARKER} says that a newer poolferry wrote these copies (format {written}; this one knows {_FORMAT})",
            hint="update poolferry on this machine; nothing was changed there",
        )
    if type(coarse) is not bool or type(stored) is not bool or not value.keys() <= _MARKER_KEYS:
        return _UNREADABLE
    return TargetMarker(job=job, coarse=coarse, stored=stored)


def _entry(record: bytes) -> tuple[str, str, str]:
    where, kind, name = record.split(b" ", 2)
    return where.decode(), kind.decode(), name.decode("utf-8", "surrogateescape")


def _is_point(name: str) -> bool:
    """Return True when a name is a point's; a month 13 is none."""
    try:
        return bool(parse_point_name(name))
    except ValueError:
        return False


def _point(root: Location, name: str, files: set[str], *, stored: bool) -> RestorePoint:
    manifest = root / f"points/{name}.manifest.gz"
    return RestorePoint(
        name=name,
        taken=parse_point_name(name),
        tree=root / f"points/{name}",
        manifest=manifest if f"{name}.manifest.gz" in files else None,
        damaged=f"{name}.damaged" in files,
        stored=stored,
    )


def _litter(names: list[tuple[str, str, str]], points: set[str]) -> tuple[tuple[str, ...], frozenset[str]]:
    """Return points that an interrupted removal left, with manifests that have no tree; and those of which nothing else is there."""
    trash = {name.removeprefix("trash/") for where, _, name in names if where == "o" and name.startswith("trash")}
    files = {name.split(".")[0] for where, kind, name in names if (where, kind) == ("p", "f")}
    orphans = set(filter(_is_point, files)) - points
    found = tuple(sorted((trash | orphans) - {"trash"})) or (("trash",) if ("o", "d", "trash") in names else ())
    return found, frozenset(orphans - trash)


def parse_partial_files(text: bytes) -> tuple[tuple[int, bytes], ...]:
    """Parse (size, path) of each record of `partial_files_command`."""
    records = (record.split(b" ", 1) for record in text.split(b"\0") if record)
    return tuple((parse_count(size), path) for size, path in records)


def parse_sizes(text: bytes, count: int) -> tuple[int | None, ...]:
    """Parse the output of `sizes_command`, in the order of the request. Raises: ValueError, also unless there are `count`."""
    sizes = tuple(None if line == b"-" else parse_count(line) for line in text.split())
    if len(sizes) != count:
        raise ValueError(f"{len(sizes)} sizes, and {count} were requested")
    return sizes


def parse_greeting(text: bytes) -> tuple[GateHello | None, RsyncProgram | None]:
    """Parse the answer to `hello_command`: what a gate says of itself, where there is one, and what rsync says."""
    first, _, rest = text.partition(b"\n")
    if first.startswith(b'{"poolferry"'):
        return parse_hello(first), parse_program(rest)
    return None, parse_program(text)


def parse_program(text: bytes) -> RsyncProgram | None:
    """Parse `rsync --version --version`, in JSON (since 3.2.7) or text; None when it is not rsync's output."""
    begin = text.find(b"{")
    if begin >= 0 and b'"version"' in text:
        value = parse_json(text[begin : text.rfind(b"}") + 1])
        return RsyncProgram(
            version=_version(str(value["version"])),
            protocol=int(str(value.get("protocol", "0")).split(".")[0]),
            checksums=tuple(map(str, value.get("checksum_list", ()))),
            compressions=tuple(map(str, value.get("compress_list", ()))),
        )
    match = re.search(rb"rsync\s+version\s+v?(\S+)\s+protocol version (\d+)", text)
    if not match:
        return None
    return RsyncProgram(
        version=_version(match[1].decode()),
        protocol=int(match[2]),
        checksums=_words_after(text, b"Checksum list:"),
        compressions=_words_after(text, b"Compress list:"),
    )


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text.split("pre", maxsplit=1)[0])[:3])


def _words_after(text: bytes, head: bytes) -> tuple[str, ...]:
    _, found, rest = text.partition(head)
    return tuple(rest.strip().split(b"\n")[0].decode().split()) if found else ()


_TAIL = 4096  # the final statistics have less than 1 KiB


class RsyncMeter:
    """A meter of rsync: progress from the --info=progress2 records, exact numbers from the final statistics."""

    def __init__(self) -> None:
        self.seen: int | None = None
        self._tail = b""

    def feed(self, chunk: bytes) -> int | None:
        """Return the bytes so far, None when this chunk does not show it."""
        self._tail = (self._tail + chunk)[-_TAIL:] if len(chunk) < _TAIL else chunk[-_TAIL:]
        done = parse_progress(chunk)
        if done is not None:
            self.seen = done
        return done

    def heard(self, chunk: bytes) -> None:
        """Ignore stderr: rsync reports everything on its output."""

    def passed(self, count: int) -> int:
        """Return the count itself: a single rsync passes nothing to a second program."""
        return count

    @property
    def expected(self) -> None:
        """Return None: the plan has it from the survey."""
        return None

    @property
    def stats(self) -> RsyncStats | None:
        """Return rsync's final statistics, None when it was interrupted before."""
        return parse_stats(self._tail)

    def moved(self) -> int | None:
        """Return the bytes transferred: the literal data of the statistics; if interrupted, the last progress."""
        stats = self.stats
        return stats.literal if stats else self.seen


def confirm_counts(
    confirmation: CountsEqual,
    meters: tuple[RsyncMeter, ...],
    left_out: tuple[SkippedEntries, ...],
    recorded: ManifestCounts,
) -> None:
    """Check that the tree holds as many files as rsync's lists named, except those left out with a warning.

    A vanished file was listed and is not there; of unreadable entries, the manifest may list more than rsync did. Raises:
    VerificationFailed. Why no bytes: a source that shrank or grew while it was read makes them differ.
    """
    if not meters:
        return
    accounts = [meter.stats for meter in meters]
    if None in accounts:  # rsync ends well even when its output cannot be written
        raise VerificationFailed(
            "rsync ended well, and what it said of its copy was not kept to its end, so it is not certain that all was copied",
            hint="see whether the state directory has space; the next run looks again and mends",
        )
    files = sum(account.regular for account in accounts if account)
    vanished = sum(len(each.vanished) for each in left_out)
    unreadable = sum(len(each.missing) for each in left_out)
    if not files - vanished <= recorded.files <= files + unreadable:
        raise VerificationFailed(
            f"{confirmation.tree} holds {show_count(recorded.files, 'file')}, and the source's list named {files}",
            hint="run again: it looks again and mends; if it comes back, check the target's filesystem",
        )
