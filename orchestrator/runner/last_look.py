"""The look at a place for the points of a job, and the record of a look that did not find the copies that the place held.

What history knows of a copy is what was seen last. Where a later look failed, found another disk or an empty mount point, all
that is said of the copy says so too, until a look finds it again: it may be gone.
"""

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestrator.domain.errors import NotNow, OrchestratorError, OutsideError, RetryClass, Stopped, TargetUnable
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.place import USED, parse_location
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.problem import SAME_COMMAND, UNSEEN, UnseenCopies, parse_unseen
from orchestrator.domain.source_identity import COPY_IDENTITY
from orchestrator.engines.contract.copies import CopyFinder, PlaceIdentifier, PointLister
from orchestrator.engines.contract.engine import Engine, implements
from orchestrator.history.store import History
from orchestrator.process.executor import Reader
from orchestrator.runner.context import RunContext

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class LookContext:
    """The services of a look outside of a run; those of a run serve as well."""

    engine: Engine
    history: History
    clock: "Callable[[], datetime]"


def find_points(job: Job, tools: LookContext | RunContext, reader: Reader) -> tuple[RestorePoint, ...]:
    """Return the points at the job's place, oldest first. Raises: OrchestratorError, also where a place shows no sign of its copies."""
    try:
        held = partial(tools.history.point_names, job.name, job.target.name)
        points = look_at_place(job, tools.engine, reader, held=held, remembered=lambda: tools.history.memory(job.name))
    except OrchestratorError as error:
        note_failed_look(job, tools, error)
        raise
    note_seen(job, tools)
    return points


def look_at_place(
    job: Job,
    engine: Engine,
    reader: Reader,
    *,
    held: "Callable[[], object]",
    remembered: "Callable[[], Mapping[str, str]]",
) -> tuple[RestorePoint, ...]:
    """Return the points at the job's place, oldest first, and record nothing. `held`: tells whether history knows points there.

    `remembered`: returns the small facts of the job. Raises: OrchestratorError; TargetUnable where the place held points and is not
    known again: its disk may not be mounted, or what it held has another name.
    """
    try:
        points = engine.points(job, reader)
    except TargetUnable as error:
        raise _find_elsewhere(job, engine, reader, remembered) or error from error
    if points or engine.stays or not held():
        return points
    if moved := _find_elsewhere(job, engine, reader, remembered):
        raise moved
    if implements(engine, PointLister) and engine.is_own_place(job, reader):
        return points  # then they vanished
    before = f"{show_name(str(job.target.location))} held copies of {job.name} and"
    if engine.needs_datasets:
        why = f"{before} has none now: it was destroyed, or has another name"
        hint = f"`zfs list -t snapshot` there shows where they are: name that place in targets.toml; or `poolferry run {job.name}` copies anew"
        raise TargetUnable(why, evidence=(), hint=hint)
    why, hint = (
        f"{before} shows no sign of them now: is it mounted?",
        f"mount it, or bring it back, and {SAME_COMMAND}",
    )
    raise TargetUnable(why, evidence=(), hint=hint)


def _find_elsewhere(
    job: Job, engine: Engine, reader: Reader, remembered: "Callable[[], Mapping[str, str]]"
) -> TargetUnable | None:
    """Return the error that says where the copy of the last run lies now; None: the engine finds it nowhere."""
    found = engine.explain_moved_copy(job, remembered(), reader) if implements(engine, CopyFinder) else None
    return TargetUnable(found.why, evidence=found.evidence, hint=found.hint) if found else None


def note_failed_look(job: Job, tools: LookContext | RunContext, error: OrchestratorError) -> None:
    """Record that a look at a place failed, unless it was only put off."""
    if error.copies_seen:
        note_seen(job, tools)
    elif not isinstance(error, NotNow | Stopped):
        unanswered = job.target.location.host is not None and error.retry is RetryClass.LATER
        note_unseen(job, tools, error.why, looked=not unanswered)


def note_failed_survey(job: Job, tools: LookContext | RunContext, error: OrchestratorError) -> None:
    """Record what a survey of both sides that failed says of the copies: nothing, where it failed at the source."""
    host = job.target.location.host and str(job.target.location.host)
    there = isinstance(error, OutsideError) and host and error.evidence.host == host
    if error.copies_seen is not None or there:
        note_failed_look(job, tools, error)


def note_unseen(job: Job, tools: LookContext | RunContext, why: str, *, looked: bool = True) -> None:
    """Record that a look did not find the copies that a place is known to hold; the first such look keeps its time.

    `looked` False: nobody could look there, as its host did not answer.
    """
    history, key = tools.history, UNSEEN + job.target.name
    if not history.point_names(job.name, job.target.name):
        return
    before = parse_unseen(history.recall(job.name, key) or "")
    since = before.since if before else tools.clock()
    looked = looked or (before is not None and before.looked)
    history.remember(job.name, key, str(UnseenCopies(since=since, why=why, looked=looked)))


def note_seen(job: Job, tools: LookContext | RunContext) -> None:
    """Record that a look found the copies, where the last one did not."""
    if tools.history.recall(job.name, UNSEEN + job.target.name):
        tools.history.remember(job.name, UNSEEN + job.target.name, "")


def follow_place(job: Job, tools: LookContext | RunContext, known: "Collection[str]", reader: Reader | None) -> str:
    """Record what is known under a place's former name under its name of today, where it is the same place; return what was done, as text.

    `known`: the points there. A place that has another path, too, is the same if it holds the newest point and shows no copies of the
    job where it was. `reader`: looks there; None: such a place is not followed.
    """
    history, place = tools.history, job.target
    if not known or place.disk or history.was_named(job.name, place.name, max(known)):
        return ""  # as in nearly every run
    if history.point_names(job.name, place.name):
        return ""
    before = history.renames.place_before(job.name, place.name, max(known))
    used = history.recall(job.name, USED)
    if not before or used is None:
        return ""
    moved = used != str(place.location)
    if not _is_same_copy(job, tools, before, used if moved else None, reader):
        return ""
    history.renames.rename_place(job.name, before, place.name)
    if not moved:
        return f"the place {before} is called {place.name} now"
    history.remember(job.name, USED, str(place.location))
    return f"the place {before} ({show_name(used)}) is {place.name} ({show_name(str(place.location))}) now: it holds the same points"


def _is_same_copy(
    job: Job, tools: LookContext | RunContext, before: str, used: str | None, reader: Reader | None
) -> bool:
    """Return whether the copy at the job's place is the one that was known as `before`. `used`: where that lay, if elsewhere.

    An identity decides where one is known: copies of datasets have points of the same names wherever they lie.
    """
    if implements(tools.engine, PlaceIdentifier):
        if reader is None:
            return False
        if known := tools.history.recall(job.name, COPY_IDENTITY + before):
            return tools.engine.find_place_identity(job, reader) == known
    return used is None or (reader is not None and _is_left(job, tools, used, before, reader))


def forget_other_copy(job: Job, tools: RunContext, world: Any) -> str:
    """Forget what is known of points of a copy that is not there any more, as another has its place; return that, as text.

    The new one may have points of the same names, and nobody has read them.
    """
    engine, history, key = tools.engine, tools.history, COPY_IDENTITY + job.target.name
    if not implements(engine, PlaceIdentifier) or not (known := history.recall(job.name, key)):
        return ""
    if (found := engine.place_identity(world)) is None or found == known:
        return ""
    history.remember(job.name, key, "")
    history.points_seen(job.name, job.target.name, {}, tools.clock())
    return f"the copy at {show_name(str(job.target.location))} is another one than at the last run: nothing that was verified before counts"


def note_copy_identity(job: Job, tools: RunContext, world: Any, made: Reader | None = None) -> None:
    """Record which copy the place holds, where the survey shows it. `made`: looks again, where the run itself has made one."""
    if not implements(tools.engine, PlaceIdentifier):
        return
    found = tools.engine.place_identity(world)
    if found == "" and made is not None:
        with contextlib.suppress(OrchestratorError):  # then the next run shows it
            found = tools.engine.find_place_identity(job, made)
    if found:
        tools.history.remember(job.name, COPY_IDENTITY + job.target.name, found)


def _is_left(job: Job, tools: LookContext | RunContext, used: str, before: str, reader: Reader) -> bool:
    """Return whether a place shows no copies of the job any more. One that cannot be looked at is not left: what is said of it says so."""
    there = replace(job, target=replace(job.target, name=before, location=parse_location(used)))
    try:
        return not tools.engine.points(there, reader)
    except OrchestratorError as error:
        note_failed_look(there, tools, error)
        return False
