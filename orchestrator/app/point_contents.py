"""Contents of restore points, read from their manifests: a folder of one, the versions of a name in all, the differences of two.

No copy is walked: a manifest has every name with size and time, and is read as a stream.
"""

import contextlib
import fnmatch
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.app.visible_points import find_visible_points
from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import show_name
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point_contents import ContentPoint, EntryChange, EntryInPoint, FileVersions, PointEntry
from orchestrator.domain.units import show_count
from orchestrator.planners.entry_versions import VersionCollector, changed_parts
from orchestrator.planners.restore import choose_point
from orchestrator.verify.entry import ENTRY_TYPE_NAMES, ManifestEntry
from orchestrator.verify.manifest import read_rows, require_whole, row_entry

if TYPE_CHECKING:
    from orchestrator.domain.job import Job
    from orchestrator.domain.place import Location
    from orchestrator.domain.point import RestorePoint

_MOST_FOUND = 100_000  # paths with their versions, which are held in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderContents:
    """The entries of a folder in a point, read while they are taken."""

    point: ContentPoint
    path: bytes
    entries: Iterator[PointEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSearchResult:
    """All paths that fit a pattern. `looked`: names of the points that were read; `without`: those that have no manifest."""

    files: tuple[FileVersions, ...]
    looked: tuple[str, ...]
    without: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PointComparison:
    """The differences between two points, read while they are taken."""

    before: ContentPoint
    after: ContentPoint
    path: bytes
    changes: Iterator[EntryChange]


@contextlib.contextmanager
def open_points(settings: Settings, name: str, command: str) -> "Iterator[PointReader]":
    """Open the points of a job for reading; of a rotation set those on attached disks. Raises: OrchestratorError.

    `command`: what a held disk is held for.
    """
    from orchestrator.app.placed_jobs import jobs_on_attached_disks

    job = settings.configuration().job(name)
    if not job.copies:
        raise WrongRequest(f"{name}: copies nothing, so there are no points")
    with contextlib.ExitStack() as held:
        jobs = held.enter_context(jobs_on_attached_disks(settings, job, command))
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="poolferry-"))
        points = tuple((each, point) for each in jobs for point in find_visible_points(settings, each))
        ordered = tuple(sorted(points, key=lambda found: (found[1].taken, found[1].name)))
        yield PointReader(settings, job, ordered, folder)


class PointReader:
    """The points of one job, oldest first, and their manifests; those of a host are copied here when first needed."""

    def __init__(
        self, settings: Settings, job: "Job", points: "tuple[tuple[Job, RestorePoint], ...]", folder: str
    ) -> None:
        self._settings, self._job, self._points, self._folder = settings, job, points, folder

    def list_folder(self, point: str | None, path: str, *, recursive: bool) -> FolderContents:
        """Return the entries of a folder, or one file. Raises: WrongRequest · OrchestratorError."""
        chosen, below = self._choose(point), self._below(path)
        manifest = self._manifest(chosen)
        if below and not any(_is_inside(name, below) for name, _ in read_rows(manifest)):
            raise self._no_such_path((chosen,), below)
        return FolderContents(point=_named(chosen), path=below, entries=_folder(manifest, below, recursive=recursive))

    def manifest(self, point: str) -> str:
        """Return the path of a point's manifest, here, until the points are closed. Raises: OrchestratorError."""
        return self._manifest(self._choose(point))

    def find(self, pattern: str) -> VersionSearchResult:
        """Return every path that fits a pattern, with its versions in all points. Raises: OrchestratorError."""
        fits, collector = _matcher(os.fsencode(pattern)), VersionCollector()
        looked = [each for each in self._points if each[1].manifest is not None]
        if not looked:
            self._manifest(self._choose(None))  # raises the reason
        for each in looked:
            found = _matching(self._manifest(each), fits)
            for count in collector.add(each[1].name, found):
                if count > _MOST_FOUND:
                    raise WrongRequest(f"more than {_MOST_FOUND} paths fit {pattern!r}: name a narrower pattern")
            self._forget(each)
        return VersionSearchResult(
            files=collector.files(), looked=tuple(each[1].name for each in looked),
            without=tuple(each[1].name for each in self._points if each[1].manifest is None),
        )  # fmt: skip

    def newest_first(self, path: bytes, before: str | None) -> Iterator[EntryInPoint]:
        """Yield what each point holds at a path, the newest point first. `before`: only older points than this one."""
        for each in reversed(self._points):
            if before is not None and each[1].name >= before:
                continue
            try:
                manifest = self._manifest(each)
            except OrchestratorError:
                yield EntryInPoint(point=_named(each), entry=None, listed=False)
                continue
            yield EntryInPoint(point=_named(each), entry=_entry_at(manifest, path))
            self._forget(each)

    def compare(self, words: Sequence[str]) -> PointComparison:
        """Return the differences between two points: the two newest, or those that the words name, and below their last word.

        Raises: WrongRequest · OrchestratorError.
        """
        named, path = self._split(words)
        before, after = self._pair(named)
        below = self._below(path)
        manifests = (self._manifest(before), self._manifest(after))
        if below and not any(_is_inside(name, below) for each in manifests for name, _ in read_rows(each)):
            raise self._no_such_path((before, after), below)
        return PointComparison(
            before=_named(before), after=_named(after), path=below, changes=_differences(*manifests, below)
        )

    def _split(self, words: Sequence[str]) -> tuple[list[str], str]:
        """Return the words that name points, and the path: a last word that no point's name begins with, or with "/" in it."""
        if words and (len(words) > 2 or not self._is_point(words[-1])):
            return [*words[:-1]], words[-1]
        return [*words], ""

    def _is_point(self, word: str) -> bool:
        fits = any(each[1].name.startswith(word) for each in self._points)
        return word == "latest" or (bool(word) and "/" not in word and fits)

    def _pair(self, named: Sequence[str]) -> "tuple[_Placed, _Placed]":
        if len(named) == 2:
            return self._choose(named[0]), self._choose(named[1])
        if len(self._points) < 2:
            raise OrchestratorError(
                f"{self._job.name} has {show_count(len(self._points), 'point')} to be read here; two are compared",
                hint=f"`{self._settings.repeat(f'points {self._job.name}')}` lists all points, and where they lie",
            )
        newest = self._points[-1]
        before = self._choose(named[0]) if named else self._points[-2]
        return (self._points[-2] if before is newest else before), newest

    def _choose(self, name: str | None) -> "_Placed":
        chosen = choose_point([each[1] for each in self._points], point=name, at=None)
        if isinstance(chosen, Refusal):
            near = f": {', '.join(chosen.evidence)}" if chosen.evidence else ""
            raise OrchestratorError(
                f"{self._job.name}: {chosen.why}{near}",
                hint=f"`{self._settings.repeat(f'points {self._job.name}')}` lists the points"
                if self._points
                else self._settings.repeat(f"run {self._job.name}"),
            )
        return next(each for each in self._points if each[1] is chosen)

    def _below(self, path: str) -> bytes:
        """Return a path below the source's root; a whole path of the source is one, too."""
        root = self._job.source.path.rstrip("/")
        inside = path if path != root and not path.startswith(f"{root}/") else path[len(root) :]
        parts = [part for part in os.fsencode(inside).split(b"/") if part not in (b"", b".")]
        if b".." in parts:
            raise WrongRequest(f'{path!r}: expected a path below the source\'s root, without ".."')
        return b"/".join(parts)

    def _manifest(self, placed: "_Placed") -> str:
        """Return the local path of a point's manifest, which is whole. Raises: OrchestratorError."""
        job, point = placed
        if point.manifest is None:
            raise self._without_manifest(point)
        path = point.manifest.path
        if point.manifest.host is not None:
            path = f"{self._folder}/{job.target.name}-{point.name}"
            if not os.path.exists(path):
                self._fetch(job, point.manifest, path)
        try:
            require_whole(path)
        except FileNotFoundError:
            raise self._without_manifest(point) from None
        return path

    def _fetch(self, job: "Job", manifest: "Location", path: str) -> None:
        from orchestrator.engines.registry import load_engine
        from orchestrator.process.executor import Writer, pipeline_failure
        from orchestrator.runner.context import tree_engine

        engine = load_engine(job.engine)
        pipeline = tree_engine(engine).fetch(manifest, path)
        with compose.open_connections(job) as options:
            writer = Writer(log=self._settings.log, ssh_options=options, stop=compose.make_stop_request(job))
            result = writer.stream(pipeline)
        if not result.well:
            raise engine.explain(pipeline_failure(pipeline, result, job.pipe.ssh_options))

    def _forget(self, placed: "_Placed") -> None:
        """Remove a manifest that was copied here: those of all points together may be too much."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self._folder}/{placed[0].target.name}-{placed[1].name}")

    def _without_manifest(self, point: "RestorePoint") -> OrchestratorError:
        from orchestrator.engines.registry import load_engine

        job = self._job.name
        if load_engine(self._job.engine).needs_datasets:
            words = self._settings.repeat(f"try {job} --point {point.name}")
            return OrchestratorError(
                f"{job} copies datasets: their snapshots have no list of names to read",
                hint=f"`{words}` mounts a scratch copy of the point and says where: look there; for two points one "
                "of each, then `diff -rq --no-dereference` with both folders",
            )
        tree = f"ls -la {quoted(point.tree.path)}"
        look = (
            tree
            if point.tree.host is None
            else f"{point.tree.host.ssh_with(self._job.pipe.ssh_options)} {quoted(tree)}"
        )
        return OrchestratorError(
            f"point {point.name} of {job} has no manifest, so its names are not recorded",
            hint=f"look at the copy itself: {look}; the next run that makes a point writes a manifest",
        )

    def _no_such_path(self, points: "Sequence[_Placed]", path: bytes) -> OrchestratorError:
        told = " and ".join(each[1].name for each in points)
        name = quoted(os.fsdecode(path.rpartition(b"/")[2]))
        words = self._settings.repeat(
            f"find {self._job.name} -- {name}" if name[0] == "-" else f"find {self._job.name} {name}"
        )
        return OrchestratorError(
            f"{self._job.name}: no {show_name(path)} in {told}", hint=f"`{words}` looks for the name in all points"
        )


_Placed = tuple["Job", "RestorePoint"]


def _named(placed: _Placed) -> ContentPoint:
    return ContentPoint(name=placed[1].name, disk=placed[0].target.disk)


def _is_inside(name: bytes, path: bytes) -> bool:
    return name == path or name.startswith(path + b"/")


def _folder(manifest: str, path: bytes, *, recursive: bool) -> Iterator[PointEntry]:
    """Yield the entries below a path: its own ones, or with all below them; for a file the file itself."""
    front = path + b"/" if path else b""
    for name, row in read_rows(manifest):
        if name.startswith(front) and name:
            if recursive or b"/" not in name[len(front) :]:
                yield manifest_entry(row_entry(manifest, row))
        elif name == path and name and row[1] != b"d":
            yield manifest_entry(row_entry(manifest, row))


def _entry_at(manifest: str, path: bytes) -> PointEntry | None:
    """Return the entry of a path. Why not to the end: a manifest is in order, and what follows comes after it."""
    key = path + b"//"
    for name, row in read_rows(manifest):
        if name == path:
            return manifest_entry(row_entry(manifest, row))
        if name + b"//" > key:
            return None
    return None


def _matching(manifest: str, fits: Callable[[bytes], bool]) -> Iterator[PointEntry]:
    for name, row in read_rows(manifest):
        if name and fits(name):
            yield manifest_entry(row_entry(manifest, row))


def _matcher(pattern: bytes) -> Callable[[bytes], bool]:
    """Return the check for a shell pattern: of a name, or of a whole path where the pattern has a slash in it."""
    inside = pattern.strip(b"/")
    compiled = re.compile(fnmatch.translate(inside.decode("latin-1")).encode("latin-1")).match
    if b"/" in inside:
        return lambda name: compiled(name) is not None
    return lambda name: compiled(name.rpartition(b"/")[2]) is not None


def _differences(before: str, after: str, path: bytes) -> Iterator[EntryChange]:
    """Walk two manifests side by side; both are in the same order."""
    left, right = _rows_below(before, path), _rows_below(after, path)
    one, other = next(left, None), next(right, None)
    while one is not None or other is not None:
        if other is None or (one is not None and one[0] < other[0]):
            yield EntryChange(before=manifest_entry(row_entry(before, one[1])) if one else None, after=None)
            one = next(left, None)
        elif one is None or other[0] < one[0]:
            yield EntryChange(before=None, after=manifest_entry(row_entry(after, other[1])))
            other = next(right, None)
        else:
            if one[1][:7] != other[1][:7] or one[1][9:] != other[1][9:]:  # without links and inode
                change = EntryChange(
                    before=manifest_entry(row_entry(before, one[1])), after=manifest_entry(row_entry(after, other[1]))
                )
                if changed_parts(change):
                    yield change
            one, other = next(left, None), next(right, None)


def _rows_below(manifest: str, path: bytes) -> Iterator[tuple[bytes, list[bytes]]]:
    return ((name + b"//", row) for name, row in read_rows(manifest) if not path or _is_inside(name, path))


def manifest_entry(found: ManifestEntry) -> PointEntry:
    """Return a line of a manifest as an entry of its point."""
    return PointEntry(
        path=found.path, kind=ENTRY_TYPE_NAMES[found.kind], size=found.size, mtime_ns=found.mtime_ns, mode=found.mode,
        uid=found.uid, gid=found.gid, target=found.target, digest=found.digest if ":" in found.digest else "",
        attributes=found.attributes,
    )  # fmt: skip
