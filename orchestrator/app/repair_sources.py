"""Good copies of damaged files: at the source, in other points, in copies of other jobs; and the commands that restore them.

Only for trees of files: the engine of datasets knows their repair.
"""

import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.find_copies import find_copies
from orchestrator.domain.answers import understand
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.point import Finding, RestorePoint, Verdict
from orchestrator.planners.choose_copy import fetch_sentence, find_copies_to_fetch
from orchestrator.verify.entry import ManifestEntry
from orchestrator.verify.manifest import read_manifest
from orchestrator.verify.manifest_lookup import lookup_command, parse_lookup, parse_sizes, sizes_command
from orchestrator.views.copies import CopySearchResult, RepairSource

if TYPE_CHECKING:
    from orchestrator.app.settings import Settings

DAMAGE = (Verdict.ROTTEN, Verdict.EDITED, Verdict.UNREADABLE, Verdict.MISSING)
_FILES, _POINTS, _AWAY = 20, 5, 2


def find_repair_sources(
    settings: "Settings", job: Job, point: str | None, findings: Sequence[Finding]
) -> tuple[RepairSource, ...]:
    """Return the best place to restore each damaged file from. A failed survey finds nothing and raises nothing.

    `job`: placed on the plugged-in disk, when its copies lie on the disks of a set.
    """
    damaged = [each.path for each in findings if each.verdict in DAMAGE][:_FILES]
    if not damaged or not job.source.path.startswith("/") or point is None:
        return ()
    try:
        found = find_copies(settings, job)
        known = RepairSearch(settings, job, point, found, damaged)
        return tuple(hint for path in damaged for hint in _repair_sources(found, known, path))
    except (OrchestratorError, OSError, ValueError):
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PointEntries:
    """A reachable point, and its manifest entries of the damaged files."""

    job: Job
    place: str
    point: RestorePoint
    entries: dict[bytes, ManifestEntry]


class RepairSearch:
    """Manifest entries of the damaged files: in their own point, and in the newest good points of all reachable copies.

    Local manifests are read directly; those of a host are searched with one command for all of them.
    """

    def __init__(
        self, settings: "Settings", job: Job, point: str, found: CopySearchResult, paths: Sequence[bytes]
    ) -> None:
        self._settings, self._job, self._paths = settings, job, tuple(paths)
        points = list(_offered(settings, job, found))
        own = [(job, job.target.name, each) for each in _points(settings, job) if each.name == point]
        read = self._read([*own, *points])
        self.own = next(iter(read[: len(own)]), None)
        self.others = tuple(read[len(own) :])
        self._at_source: frozenset[bytes] | None = None

    def _read(self, points: Sequence[tuple[Job, str, RestorePoint]]) -> list[PointEntries]:
        entries: dict[Location, dict[bytes, ManifestEntry]] = {}
        there: dict[Host, list[tuple[Job, Location]]] = {}
        for job, _, point in points:
            if point.manifest is None or point.manifest in entries:
                continue
            if point.manifest.host is None:
                entries[point.manifest] = _entries(point.manifest.path, self._paths)
            else:
                there.setdefault(point.manifest.host, []).append((job, point.manifest))
        for host, requested in there.items():
            told = self._ask(requested[0][0], host, list(dict.fromkeys(manifest.path for _, manifest in requested)))
            entries |= {Location(path=path, host=host): each for path, each in told.items()}
        return [
            PointEntries(
                job=job, place=place, point=point, entries=entries.get(point.manifest, {}) if point.manifest else {}
            )
            for job, place, point in points
        ]

    def _ask(self, job: Job, host: Host, manifests: Sequence[str]) -> Mapping[str, dict[bytes, ManifestEntry]]:
        """Read the entries from manifests on a host; return nothing when it does not answer."""
        command = lookup_command(host, manifests, self._paths)
        with compose.make_reader(job, compose.make_stop_request(None), self._settings.log) as reader:
            result = reader.read(Pipeline(stages=(command,)))
        if not result.well:
            return {}
        return understand("gzip", command, result.stdout, lambda text: parse_lookup(text, manifests, self._paths))

    def expected(self, path: bytes) -> ManifestEntry | None:
        """Return the damaged point's manifest entry of a file."""
        return self.own.entries.get(path) if self.own else None

    def is_at_source(self, path: bytes) -> bool:
        """Return True when the source still has the file, by size and time, as a run would compare."""
        if self._at_source is None:
            expected = (self.own.entries if self.own else {}).values()
            self._at_source = frozenset(self._seen_at_source([each for each in expected if each.kind == "f"]))
        return path in self._at_source

    def _seen_at_source(self, expected: Sequence[ManifestEntry]) -> Iterator[bytes]:
        source = self._job.source
        if source.host is None:
            yield from (each.path for each in expected if _same(os.fsencode(source.path) + b"/" + each.path, each))
            return
        command = sizes_command(source, [each.path for each in expected])
        with compose.make_reader(self._job, compose.make_stop_request(None), self._settings.log) as reader:
            result = reader.read(Pipeline(stages=(command,)))
        there = understand("find", command, result.stdout, parse_sizes)
        yield from (each.path for each in expected if there.get(each.path) == (each.size, each.mtime_ns))


def _same(path: bytes, expected: ManifestEntry) -> bool:
    try:
        seen = os.lstat(path)
    except OSError:
        return False
    return (seen.st_size, seen.st_mtime_ns) == (expected.size, expected.mtime_ns)


def _repair_sources(found: CopySearchResult, known: RepairSearch, path: bytes) -> Iterator[RepairSource]:
    job, name, expected = found.job, show_name(path), known.expected(path)
    if expected is None or expected.kind != "f":
        return
    if known.is_at_source(path):
        says = f"{name}: the source still has it as it was copied"
        yield RepairSource(
            path=path, job=job.name, place="source", point=None, says=says, command=f"poolferry run {job.name}"
        )
        return
    holder = next(_holders(known, expected), None)
    if holder is not None:
        says = f"{name}: {holder.place} (job {holder.job.name}) holds the same bytes in point {holder.point.name}"
        yield RepairSource(
            path=path, job=holder.job.name, place=holder.place, point=holder.point.name, says=says,
            command=_restore(job, holder.job.name, holder.point.name, path),
        )  # fmt: skip
        return
    mtime = datetime.fromtimestamp(expected.mtime_ns / 1e9, UTC)
    of = known.own.point.taken if known.own else None
    for copy, held, sure in find_copies_to_fetch(found.copies, since=mtime, of=of, but=(job.name, job.target.name))[
        :_AWAY
    ]:
        told = "the file is older than that" if sure else "it may hold it"
        action = (
            fetch_sentence(copy, held, None)
            if copy.away
            else f"disk {copy.disk} (job {copy.job}) is here, and holds {held.name}"
        )
        command = "" if copy.away else _restore(job, copy.job, held.name, path)
        yield RepairSource(
            path=path,
            job=copy.job,
            place=copy.place,
            point=held.name,
            says=f"{name}: {action}; {told}",
            command=command,
        )


def _restore(job: Job, holder: str, point: str, path: bytes) -> str:
    """Return the command that restores a file to the source; the next run copies it from there."""
    home = str(job.source / os.fsdecode(path))
    words = ("poolferry", "restore", "run", holder, "--point", point, "--path", os.fsdecode(path), "--to", home)
    aside = " --aside" if job.source.host or os.path.lexists(home) else ""
    return show_name(shlex.join(words) + aside)


def _holders(known: RepairSearch, expected: ManifestEntry) -> Iterator[PointEntries]:
    """Yield points with the same bytes that are not the same damaged file by another name; the newest of a copy first."""
    for each in known.others:
        entry = each.entries.get(expected.path)
        same_place = known.own is not None and each.job.target.location == known.own.job.target.location
        if entry and entry.digest == expected.digest and not (same_place and entry.inode == expected.inode):
            yield each


def _offered(settings: "Settings", job: Job, found: CopySearchResult) -> Iterator[tuple[Job, str, RestorePoint]]:
    """Yield the newest good points of each copy that can be read; of a disk only when the job is placed on it."""
    known = settings.configuration()
    for copy in found.copies:
        own = (copy.job, copy.place) == (job.name, job.target.name)  # read a moment ago, so no survey is needed
        if not own and (copy.away or copy.disk):
            continue
        other = job if own else known.job(copy.job)
        good = {held.name for held in copy.points if held.good}
        points = [point for point in _points(settings, other) if point.name in good]
        yield from ((other, copy.place, point) for point in reversed(points[-_POINTS:]))


def _points(settings: "Settings", job: Job) -> tuple[RestorePoint, ...]:
    from orchestrator.engines.registry import load_engine

    with compose.make_reader(job, compose.make_stop_request(None), settings.log) as reader:
        return load_engine(job.engine).points(job, reader)


def _entries(manifest: str, paths: Collection[bytes]) -> dict[bytes, ManifestEntry]:
    """Return the entries of these files from a manifest of this machine."""
    wanted = set(paths)
    return {entry.path: entry for entry in read_manifest(manifest)[1] if entry.path in wanted}
