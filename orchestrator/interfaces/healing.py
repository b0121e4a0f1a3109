"""Where good bytes of damaged files are: at the source, in other points, in copies of other jobs; and the command that takes them.

For trees of files. What heals datasets is known by their engine.

Reads.
"""

import os
import shlex
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator import compose
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.point import Finding, Point, Verdict
from orchestrator.domain.quick import dataclass
from orchestrator.interfaces.copies import Found, find_copies
from orchestrator.planners.copies import fetch_sentence
from orchestrator.verify.entry import Entry
from orchestrator.verify.manifest import read_manifest

if TYPE_CHECKING:
    from orchestrator.interfaces.cli.frame import Frame

DAMAGE = (Verdict.ROTTEN, Verdict.EDITED, Verdict.UNREADABLE, Verdict.MISSING)
_FILES, _POINTS = 20, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Cure:
    """Where the same bytes are, and the command; `command` empty: somebody must do something first."""

    path: bytes
    job: str
    place: str
    point: str | None
    says: str
    command: str


def cures(frame: "Frame", job: Job, point: str | None, findings: Sequence[Finding]) -> tuple[Cure, ...]:
    """For each damaged file of a point the best place to take it from. A look that fails finds nothing, and harms nothing."""
    damaged = [each.path for each in findings if each.verdict in DAMAGE][:_FILES]
    if not damaged or not job.source.path.startswith("/") or point is None:
        return ()
    try:
        found = find_copies(frame, job)
        promised = _entries(_point(frame, job, point), damaged)
        return tuple(cure for path in damaged for cure in _cures(frame, found, promised.get(path), path))
    except (OrchestratorError, OSError):
        return ()


def _cures(frame: "Frame", found: Found, promised: Entry | None, path: bytes) -> Iterator[Cure]:
    job, name = found.job, show_name(path)
    if promised is None or promised.kind != "f":
        return
    if _is_at_source(job, promised):
        says = f"{name}: the source still has it as it was copied"
        yield Cure(path=path, job=job.name, place="source", point=None, says=says, command=f"poolferry run {job.name}")
        return
    holders = list(_holders(frame, found, promised))
    for holder, place, point in holders[:1]:
        words = (
            "poolferry",
            "restore",
            "run",
            holder,
            "--point",
            point,
            "--path",
            os.fsdecode(path),
            "--to",
            _home(job, path),
        )
        aside = " --aside" if job.source.host or os.path.lexists(_home(job, path)) else ""
        says = f"{name}: {place} (job {holder}) holds the same bytes in point {point}"
        yield Cure(
            path=path, job=holder, place=place, point=point, says=says, command=show_name(shlex.join(words) + aside)
        )
    for copy, away in () if holders else found.choice.newer[:2]:
        says = f"{name}: {fetch_sentence(copy, away, None)}; it may hold it"
        yield Cure(path=path, job=copy.job, place=copy.place, point=away.name, says=says, command="")


def _home(job: Job, path: bytes) -> str:
    return str(job.source / os.fsdecode(path))


def _is_at_source(job: Job, promised: Entry) -> bool:
    """By size and time, as a run would tell; a source elsewhere is looked at by the next run."""
    if job.source.host is not None:
        return False
    try:
        seen = os.lstat(os.fsencode(job.source.path) + b"/" + promised.path)
    except OSError:
        return False
    return (seen.st_size, seen.st_mtime_ns) == (promised.size, promised.mtime_ns)


def _holders(frame: "Frame", found: Found, promised: Entry) -> Iterator[tuple[str, str, str]]:
    """(job, place, point) of points that promise the same bytes, and are not the same damaged file by another name."""
    known = frame.configuration()
    for copy in found.copies:
        if copy.away or copy.disk:
            continue
        other = known.job(copy.job)
        good = {held.name for held in copy.points if held.good}
        points = [point for point in _points(frame, other) if point.name in good]
        for point in reversed(points[-_POINTS:]):
            entry = _entries(point, (promised.path,)).get(promised.path)
            same_place = other.target.location == found.job.target.location
            if entry and entry.digest == promised.digest and not (same_place and entry.inode == promised.inode):
                yield other.name, copy.place, point.name
                break


def _points(frame: "Frame", job: Job) -> tuple[Point, ...]:
    from orchestrator.engines.shelf import engine

    with compose.reader(job, compose.stop_for(None), frame.log) as reader:
        return engine(job.engine).points(job, reader)


def _point(frame: "Frame", job: Job, name: str) -> Point | None:
    return next((point for point in _points(frame, job) if point.name == name), None)


def _entries(point: Point | None, paths: Collection[bytes]) -> dict[bytes, Entry]:
    """What a point's manifest promises of these files; of a place elsewhere nothing is read."""
    if point is None or point.manifest is None or point.manifest.host is not None:
        return {}
    wanted = set(paths)
    return {entry.path: entry for entry in read_manifest(point.manifest.path)[1] if entry.path in wanted}


def cure_lines(found: Sequence[Cure]) -> list[str]:
    """For people."""
    return [f"  to heal {each.says}" + (f": {each.command}" if each.command else "") for each in found]


def cure_values(found: Sequence[Cure]) -> list[dict[str, Any]]:
    """For programs."""
    return [
        {"path": show_name(each.path), "job": each.job, "place": each.place, "point": each.point, "says": each.says,
         "command": each.command or None} for each in found
    ]  # fmt: skip
