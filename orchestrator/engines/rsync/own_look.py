"""A look of our own: source and newest point are listed and compared with the record of the last look; rsync compares what differs.

Why it is sound: an entry that is listed as it was recorded, with the same inode, time of change, size, time, owner and mode, is as it
was when rsync found it equal. Access lists and attributes change the time of change as well. What a listing cannot show, such as a
file written through a mapping of memory without a new time, rsync's own look does not see either, unless it reads all.
"""

import contextlib
import json
import os
import stat
import time
from collections.abc import Callable, Iterator, Mapping

from orchestrator import __version__
from orchestrator.domain.answers import NOT_READ
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.hashes import sha256
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Pipeline
from orchestrator.domain.point import Changes
from orchestrator.domain.source_identity import LAST_RESTORE, RESTORED
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync import commands, parse, script_commands
from orchestrator.engines.rsync.large_files import LargeFiles
from orchestrator.engines.rsync.listing_text import ListingText
from orchestrator.engines.rsync.look_record import (
    BATCH,
    COPY,
    ENTRY_KINDS,
    SOURCE,
    YOUNG,
    ListingDifference,
    LookHeader,
    RecordReader,
    RecordUnusable,
    RecordWriter,
    listing_command,
    mark_young,
    pack_entries,
    path_of,
)
from orchestrator.engines.rsync.model import RESERVED, DifferingPaths, Look, RsyncSurvey, TargetSurvey
from orchestrator.engines.rsync.next_look import (
    LookDifferences,
    NextLook,
    count_files,
    filesystem_of,
    kernel_time,
    next_tick,
    oldest_young,
)
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.source_frames import SourceFrames
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed

_MOST = 100_000  # entries that differ; with more rsync's look is as quick
_SECOND = 10**9
_CLOCK_SET = _SECOND  # from here on the clock was set, not only read a little later
_LONGEST_TRUST = 30 * 86400 * _SECOND


class WholeLook(Exception):
    """The reason why rsync must compare everything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLook:
    """The differences that a look of our own found, as rsync's look would tell them."""

    changes: Changes
    differing: DifferingPaths | None
    large: LargeFiles


def look_around(
    job: Job, request: RunRequest, target: TargetSurvey, run: Callable[[Command], bytes], reader: Reader
) -> tuple[Look, OwnLook | None]:
    """Return how the newest point is looked at, and what differs; None where rsync must say it. Raises: OrchestratorError."""
    began = kernel_time()
    if not is_recordable(job, request, target):
        return Look(began_ns=began), None
    settings, path = _settings(job, request), _record_path(job, request)
    look = Look(began_ns=began, settings=settings, clock_ns=_clock_offset())
    if not target.points:
        return _with_recording(job, path, look, None), None
    try:
        with open(path, "rb") as file:
            record = RecordReader(file)
            header = record.header
            if header.point == target.points[-1].name:
                look = replace(look, made_with=header.made_with)
            _require_current(job, target, header, settings, began, looks=_count_looks(path), again=request.again)
            look = replace(look, whole_ns=header.whole_ns, since=header.since + _count_looks(path))
            seen = _compare(job, target.points[-1].tree, record, reader, limit_ns=oldest_young(began))
        source, copy = seen.source, seen.copy
        found = _ask(job, request, target, record, source, copy, run, reader)
        verified = header.verified and not copy.held
        manifest = record.manifest if verified else ""
        look = replace(look, own=True, clean=not (source.held or copy.held), verified=verified, manifest=manifest)
        return _with_recording(job, path, look, found, seen), found
    except FileNotFoundError:
        why = "no look was recorded before"
    except RecordUnusable:
        why = "the record of the last look is damaged"
    except (PipelineFailed, OSError):
        why = "a part of a tree could not be listed, or went away meanwhile"
    except NOT_READ:
        why = "a listing is none that find or rsync writes"
    except WholeLook as reason:
        why = str(reason)
    return _with_recording(job, path, replace(look, why=why), None), None


def _with_recording(
    job: Job, path: str, look: Look, found: OwnLook | None, seen: LookDifferences | None = None
) -> Look:
    """Return the look with the record that a run may make for the next one."""
    differing = found.differing if found is not None else None
    carries = look.own and look.verified and differing is not None and look.made_with == look.settings
    recording = NextLook(
        path, job.source, settings=look.settings, look_ns=look.began_ns, whole_ns=_whole_ns(look), since=_since(look),
        differing=frozenset((*differing.paths, *differing.folders)) if differing else frozenset(), carries=carries, seen=seen,
    )  # fmt: skip
    return replace(look, recording=recording)


def _whole_ns(look: Look) -> int:
    """Return when rsync last compared everything, this look included."""
    return look.whole_ns if look.own else look.began_ns


def _since(look: Look) -> int:
    """Return how many looks have been our own since then, this one included."""
    return look.since + 1 if look.own else 0


def is_recordable(job: Job, request: RunRequest, target: TargetSurvey) -> bool:
    """Return whether a job's looks can be recorded at all: both trees lie here, the source is one folder, and nobody comes between."""
    options = options_of(job)
    here = job.source.host is None and job.target.location.host is None and not job.parts
    plain = (
        options.points
        and not (options.checksum or options.fake_super)
        and options.one_file_system
        and not target.coarse
    )
    ours = target.by_root and target.owner in (None, job.identity) and not target.led
    return bool(request.looks) and here and plain and ours


def _clock_offset() -> int:
    """Return how far this machine's clock is before its time since boot, in nanoseconds: it changes where somebody sets the clock."""
    return kernel_time() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _settings(job: Job, request: RunRequest) -> str:
    """Return a digest of all that decides what rsync finds equal, and of what was restored."""
    command = commands.dry_run_command(job, Location(path="/"), there=None, coarse=False)
    restored = [request.remembered.get(key, "") for key in (RESTORED, LAST_RESTORE)]
    told = [__version__, job.identity, str(job.target.location), command.argv, restored]
    return sha256(json.dumps(told).encode()).hexdigest()


def _record_path(job: Job, request: RunRequest) -> str:
    """Return the file of the record: each target has its own."""
    place = sha256(f"{job.target.name}\n{job.target.location}".encode("utf-8", "surrogateescape")).hexdigest()
    return f"{request.looks}/{place[:16]}"


def _count_looks(path: str) -> int:
    """Return how many looks found all as it was recorded since: a byte for each."""
    try:
        return os.stat(f"{path}.looks").st_size
    except FileNotFoundError:
        return 0


def _require_current(
    job: Job, target: TargetSurvey, header: LookHeader, settings: str, now: int, *, looks: int, again: bool
) -> None:
    """Check that the record says something of today's source and point. Raises: WholeLook."""
    if again:
        raise WholeLook("an attempt of this run failed")
    if target.owner is None or target.open or target.work or target.damaged or target.swapped:
        raise WholeLook("an interrupted copy, or damage, lies in the target")
    most, source, copy = (
        options_of(job).whole_look,
        filesystem_of(job.source.path),
        filesystem_of(target.points[-1].tree.path),
    )
    if not source or not copy:
        raise WholeLook("a filesystem is none whose times of change tell of each change")
    if header.point != target.points[-1].name:
        raise WholeLook("the newest point is another one than at the last look")
    if header.settings != settings or (options_of(job).excludes and header.made_with != settings):
        raise WholeLook("the job's options, this program, or what was restored is not as at the last look")
    if (header.source, header.copy) != (source, copy):
        raise WholeLook("the source or the target lies on another filesystem than at the last look")
    if header.made_ns > now:
        raise WholeLook("the clock went back since the last look")
    if header.since + looks + 1 >= most:
        raise WholeLook(f"each {most} runs, as whole-look says" if most > 1 else "each run, as whole-look says")
    if now - header.whole_ns > _LONGEST_TRUST:
        raise WholeLook("30 days have gone since everything was compared")


def _compare(job: Job, tree: Location, record: RecordReader, reader: Reader, *, limit_ns: int) -> LookDifferences:
    """List both trees and compare them with the record. Raises: WholeLook · RecordUnusable · PipelineFailed · OSError.

    `limit_ns`: from which time of change an entry of the source is young.
    """
    found, frames = {SOURCE: ListingDifference(), COPY: ListingDifference()}, SourceFrames(limit_ns)
    with _listings(job, tree, reader) as listings:
        root = b"".join(listings[COPY].take(1))
        for which, recorded in record.frames():
            if listings[which].passes(recorded):
                if which == SOURCE:
                    frames.keep_recorded()
                continue
            listed = listings[which].take(recorded.count)
            if which == SOURCE:
                frames.keep(listed, recorded=True)
            if found[which].exchange(recorded.entries(), listed) > _MOST:
                raise WholeLook("too much differs from the last look")
        found[COPY].exchange([record.root], [root])
        for which, difference in found.items():
            while rest := listings[which].take(BATCH):
                if which == SOURCE:
                    frames.keep(rest, recorded=False)
                if difference.exchange([], rest) > _MOST:
                    raise WholeLook("too much differs from the last look")
    return LookDifferences(source=found[SOURCE], copy=found[COPY], frames=frames)


@contextlib.contextmanager
def _listings(job: Job, tree: Location, reader: Reader) -> Iterator[dict[bytes, ListingText]]:
    """Yield the listings of both trees, which run side by side."""
    with (
        reader.pieces(Pipeline(stages=(listing_command(job.source),))) as source,
        reader.pieces(Pipeline(stages=(listing_command(tree),))) as copy,
    ):
        yield {SOURCE: ListingText(iter(source)), COPY: ListingText(iter(copy))}


class _PointEntries:
    """The kinds of entries that the newest point has now; no link in it leads elsewhere."""

    def __init__(self, root: str) -> None:
        self._root, self._known = os.fsencode(root), dict[bytes, bytes | None]()
        self.files: dict[bytes, tuple[int, int]] = {}  # size and time in nanoseconds of those that were looked at

    def kind(self, path: bytes) -> bytes | None:
        """Return the kind of an entry; None: it is not there."""
        if path not in self._known:
            above = path.rpartition(b"/")[0]
            self._known[path] = self._look(path) if not path or self.kind(above) == b"d" else None
        return self._known[path]

    def _look(self, path: bytes) -> bytes | None:
        try:
            seen = os.lstat(self._root + b"/" + path if path else self._root)
        except FileNotFoundError:
            return None
        if stat.S_ISREG(seen.st_mode):
            self.files[path] = (seen.st_size, seen.st_mtime_ns)
        return ENTRY_KINDS.get(stat.S_IFMT(seen.st_mode))


def _ask(
    job: Job, request: RunRequest, target: TargetSurvey, record: RecordReader, source: ListingDifference,
    copy: ListingDifference, run: Callable[[Command], bytes], reader: Reader,
) -> OwnLook:  # fmt: skip
    """Let rsync compare what differs from the record; add what is gone. Raises: WholeLook · PipelineFailed."""
    newest = target.points[-1].tree
    held = _PointEntries(newest.path)
    listed, gone = choose_candidates(source, copy, held.kind, patterns=bool(options_of(job).excludes))
    look = parse.DryRunReader(job.tree)
    for path in reversed(gone):  # a folder after what was in it, as rsync tells them
        look.feed(_deleted_line(path, folder=held.kind(path) == b"d"))
    if not options_of(job).hides:
        listed = _feed_changed(listed, source, held, look)
    passed = look.listed_bytes
    if listed:
        if run(script_commands.survey_links_command(None)) != b"closed\n":
            raise WholeLook("a link could lead rsync elsewhere in a path that it is told by name")
        passed = _feed(job, request, newest, listed, held, look, reader)
    counted = look.counted()
    entries = record.entries + len(copy.new) - len(copy.gone)
    files = record.files + count_files(copy.new) - count_files(copy.gone) + counted.files_new
    files -= sum(held.kind(path) == b"f" for path in gone)
    changes = replace(
        counted, entries_before=entries, entries_now=entries + counted.created - counted.deleted, files_now=files,
        files_before=files - counted.files_new + counted.files_gone, moving=passed,
    )  # fmt: skip
    return OwnLook(changes=changes, differing=look.differing(), large=look.large.files())


def _feed_changed(
    listed: list[bytes], source: ListingDifference, held: _PointEntries, look: parse.DryRunReader
) -> list[bytes]:
    """Give the counter plain files of which size or time differ, as rsync would name them; return the other paths, which it must compare.

    Why only those: such a file is copied whatever else differs; of one with the same size and time only rsync knows whether anything does.
    """
    now = {path_of(entry): entry for entry in source.new}
    root = b"" in listed  # with it rsync names what lies in it, too
    left: list[bytes] = []
    for path in listed:
        kind, size, mtime, _, _, _, names, *_ = now.get(path, b"").partition(b"//")[2].split(b"\t") + [b""] * 8
        there = held.files.get(path) if held.kind(path) == b"f" else None
        if (
            (root and b"/" not in path)
            or kind != b"f"
            or names != b"1"
            or there in (None, (int(size), _nanoseconds(mtime)))
        ):
            left.append(path)
        else:
            look.feed(b"pf:>f.st......|%b|%b" % (size, path.replace(b"\\", b"\\#134")))
    return left


def _nanoseconds(mtime: bytes) -> int:
    """Return a time as find prints it, in nanoseconds since 1970."""
    second, _, rest = mtime.partition(b".")
    return int(second) * _SECOND + int(rest[:9])


def choose_candidates(
    source: ListingDifference, copy: ListingDifference, held: Callable[[bytes], bytes | None], *, patterns: bool
) -> tuple[list[bytes], list[bytes]]:
    """Return the paths that rsync must compare, and those that the source has no more and the point has. Raises: WholeLook.

    `held`: returns the kind of an entry of the point. `patterns`: rsync leaves out some entries. Of what the point does not have, the
    record tells which they were; new names rsync judges, see `_feed`.
    """
    ours, theirs = copy.paths(), source.paths()
    if _has_names_apart(source, theirs):
        raise WholeLook("a file with several names lies in a folder that was moved")
    young = {path_of(entry) for entry in source.gone if entry.endswith(YOUNG)}
    listed: list[bytes] = []
    gone: list[bytes] = []
    new: set[bytes] = set()
    for path in sorted({**ours, **theirs}):
        recorded, there = ours.get(path, (None, None))
        if path in ours and (recorded is None or (there is not None and there != recorded)):
            raise WholeLook("the newest point holds what no run put there")
        if any(name in _RESERVED for name in path.split(b"/")):
            raise WholeLook("a name that poolferry uses itself is in the source")
        before, now = theirs.get(path, (recorded, recorded))
        there = held(path)
        if now is None:
            gone += [path] if there is not None else []
        elif there is not None and there != now:
            raise WholeLook("an entry became one of another kind")
        elif patterns and there is None and path not in ours:
            above = path.rpartition(b"/")[0]
            known = before is not None and path not in young  # it was there, and left out
            if not known and (above in new or held(above) == b"d"):
                new.add(path)
                listed.append(path)
        else:
            listed.append(path)
    return listed, gone


def _has_names_apart(source: ListingDifference, paths: Mapping[bytes, tuple[bytes | None, bytes | None]]) -> bool:
    """Return whether a new name belongs to a file of which other names are listed as before, so that rsync would not see them.

    A new link changes the time of change of all names of a file, but a folder that was moved brings its files along as they are.
    """
    names: dict[bytes, list[bytes]] = {}
    counts: dict[bytes, int] = {}
    for entry in source.new:
        path, _, told = entry.partition(b"//")
        kind, _, _, _, _, _, links, inode, _ = told.split(b"\t", 8)
        if kind != b"d" and links != b"1":
            counts[inode] = int(links)
            names.setdefault(inode, []).append(path)
    return any(
        len(each) < counts[inode] and any(paths[path][0] is None for path in each) for inode, each in names.items()
    )


_RESERVED = {name.encode() for name in RESERVED}


def _feed(
    job: Job,
    request: RunRequest,
    newest: Location,
    listed: list[bytes],
    held: _PointEntries,
    look: parse.DryRunReader,
    reader: Reader,
) -> int:
    """Give the counter what rsync says of these paths; return how many bytes it would copy. Raises: WholeLook · PipelineFailed.

    Why the parents: rsync judges each name by itself, so below a new folder that a pattern leaves out nothing is selected either.
    """
    selected = set[bytes]()
    from tempfile import NamedTemporaryFile  # few looks find something

    with NamedTemporaryFile(dir=request.looks) as names:
        names.write(b"".join(b"./" + (path or b".") + b"\0" for path in listed))
        names.flush()
        command = commands.dry_run_command(job, newest, there=None, coarse=False, names=names.name)
        with reader.records(Pipeline(stages=(command,)), separator=b"\n") as lines:
            for line in lines:
                created = _created(line)
                if created is not None:
                    above = created.rpartition(b"/")[0]
                    if above not in selected and held.kind(above) != b"d":
                        continue
                    selected.add(created)
                look.feed(line)
    moving = look.moving()
    if moving is None:
        raise WholeLook("rsync did not end its comparison")
    return moving


def _deleted_line(path: bytes, *, folder: bool) -> bytes:
    """Return a line as a dry run writes it for an entry that the source has no more."""
    return b"pf:*deleting  |0|" + path.replace(b"\\", b"\\#134") + b"/" * folder


def _created(line: bytes) -> bytes | None:
    """Parse a line of a dry run for a new entry: its path; None for any other line."""
    if not line.startswith(b"pf:"):
        return None
    item, _, name = line[3:].split(b"|", 2)
    return None if item[2:3] != b"+" or name == b"./" else parse.parse_name(name.removesuffix(b"/"))


def record_look(
    job: Job, world: RsyncSurvey, request: RunRequest, point: str, reader: Reader, *, touched: bool
) -> None:
    """Record both trees after a run that found or made them equal. Raises: OSError · PipelineFailed · RecordUnusable.

    `touched`: since it was verified the run read or removed points, which share files with the newest, so all is listed anew. Why not
    after the clock was set: what changed after rsync read it may then be older than the look.
    """
    look = world.look
    if look is None or not look.settings or world.unread or world.reserved:
        return
    if abs(_clock_offset() - look.clock_ns) > _CLOCK_SET:
        return
    tree, path = job.target.location / f"points/{point}", _record_path(job, request)
    recording = look.recording
    made = recording is not None and recording.point == point
    if recording is not None and made and not touched:
        if recording.complete(tree):
            _forget_looks(path)
        return
    if look.own and look.clean and not made and not touched:
        with open(f"{path}.looks", "ab") as looks:
            looks.write(b".")
        return
    source, copy, now = filesystem_of(job.source.path), filesystem_of(tree.path), next_tick()
    if not source or not copy:
        return
    header = LookHeader(
        settings=look.settings, point=point, source=source, copy=copy, made_ns=now, made_with=look.settings if made else look.made_with,
        whole_ns=_whole_ns(look), since=_since(look), verified=made or look.verified,
    )  # fmt: skip
    os.makedirs(request.looks, mode=0o700, exist_ok=True)
    if recording is not None:
        recording.drop()
    writer = RecordWriter(path, header)
    try:
        entries, files, root = _list_both(job, tree, writer, reader, young=(oldest_young(look.began_ns), now))
        manifest = recording.manifest if recording is not None and made else look.manifest
        writer.end(entries, files, root=root, manifest=manifest)
        _forget_looks(path)
    finally:
        writer.drop()


def _forget_looks(path: str) -> None:
    """Remove the count of looks after the record before this one."""
    if os.path.lexists(f"{path}.looks"):
        os.unlink(f"{path}.looks")


def _list_both(
    job: Job, tree: Location, writer: RecordWriter, reader: Reader, *, young: tuple[int, int]
) -> tuple[int, int, bytes]:
    """Write both listings, and mark what is younger than its tree's limit; return how many entries and files the copy has, and its root."""
    limits = dict(zip((SOURCE, COPY), young, strict=True))
    entries, files = 0, 0
    with _listings(job, tree, reader) as listings:
        root = mark_young(listings[COPY].take(1), limits[COPY])[0]
        left = [SOURCE, COPY]
        while left:
            for which in tuple(left):
                found = listings[which].take(BATCH)
                if not found:
                    left.remove(which)
                    continue
                if which == COPY:
                    entries, files = entries + len(found), files + count_files(found)
                writer.add(which, pack_entries(mark_young(found, limits[which])))
    return entries, files, root
