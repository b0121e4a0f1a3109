"""Problems of copies that a look at the target or a run finds: points that vanished or lack parts, manifests that are missing,
noted damage, and files that could not be read at the source.
"""

import contextlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.answers import parse_instant, parse_json
from orchestrator.domain.errors import NotNow, OrchestratorError, VerificationFailed
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_short_name
from orchestrator.domain.place import USED
from orchestrator.domain.plan import Plan
from orchestrator.domain.point import MIRROR, MIRROR_FILE_TIME, MIRROR_MADE, MIRROR_WRITES, RestorePoint
from orchestrator.domain.problem import (
    UNREAD_OR_UNSTORED_WORDS,
    UNREAD_WORDS,
    UNSTORED_WORDS,
    ProblemType,
    problem_hint,
    problem_sentence,
)
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.units import show_count
from orchestrator.engines.contract.copies import CompletenessReporter, PointLister
from orchestrator.engines.contract.engine import SkippedEntries, implements
from orchestrator.process.executor import Reader, Writer
from orchestrator.runner.context import RunContext
from orchestrator.runner.last_look import find_points, follow_place
from orchestrator.runner.locks import lock_job
from orchestrator.runner.run_recorder import RunRecorder

_PRUNED_THERE = "pruned there:"  # a small fact of a job, with the place: the machine that holds its points prunes them


def look_for_points(journal: RunRecorder, writer: Writer, *, quiet: bool = False) -> tuple[RestorePoint, ...]:
    """Return the points that the target holds, oldest first, and record which, beside runs of the job. Raises: OrchestratorError.

    Why with its lock where history knows others: a run makes and removes points between a look and its record. While one goes on, it records
    them itself. `quiet`: with no warning of what vanished, as the caller says it.
    """
    job, tools = journal.job, journal.tools
    points = find_points(job, tools, writer)
    if tools.history.point_names(job.name, job.target.name) == {point.name for point in points}:
        see_points(journal, points, reader=writer, quiet=quiet)
        return points
    with contextlib.ExitStack() as held:
        try:
            held.enter_context(lock_job(job, tools.state, wait=tools.stop.wait, patience=0))
        except NotNow:
            return points
        points = find_points(job, tools, writer)
        see_points(journal, points, reader=writer, quiet=quiet)
    return points


def see_points(
    journal: RunRecorder,
    points: Sequence[RestorePoint],
    *,
    pruned_there: bool | None = None,
    reader: Reader | None = None,
    quiet: bool = False,
) -> None:
    """Record which points the target holds, and what is wrong with them by this look alone. Nothing is written while all is well.

    `pruned_there`: the target's own machine prunes them, so one that vanished is a loss only if it was the newest; None: as at the last run.
    `reader`: looks whether a place that has another name and path now was left; None after a copy, which brings known names anywhere.
    `quiet`: with no warning of another state that lies there.
    """
    job, history = journal.job, journal.tools.history
    known = {point.name: point.taken for point in points}
    if followed := follow_place(job, journal.tools, known, reader):
        journal.say(followed)
    if not implements(journal.tools.engine, PointLister):  # snapshots of a copy are pruned by others, too
        history.points_seen(job.name, job.target.name, known, journal.now)
        return
    gone = history.point_names(job.name, job.target.name) - known.keys()
    moved = _moved_from(journal) if gone else ""
    if moved:
        journal.warn(
            f"{job.target.name} was {moved} and is {job.target.location} now; points that stayed there are not counted any more"
        )
    mirrored = gone == {MIRROR} and getattr(job.options, "points", False)
    if mirrored and not (known or moved):
        return  # the mirror is the copy until the first point is made
    if mirrored and not moved:
        journal.warn(
            f"{job.target.location} held a mirror, and is a place of restore points now: the mirror's files still lie beside `points` there, and are "
            "counted no more; remove them when the points hold what you need"
        )
    elsewhere = f"{_PRUNED_THERE}{job.target.name}"
    if pruned_there or (gone and pruned_there is not None):
        history.remember(job.name, elsewhere, "yes" if pruned_there else "")
    expected = bool(gone and are_pruned_there(job, journal.tools)) and max(gone) < max(known, default="")
    expected = expected or mirrored
    if gone and not (quiet or moved or expected) and (other := _other_state(journal, known, gone)):
        journal.warn(other)
    history.points_seen(job.name, job.target.name, known, journal.now, lost=not moved and not expected)
    _see_state(journal, points)


def are_pruned_there(job: Job, tools: RunContext) -> bool:
    """Return whether the target's own machine prunes the points, as the last run saw it."""
    return bool(tools.history.recall(job.name, f"{_PRUNED_THERE}{job.target.name}"))


def _other_state(journal: RunRecorder, known: Collection[str], gone: Collection[str]) -> str:
    """Return what else than this place's last state lies there, by the points that are there and that are not; empty: nothing says so.

    Why by points: a marker, a filesystem's uuid and a device's number are the same on a clone, or others after a boot; names of points that
    runs made since are on one copy alone.
    """
    history, job = journal.tools.history, journal.job
    missed = history.problems.missed_points(job.name, job.target.name)
    lost, there = missed.intersection(gone), history.point_names(job.name, job.target.name)
    back = missed.intersection(known) - there
    where = f"{job.target.name} ({job.target.location})"
    if lost and back:
        return (
            f"two copies of {where} take turns: {max(back)} had vanished and is there again, and {max(lost)} is gone, which a later run made; "
            "a disk was cloned, or its folder copied with its marker. Give one of them a place of its own in targets.toml, with an empty folder"
        )
    if lost and not known:
        return (
            f"none of the {show_count(len(lost), 'point')} that history knows is at {where}, only the marker that says whose place it is: all were "
            "removed, or another disk or folder with the same marker lies there"
        )
    if lost and max(lost) > max(known):
        return (
            f"{where} shows an older state: its newest point is {max(known)}, and a run made {max(lost)} there: it was put back from an older "
            "state, or another copy of it lies there, such as a clone of its disk"
        )
    return ""


@contextlib.contextmanager
def changed_mirror(journal: RunRecorder, plan: Plan) -> Iterator[None]:
    """Record while a plan changes a mirror that there is no whole copy at the place, and that there is one once it is done.

    Of a run that another one keeps out, as that holds the place, what was recorded before stays.
    """
    if not plan.rewrites:
        yield
        return
    job, history, key = journal.job, journal.tools.history, MIRROR_WRITES + journal.job.target.name
    before = history.recall(job.name, key) or ""
    history.remember(job.name, key, json.dumps([journal.run, journal.now.isoformat()]))
    journal.speak_of_mirror()
    try:
        yield
    except NotNow:
        history.remember(job.name, key, before)
        raise
    except OrchestratorError:
        history.point_incomplete(job.name, job.target.name, MIRROR)
        raise
    end_mirror_begun(journal)


def end_mirror_begun(journal: RunRecorder) -> None:
    """Record that a mirror is whole."""
    journal.tools.history.remember(journal.job.name, MIRROR_WRITES + journal.job.target.name, "")


def note_mirror(journal: RunRecorder, made: datetime, there: int | None) -> None:
    """Record when the manifest of a mirror was written, so that an older state of it is not taken for this one. `there`: the file's own time."""
    remember, place = journal.tools.history.remember, journal.job.target.name
    remember(journal.job.name, MIRROR_MADE + place, made.isoformat())
    remember(journal.job.name, MIRROR_FILE_TIME + place, "" if there is None else str(there))


def require_last(point: RestorePoint, manifest: str, journal: RunRecorder) -> None:
    """Check that a mirror's manifest is the last that a run wrote. `manifest`: its local path. Raises: VerificationFailed."""
    if point.name != MIRROR:
        return
    from orchestrator.verify.manifest import read_manifest

    job = journal.job
    last = journal.tools.history.fact(job.name, MIRROR_MADE + job.target.name, parse_instant)
    found = read_manifest(manifest)[0].created
    if last is not None and found < last:
        raise VerificationFailed(
            f"{job.target.location} shows an older state: its manifest is of {found:%Y-%m-%d %H:%M:%S} UTC, and a run wrote one at "
            f"{last:%Y-%m-%d %H:%M:%S}: it was put back from an older state, or another copy of it lies there, such as a clone of its disk",
            hint=f"mount the right disk; or poolferry run {job.name}, which makes this one as the source",
        )


def follow_renamed_place(journal: RunRecorder, reader: Reader) -> None:
    """Follow a place without listed points that has another name, before anything of it is recorded. Why no error: the run's own look counts."""
    job, tools, history = journal.job, journal.tools, journal.tools.history
    if tools.engine.stays or job.target.disk:
        return
    if history.recall(job.name, USED) is None or history.renames.knows_place(job.name, job.target.name):
        return
    with contextlib.suppress(OrchestratorError):
        points = find_points(job, tools, reader)
        if followed := follow_place(job, tools, {point.name for point in points}, reader):
            journal.say(followed)


def _moved_from(journal: RunRecorder) -> str:
    """Return where the place was at the last run, if it lies elsewhere now; a disk is known by its name, not by its path."""
    job = journal.job
    before = journal.tools.history.recall(job.name, USED)
    return "" if before in (None, str(job.target.location)) or job.target.disk else str(before)


def _see_state(journal: RunRecorder, points: Sequence[RestorePoint]) -> None:
    """Record what the names beside the points show: a missing manifest, or damage that a lost history knew."""
    seen = [(ProblemType.MANIFEST, point.name, "its manifest is missing") for point in points if point.manifest is None]
    seen += [(ProblemType.DAMAGED, point.name, "a note beside it says so") for point in points if point.damaged]
    if not seen:
        return
    job, place, history = journal.job, journal.job.target.name, journal.tools.history
    told = {each.point for each in history.problems.of(job.name) if each.place == place}
    for kind, name, why in seen:
        if name not in told:
            if kind is ProblemType.MANIFEST:
                history.point_incomplete(job.name, place, name)
            journal.verdicts.problems.open(job.name, place, kind, name, why=why, paths=(), count=0, now=journal.now)
            told.add(name)


def note_bad_manifest(journal: RunRecorder, point: RestorePoint, why: str) -> None:
    """Record that the manifest of a point cannot be used: until it can, the point is no verified copy."""
    job = journal.job
    journal.tools.history.point_incomplete(job.name, job.target.name, point.name)
    journal.verdicts.problems.open(
        job.name, job.target.name, ProblemType.MANIFEST, point.name, why=why, paths=(), count=0, now=journal.now
    )


def note_shared_damage(
    journal: RunRecorder, point: RestorePoint, found_in: RestorePoint, paths: Sequence[bytes]
) -> None:
    """Record damage of files that a point shares with another one, in which a reading found it."""
    job = journal.job
    told = tuple(path.decode("utf-8", "surrogateescape") for path in paths)
    why = f"the same files as in point {found_in.name}"
    journal.verdicts.problems.open(
        job.name,
        job.target.name,
        ProblemType.DAMAGED,
        point.name,
        why=why,
        paths=told,
        count=len(told),
        now=journal.now,
    )


_MISSING = "missing on "  # before the names of a place and a point: a small fact of a job


def note_incomplete_points(journal: RunRecorder, writer: Writer, world: Any, *, doubtful: bool) -> None:
    """Record which points at the target lack datasets. Raises: OrchestratorError.

    `doubtful`: some datasets were refused or failed; else only points that lacked some before are looked at again.
    """
    job, tools = journal.job, journal.tools
    if not implements(tools.engine, CompletenessReporter) or job.target.location.path.startswith("/"):
        return
    memory, place = tools.history.memory(job.name), job.target.name
    if not doubtful and not any(key.startswith(f"{_MISSING}{place} ") and told != "[]" for key, told in memory.items()):
        return
    start = f"{_MISSING}{place} "
    known = {
        key[len(start) :]: missing_parts(memory, place, key[len(start) :]) for key in memory if key.startswith(start)
    }
    found = tools.engine.incomplete_points(job, world, known, writer)
    for point, lacking in found.items():
        note_missing_parts(journal, point, lacking, known.get(point, ()))
    # Why here: a run that is refused looks at no points otherwise, and what was destroyed on a disk elsewhere is no copy.
    for point in tools.history.point_names(job.name, place) - found.keys() if found else ():
        tools.history.point_gone(job.name, place, point, journal.now)


def note_missing_parts(
    journal: RunRecorder, point: str, lacking: tuple[str, ...], before: tuple[str, ...] = ()
) -> None:
    """Record which datasets a point lacks at the job's place; `before`: what was known of it."""
    job, history, place = journal.job, journal.tools.history, journal.job.target.name
    if lacking:
        history.point_incomplete(job.name, place, point)
    elif before:
        history.point_verified(job.name, place, point, journal.run, journal.now)
    if lacking != before:
        history.remember(job.name, f"{_MISSING}{place} {point}", json.dumps(lacking))


def missing_parts(memory: Mapping[str, str], place: str, point: str) -> tuple[str, ...]:
    """Return the datasets that a point at a place lacks, as a job's small facts say; none: it is whole, or nothing is known."""
    try:
        found = parse_json(memory.get(f"{_MISSING}{place} {point}", "[]"))
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


_NAMED = 50


def end_left_out(journal: RunRecorder) -> None:
    """Record that a run read everything."""
    job, by = journal.job, f"run {journal.run} read everything"
    journal.tools.history.problems.end(job.name, job.target.name, (ProblemType.LEFT_OUT,), None, by=by, now=journal.now)


def unreadable_entries(left_out: Sequence[SkippedEntries]) -> dict[bytes, str]:
    """Return the entries that could not be read, each with the reason."""
    return {name: why for each in left_out for name, why in each.unreadable}


def unmade_entries(left_out: Sequence[SkippedEntries]) -> dict[bytes, str]:
    """Return the entries that the target does not take, or that are too large to be carried, each with the reason."""
    return {name: why for each in left_out for name, why in (*each.unmade, *each.unlinked)}


def unstored_entries(left_out: Sequence[SkippedEntries]) -> dict[bytes, str]:
    """Return the entries that the target does not hold as they are at the source, each with what is not so."""
    return {name: what for each in left_out for name, what in each.unstored}


def end_incomplete(journal: RunRecorder, left_out: Sequence[SkippedEntries], *, point: str, made: str) -> RunReport:
    """Record which files the new point lacks, or has otherwise; end the run as incomplete."""
    job, history = journal.job, journal.tools.history
    unreadable, unmade, unstored = unreadable_entries(left_out), unmade_entries(left_out), unstored_entries(left_out)
    more = sum(each.more_unstored for each in left_out)
    with history.together():
        known = [
            each for each in history.problems.open_of(job.name, job.target.name) if each.kind is ProblemType.LEFT_OUT
        ]
        since = min((each.since for each in known), default=journal.now)
        history.problems.end(
            job.name,
            job.target.name,
            (ProblemType.LEFT_OUT,),
            None,
            by="a newer point has its own list",
            now=journal.now,
        )
        told = {**unstored, **unmade, **unreadable}
        kinds = bool(unreadable), bool(unstored)
        why = UNREAD_OR_UNSTORED_WORDS if unmade or all(kinds) else UNSTORED_WORDS if unstored else UNREAD_WORDS
        paths = sorted(name.decode("utf-8", "surrogateescape") for name in told)
        journal.verdicts.problems.open(
            job.name, job.target.name, ProblemType.LEFT_OUT, point, why=why, paths=paths, count=len(paths) + more,
            now=since,
        )  # fmt: skip
        problem = next(each for each in history.problems.open_of(job.name, job.target.name) if each.point == point)
        return journal.ended(
            Outcome.INCOMPLETE, f"{problem_sentence(problem)}; {made}", hint=problem_hint(problem, newest=point),
            evidence=[f"{show_short_name(name)}: {words}" for name, words in sorted(told.items())[:_NAMED]],
        )  # fmt: skip


_WARNED = 20  # warnings name so many entries; the manifest and history's output name all


def warnings_of(left_out: SkippedEntries | None) -> tuple[str, ...]:
    """Return one line for each entry that a copy had to leave out, up to a limit."""
    if left_out is None:
        return ()
    unreadable = [
        f"could not be read, so it is missing in this point: {show_short_name(name)} ({why})"
        for name, why in left_out.unreadable
    ]
    unmade = [
        f"is missing in this point: {show_short_name(name)} ({why})" for name, why in left_out.unmade
    ]  # of links a listing tells later
    vanished = [f"vanished while it was copied: {show_short_name(name)}" for name in left_out.vanished]
    more = _first_lines(unmade, "entries are missing in this point")
    return (*_first_lines(unreadable, "entries could not be read"), *more, *_first_lines(vanished, "entries vanished"))


def _first_lines(lines: list[str], what: str) -> tuple[str, ...]:
    more = len(lines) - _WARNED
    return (*lines[:_WARNED], *((f"and {more} more {what}",) if more > 0 else ()))
