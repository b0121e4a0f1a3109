"""The past from history: runs, one run, restore points, recovery kits; and the points that the targets hold now."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.errors import NotNow, OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.place import USED
from orchestrator.domain.problem import UNSEEN, find_half_written, parse_unseen

if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.domain.drill import DrillRecord
    from orchestrator.domain.job import Job
    from orchestrator.domain.kit import KitContents
    from orchestrator.domain.run_progress import RunProgress
    from orchestrator.history.store import History
    from orchestrator.history.values import EventRecord, PointRecord, RunDetails, RunRecord, StepRecord
    from orchestrator.views.run_history import PointTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One run. `drilled`: its result, where it was a restore test."""

    story: "RunDetails"
    drilled: "DrillRecord | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryKit:
    """The recovery kit of a job's source, and when it was made."""

    job: str
    kit: "KitContents"
    made_at: "datetime"


def list_runs(settings: Settings, job: str | None, limit: int) -> "tuple[RunRecord, ...]":
    """Return the newest runs, of one job or of all. Raises: HistoryError · DeclarationError: nobody knows a job of that name."""
    with settings.views() as views:
        found = tuple(map(_as_it_ended, views.runs(job, limit)))
    if job is not None and not found:
        settings.jobs([job])  # a job that was removed may have runs
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """A part of the list of all runs, newest first. `older`: where the next part begins; None: there are no older runs."""

    runs: "tuple[RunRecord, ...]"
    older: int | None


def page_runs(settings: Settings, job: str | None, before: int | None, size: int) -> RunPage:
    """Return the runs below a number, or the newest ones. Raises: HistoryError · DeclarationError as `list_runs`."""
    if before is None:
        found = list_runs(settings, job, size + 1)
    else:
        with settings.views() as views:
            found = tuple(map(_as_it_ended, views.runs_before(before, job, size + 1)))
    return RunPage(runs=found[:size], older=found[size - 1].id if len(found) > size else None)


def _as_it_ended(run: "RunRecord") -> "RunRecord":
    """Return a run whose process is gone as one that was interrupted, though no later run has recorded that yet."""
    from orchestrator.domain.run import PROCESS_GONE, Outcome

    if run.outcome is not None or compose.is_process_alive(run.pid, run.process_started, run.boot):
        return run
    return replace(run, outcome=Outcome.INTERRUPTED, why=PROCESS_GONE)


def _no_run(settings: Settings, run: str) -> WrongRequest:
    if run.isdigit():
        return WrongRequest(f"history knows no run {run}", f"`{settings.repeat('history')}` lists them")
    if run == "last":
        return WrongRequest(
            "history knows no run yet",
            f"`{settings.repeat('status')}` lists the jobs; `poolferry run` with the name of one makes its first",
        )
    settings.jobs([run])
    return WrongRequest(f"history knows no run of {run} yet", f"`{settings.repeat(f'run {run}')}` makes the first")


def show_run(settings: Settings, run: str) -> Story:
    """Return one run by its number, by its job as the newest, or the "last" of all.

    Raises: WrongRequest, HistoryError · DeclarationError: nobody knows a job of that name.
    """
    with settings.views() as views:
        newest = () if run.isdigit() else views.runs(None if run == "last" else run, 1)
        number = int(run) if run.isdigit() else newest[0].id if newest else None
        story = views.run(number) if number is not None else None
        drilled = views.drills.of_run(story.run.id) if story and story.run.kind == "drill" else None
    if story is None:
        raise _no_run(settings, run)
    return Story(story=replace(story, run=_as_it_ended(story.run)), drilled=drilled)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGlance:
    """One look at a run that goes on. `steps` and `said`: those that began since the look before."""

    run: "RunRecord"
    steps: "tuple[StepRecord, ...]"
    said: "tuple[EventRecord, ...]"
    step: str
    progress: "RunProgress | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLook:
    """All of one run at one moment. `step`: the one that goes on; `progress`: its bytes, where it wrote some."""

    story: Story
    step: str
    progress: "RunProgress | None"


def look_at_run(settings: Settings, run: str) -> RunLook:
    """Return one run, and how far it is while it goes on. Raises: WrongRequest, HistoryError."""
    from orchestrator.runner.progress_note import read_progress

    found = show_run(settings, run)
    if found.story.run.outcome is not None:
        return RunLook(story=found, step="", progress=None)
    steps = [step for attempt in found.story.attempts for step in attempt.steps]
    at_work = next((step.action for step in reversed(steps) if step.ended_at is None), "")
    return RunLook(
        story=found, step=at_work, progress=read_progress(settings.where.state, found.story.run.id)
    )  # fmt: skip


def follow_run(settings: Settings, run: str) -> "Iterator[RunGlance]":
    """Look at a run each second until it has ended. Raises: WrongRequest, HistoryError."""
    from orchestrator.runner.progress_note import read_progress

    number, steps, said = show_run(settings, run).story.run.id, 0, 0
    while True:
        began = compose.monotonic()
        story = show_run(settings, str(number)).story
        known = [step for attempt in story.attempts for step in attempt.steps]
        at_work = next((step.action for step in reversed(known) if step.ended_at is None), "")
        yield RunGlance(
            run=story.run, steps=tuple(known[steps:]), said=story.events[said:], step=at_work,
            progress=read_progress(settings.where.state, number),
        )  # fmt: skip
        if story.run.outcome is not None:
            return
        steps, said = len(known), len(story.events)
        # A look at a run of 100,000 steps takes a while: most of the time is left to the run itself.
        compose.sleep(max(1.0, 10 * (compose.monotonic() - began)))


def list_points(settings: Settings, names: Sequence[str], *, look: bool) -> "PointTable":
    """Return the restore points of jobs; without a name of all. `look`: survey the targets first."""
    from orchestrator.views.run_history import PointTable

    jobs = settings.jobs(names)
    earlier = _look(settings, jobs) if look else {}
    with settings.views() as views:
        return PointTable(
            jobs=jobs,
            known={one.name: _without_half_written(views.points(one.name), views.memory(one.name)) for one in jobs},
            used={one.name: views.memory(one.name).get(USED, str(one.target.location)) for one in jobs},
            problems={one.name: views.problems.of(one.name) for one in jobs},
            unseen={one.name: views.facts_below(one.name, UNSEEN, parse_unseen) for one in jobs},
            earlier=earlier,
        )


def _without_half_written(points: "Sequence[PointRecord]", memory: Mapping[str, str]) -> "tuple[PointRecord, ...]":
    """Return the points, a mirror that a run began to change as one that is not verified."""
    half = {(each.place, each.point) for each in find_half_written("", memory)}
    return tuple(replace(each, verified_at=None) if (each.place, each.name) in half else each for each in points)


def _look(settings: Settings, jobs: "Sequence[Job]") -> dict[str, list[str]]:
    """Read from each target which points it holds, and record them in history; return the earlier histories that lie there, by job."""
    from orchestrator.app.placed_jobs import jobs_on_attached_disks
    from orchestrator.runner.kit_digests import earlier_histories

    earlier: dict[str, list[str]] = {}
    with compose.open_history(settings.where) as remembered:
        for one in jobs:
            with jobs_on_attached_disks(settings, one, "a look at its points") as placed:
                for each in placed:
                    _look_at(settings, each, remembered)
                    earlier.setdefault(one.name, []).extend(earlier_histories(each.target.location))
    return earlier


def _look_at(settings: Settings, job: "Job", remembered: "History") -> None:
    from orchestrator.engines.contract.copies import PointLister
    from orchestrator.engines.contract.engine import implements
    from orchestrator.engines.registry import load_engine
    from orchestrator.runner.last_look import LookContext, find_points, follow_place
    from orchestrator.runner.locks import lock_job

    stop = compose.make_stop_request(None)
    with compose.make_reader(job, stop, settings.log) as reader, ExitStack() as held:
        engine = load_engine(job.engine)
        tools = LookContext(engine=engine, history=remembered, clock=compose.now)
        points = {point.name: point.taken for point in find_points(job, tools, reader)}
        if points.keys() != remembered.point_names(job.name, job.target.name):
            try:  # a run makes and removes points between a look and its record, and records them itself
                held.enter_context(lock_job(job, settings.where.state, wait=stop.wait, patience=0))
            except NotNow:
                return
            points = {point.name: point.taken for point in find_points(job, tools, reader)}
        if followed := follow_place(job, tools, points, reader):
            settings.log(f"{job.name}: {followed}")
        moved = not job.target.rotation and remembered.recall(job.name, USED) not in (None, str(job.target.location))
        lost = implements(engine, PointLister) and not moved
        remembered.points_seen(job.name, job.target.name, points, compose.now(), lost=lost)


def find_recovery_kit(settings: Settings, name: str) -> RecoveryKit:
    """Return the newest recovery kit of a job. Raises: OrchestratorError when there is none."""
    job = settings.configuration().job(name)
    with settings.views() as views:
        found = views.kits.of(name)
    if found is None:
        page = f"; what to do with a copy of files lies beside it: {job.target.location}/.poolferry/RECOVERY.md"
        raise OrchestratorError(
            f"there is no recovery kit of {name}",
            hint=f"poolferry run {name}: a copy of datasets makes one{page if job.engine == 'rsync' else ''}",
        )
    return RecoveryKit(job=name, kit=found.kit, made_at=found.made_at)


def write_recovery_kit(found: RecoveryKit, folder: str) -> tuple[str, ...]:
    """Write a kit's files into a folder; return their paths."""
    from orchestrator.runner.recovery_kit import kit_files
    from orchestrator.trees.beneath import new_file_at

    os.makedirs(folder, mode=0o700, exist_ok=True)
    paths = []
    for name, content in kit_files(found.kit):
        paths.append(os.path.join(os.path.abspath(folder), name))
        with new_file_at(paths[-1]) as file:
            file.write(content)
    return tuple(paths)
