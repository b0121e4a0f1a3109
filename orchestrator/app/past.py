"""What happened, from history: runs, one run, restore points, recovery kits; and points as the targets hold them now."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.settings import Frame, WrongRequest
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass

if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.domain.drill_result import DrillRecord
    from orchestrator.domain.job import Job
    from orchestrator.domain.kit import Kit
    from orchestrator.history.values import PointRecord, RunRecord, RunStory


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One run. `drilled`: what it found, where it was a restore test."""

    story: "RunStory"
    drilled: "DrillRecord | None"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointList:
    """Restore points by job."""

    jobs: "tuple[Job, ...]"
    known: "Mapping[str, Sequence[PointRecord]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryKit:
    """The recovery kit of a job's source, and when it was made."""

    job: str
    kit: "Kit"
    made_at: "datetime"


def list_runs(frame: Frame, job: str | None, limit: int) -> "tuple[RunRecord, ...]":
    """Return the newest runs, of one job or of all. Raises: HistoryError."""
    with frame.views() as views:
        return tuple(views.runs(job, limit))


def show_run(frame: Frame, run: str) -> Story:
    """Return one run by its number, by its job as the newest, or the "last" of all. Raises: WrongRequest, HistoryError."""
    with frame.views() as views:
        newest = () if run.isdigit() else views.runs(None if run == "last" else run, 1)
        number = int(run) if run.isdigit() else newest[0].id if newest else None
        story = views.run(number) if number is not None else None
        drilled = views.drills.of_run(story.run.id) if story and story.run.kind == "drill" else None
    if story is None:
        raise WrongRequest(f"history knows no run {run}; `{frame.repeat('history')}` lists them")
    return Story(story=story, drilled=drilled)


def list_points(frame: Frame, names: Sequence[str], *, look: bool) -> PointList:
    """Return the restore points of jobs, without a name of all. `look`: ask the targets themselves first."""
    jobs = frame.jobs(names)
    if look:
        _look(frame, jobs)
    with frame.views() as views:
        return PointList(jobs=jobs, known={one.name: views.points(one.name) for one in jobs})


def _look(frame: Frame, jobs: "Sequence[Job]") -> None:
    """Read from each target which points it holds, and record them in history."""
    from orchestrator.engines.registry import engine

    with compose.open_history(frame.where) as remembered:
        for one in jobs:
            if one.target.rotates:
                raise compose.unplaced(one)
            with compose.reader(one, compose.stop_for(None), frame.log) as reader:
                points = {point.name: point.taken for point in engine(one.engine).points(one, reader)}
            remembered.points_seen(one.name, one.target.name, points, compose.now())


def find_recovery_kit(frame: Frame, name: str) -> RecoveryKit:
    """Return the newest recovery kit of a job. Raises: OrchestratorError when there is none."""
    job = frame.configuration().job(name)
    with frame.views() as views:
        found = views.kits.of(name)
    if found is None:
        page = f"; what to do with a copy of files lies beside it: {job.target.location}/.poolferry/RECOVERY.md"
        raise OrchestratorError(
            f"there is no recovery kit of {name}",
            cure=f"poolferry run {name}: a copy of datasets makes one{page if job.engine == 'rsync' else ''}",
        )
    return RecoveryKit(job=name, kit=found.kit, made_at=found.made_at)


def write_recovery_kit(found: RecoveryKit, folder: str) -> tuple[str, ...]:
    """Write a kit's files into a folder; return their paths."""
    from orchestrator.runner.recovery_kit import files_of

    os.makedirs(folder, mode=0o700, exist_ok=True)
    paths = []
    for name, content in files_of(found.kit):
        paths.append(os.path.join(os.path.abspath(folder), name))
        with open(paths[-1], "wb") as file:
            file.write(content)
    return tuple(paths)
