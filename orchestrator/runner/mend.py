"""Repair of older points after a run: damaged entries become as in the newest point, where it has the same ones."""

import os
from collections.abc import Collection

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.names import show_name
from orchestrator.domain.plan import Pipeline, TreeVerification
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.problem import Problem, ProblemType
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.engine import implements
from orchestrator.engines.contract.trees import MendedPart, PointMender
from orchestrator.process.executor import Writer
from orchestrator.runner.locks import lock_point
from orchestrator.runner.manifests import require_authentic, store_damage_note
from orchestrator.runner.run_recorder import RunRecorder, fetch_file, run_small
from orchestrator.runner.verify.read_files import read_quietly
from orchestrator.verify.attributes import UNRECORDED
from orchestrator.verify.entry import ManifestEntry
from orchestrator.verify.manifest import read_manifest, write_manifest


def damaged_points(journal: RunRecorder) -> tuple[Problem, ...]:
    """Return the open problems at this place that a run may mend."""
    job = journal.job
    if not implements(journal.tools.engine, PointMender):
        return ()
    known = journal.tools.history.problems.open_of(job.name, job.target.name)
    return tuple(each for each in known if each.kind is ProblemType.DAMAGED)


def mend_points(
    journal: RunRecorder, writer: Writer, points: tuple[RestorePoint, ...], *, notes: str, changed: bool
) -> None:
    """Mend what can be mended of the damaged points, and record of the rest that no run can. A failure is a warning."""
    newest = points[-1]
    for problem in damaged_points(journal):
        point = next((each for each in points if each.name == problem.point), None)
        if point is None or point.manifest is None or newest.manifest is None or (newest.damaged and not changed):
            continue
        if not problem.paths or (problem.tried and not changed):
            continue
        try:
            with lock_point(journal.job, journal.tools.state, point.name):
                _mend(problem, point, newest, journal, writer, notes)
        except OrchestratorError as error:
            journal.warn(f"point {point.name} could not be mended: {error.why}")


def _mend(
    problem: Problem, point: RestorePoint, newest: RestorePoint, journal: RunRecorder, writer: Writer, notes: str
) -> None:
    damaged = {path.encode("utf-8", "surrogateescape") for path in problem.paths}
    # The folders, too: a file that is made again changes its folder's time.
    parents = {path.rpartition(b"/")[0] for path in damaged if path}
    folder = f"{notes}/mend"
    os.makedirs(folder, exist_ok=True)
    own = _entries(point, damaged | parents, journal, writer, f"{folder}/old")
    good = own if point.name == newest.name else _entries(newest, damaged | parents, journal, writer, f"{folder}/new")
    same = {path for path, entry in own.items() if path in good and _alike(entry, good[path])}
    left = damaged
    if point.name != newest.name and (known := damaged & (same | _folders(own))):
        journal.say(
            f"point {point.name}: writing {show_count(len(known), 'entry', 'entries')} anew from point {newest.name}"
        )
        _make_alike(point, newest, own, same, journal, writer, folder)
    told = [entry for path, entry in own.items() if path in same | parents | _folders(own)]
    if told:
        left = (damaged | (parents & own.keys())) - _sound(point, told, journal, writer, folder)
    _record(problem, point, sorted(left), journal, writer, notes)


def _folders(entries: dict[bytes, ManifestEntry]) -> set[bytes]:
    return {path for path, entry in entries.items() if entry.kind == "d"}


def _make_alike(
    point: RestorePoint,
    newest: RestorePoint,
    own: dict[bytes, ManifestEntry],
    same: set[bytes],
    journal: RunRecorder,
    writer: Writer,
    folder: str,
) -> None:
    """Write these entries of a point anew from the newest, let names of one file be such again, and give folders their times.

    `own`: what the point's manifest promises. Why from that: a folder of the newest has another time once something in it is another.
    """
    if below := sorted(same - {b""}):
        # What is written in place is changed in all that are names of it.
        files = [(b"%d" % own[path].inode, b"./" + path) for path in below if own[path].kind == "f"]
        _copy(point, newest, "apart", [word for pair in files for word in pair], journal, writer, folder)
        _copy(point, newest, "contents", below, journal, writer, folder)
    if b"" in same:
        _copy(point, newest, "top", [], journal, writer, folder)
    shared = {own[path].inode for path in below if own[path].kind == "f" and own[path].nlink > 1}
    if linked := _linked_names(point, newest, shared, journal, writer, folder) if shared else []:
        _copy(point, newest, "names", linked, journal, writer, folder)
        around = {path.rpartition(b"/")[0] for path in linked} - own.keys()
        own = own | _entries(point, around, journal, writer, f"{folder}/old")
    timed = [(_seconds(own[path].mtime_ns), b"./" + path) for path in sorted(_folders(own))]
    _copy(point, newest, "times", [word for pair in timed for word in pair], journal, writer, folder)


def _linked_names(
    point: RestorePoint, newest: RestorePoint, inodes: set[int], journal: RunRecorder, writer: Writer, folder: str
) -> list[bytes]:
    """Return the paths of files of these inodes that have several names in the point, and are the same in the newest."""
    own = _entries(point, None, journal, writer, f"{folder}/old", inodes=inodes)
    if len(own) == len({entry.inode for entry in own.values()}):
        return []
    good = _entries(newest, set(own), journal, writer, f"{folder}/new")
    return sorted(path for path, entry in own.items() if path in good and _alike(entry, good[path]))


def _seconds(nanoseconds: int) -> bytes:
    """Return a time as `touch` reads it, to the last digit."""
    seconds, rest = divmod(abs(nanoseconds), 1_000_000_000)
    return b"@%s%d.%09d" % (b"-" if nanoseconds < 0 else b"", seconds, rest)


def _entries(
    point: RestorePoint,
    paths: set[bytes] | None,
    journal: RunRecorder,
    writer: Writer,
    notes: str,
    *,
    inodes: Collection[int] = (),
) -> dict[bytes, ManifestEntry]:
    """Return the entries that a point's manifest promises at these paths, or of these inodes; no files whose contents it does not know."""
    if point.manifest is None:
        return {}
    manifest = fetch_file(point.manifest, journal, writer, notes)
    require_authentic(point, manifest, journal, writer, notes)
    found = (
        entry
        for entry in read_manifest(manifest)[1]
        if (entry.inode in inodes if paths is None else entry.path in paths)
    )
    return {entry.path: entry for entry in found if entry.kind != "f" or ":" in entry.digest}


def _alike(one: ManifestEntry, other: ManifestEntry) -> bool:
    """Return True when both promise the same bytes and metadata; a copied file has another inode, and other names.

    Times of folders come from the point's own manifest. A manifest of an earlier version says nothing of attributes.
    """
    if not (one.attributes and other.attributes):
        one, other = one._replace(attributes=UNRECORDED), other._replace(attributes=UNRECORDED)
    if one.kind == "d":
        one = one._replace(mtime_ns=other.mtime_ns)
    return one._replace(inode=0, nlink=0) == other._replace(inode=0, nlink=0)


def _copy(
    point: RestorePoint,
    newest: RestorePoint,
    what: MendedPart,
    paths: list[bytes],
    journal: RunRecorder,
    writer: Writer,
    folder: str,
) -> None:
    engine, names = journal.tools.engine, f"{folder}/names"
    if not implements(engine, PointMender):
        return
    with open(names, "wb") as file:
        file.writelines(path + b"\0" for path in (*paths, b"end"))
    pipeline = engine.mend(journal.job, sound=newest, damaged=point, what=what)
    run_small(Pipeline(stages=pipeline.stages, reads=names), journal, writer)


def _sound(
    point: RestorePoint, entries: list[ManifestEntry], journal: RunRecorder, writer: Writer, folder: str
) -> set[bytes]:
    """Return the paths among these that are read now as the point's own manifest promises."""
    if point.manifest is None:
        return set()
    manifest = fetch_file(point.manifest, journal, writer, f"{folder}/old")
    header, _ = read_manifest(manifest)
    part = f"{folder}/part.gz"
    write_manifest(part, header, entries)
    work = TreeVerification(point=point, tree=point.tree, apart=point.apart, workers=journal.job.verify.workers)
    reading = read_quietly(work, part, journal, writer, folder)
    bad = {found.path for found in reading.findings}
    return {entry.path for entry in entries} - bad


def _record(
    problem: Problem, point: RestorePoint, left: list[bytes], journal: RunRecorder, writer: Writer, notes: str
) -> None:
    job, history = journal.job, journal.tools.history
    known = 0 < problem.count == len(problem.paths)
    if known and not left:
        history.mended(job.name, job.target.name, point.name, journal.now)
        store_damage_note(replace(point, damaged=True), [], journal, writer, notes)
        journal.say(
            f"point {point.name} is mended: {show_count(problem.count, 'entry', 'entries')} read again, and sound"
        )
        return
    paths = tuple(path.decode("utf-8", "surrogateescape") for path in left)
    count = len(left) if known else max(problem.count, len(left))
    if (paths, count, True) != (problem.paths, problem.count, problem.tried):
        journal.verdicts.problems.open(
            job.name, job.target.name, problem.kind, point.name, why=problem.why, paths=paths, count=count, now=journal.now,
            tried=True,
        )  # fmt: skip
        shown = ", ".join(show_name(path) or "." for path in left[:5]) or "an unknown number of files"
        journal.warn(f"point {point.name} stays damaged: neither the source nor the newest point mends {shown}")
