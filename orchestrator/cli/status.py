"""status, history, show, points: what happened, from history alone."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from orchestrator import compose
from orchestrator.app.settings import Frame
from orchestrator.cli.options import Command, GroupWithUsual, complete_job, pass_frame
from orchestrator.cli.restore import export
from orchestrator.views import output as door

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.job import Job
    from orchestrator.history.views import Views

_LATE = 4


@click.command(cls=Command, short_help="How each job stands.")
@click.argument("job", nargs=-1, shell_complete=complete_job)
@pass_frame
def status(frame: Frame, job: Sequence[str]) -> int:
    """How each job stands: the age of its newest proved copy against its limit, and its next run in local time."""
    from orchestrator.app.job_status import needs_somebody, standing_lines, standing_value, standings
    from orchestrator.app.next_run import upcoming

    known, instant = frame.configuration(), compose.now()
    jobs = tuple(known.job(name) for name in dict.fromkeys(job)) if job else known.jobs
    aimed = {one.target.name for one in jobs if one.target.rotates}
    with frame.views() as views:
        found = standings(jobs, views, now=instant, alive=compose.alive)
        running = [each.job.name for each in found if each.running]
        coming = upcoming(known.jobs, views, now=instant, running=running)
        value, lines, late = _sets(known, aimed, views) if aimed else ({}, [], False)
    if frame.json:
        told = [standing_value(each, coming.jobs[each.job.name]) for each in found]
        door.answer_value({"at": _iso(instant), "jobs": told, **value})
    else:
        nobody = [coming.nobody] if coming.nobody and any(one.schedule for one in jobs) else []
        table = standing_lines(found, coming.jobs, now=instant, paint=door.paint)
        door.answer_painted([*table, *lines, *nobody])
    return _LATE if late or any(needs_somebody(each) for each in found) else 0


def _sets(known: "Configuration", names: set[str], views: "Views") -> "tuple[dict[str, Any], list[str], bool]":
    """How the rotation sets of these names stand: for --json, as lines, and whether one of them or a disk is not well."""
    from orchestrator.app.disk_report import sets_lines, sets_value
    from orchestrator.app.disk_visits import set_standing
    from orchestrator.views.format import printable

    sets, now = [each for each in known.sets if each.name in names], compose.now()
    health = [set_standing(each, known.jobs, views, now=now).health for each in sets]
    lines = ["", *(printable(line) for line in sets_lines(sets, known.jobs, views, now))]
    bad = any(each.late or each.overdue or each.ailing for each in health)
    return sets_value(sets, known.jobs, views, now), lines, bad


@click.command(cls=Command)
@click.argument("job", required=False, shell_complete=complete_job)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(min=1), help="how many runs at most")
@pass_frame
def history(frame: Frame, job: str | None, limit: int) -> int:
    """The newest runs, of one job or of all."""
    from orchestrator.views.run_history import run_value, runs_lines

    with frame.views() as views:
        runs = views.runs(job, limit)
    frame.answer({"runs": [run_value(each) for each in runs]}, runs_lines(runs, now=compose.now(), job=job))
    return 0


@click.command(cls=Command, short_help="One run: steps, commands, errors.")
@click.argument("run", shell_complete=complete_job)
@pass_frame
def show(frame: Frame, run: str) -> int:
    """One run with its attempts, steps, commands and errors. RUN: its number, or a job's name for its newest run."""
    from orchestrator.views.run_history import story_lines, story_value

    with frame.views() as views:
        newest = () if run.isdigit() else views.runs(None if run == "last" else run, 1)
        number = int(run) if run.isdigit() else newest[0].id if newest else None
        story = views.run(number) if number is not None else None
        drilled = views.drills.of_run(story.run.id) if story and story.run.kind == "drill" else None
    if story is None:
        raise click.UsageError(f"history knows no run {run}; `{frame.repeat('history')}` lists them")
    frame.answer(story_value(story, drilled), lambda: story_lines(story, now=compose.now(), drilled=drilled))
    return 0


@click.group("points", cls=GroupWithUsual, short_help="Restore points, and when each was last read.")
def points() -> None:
    """Restore points, where each lies, and when it was last read again."""


@points.command("list")
@click.argument("job", required=False, shell_complete=complete_job)
@click.option("--look", is_flag=True, help="look at the targets themselves, not at what history remembers of them")
@pass_frame
def list_points(frame: Frame, job: str | None, *, look: bool) -> int:
    """The restore points of one job or of all (the usual command: `points JOB` is the same)."""
    from orchestrator.views.run_history import points_lines, points_value

    jobs = frame.jobs([job] if job else [])
    if look:
        _look(frame, jobs)
    with frame.views() as views:
        known = {one.name: views.points(one.name) for one in jobs}
    frame.answer(points_value(jobs, known), lambda: points_lines(jobs, known, now=compose.now()))
    return 0


def _look(frame: Frame, jobs: "Sequence[Job]") -> None:
    """Asks each target what it holds, and tells history."""
    from orchestrator.engines.registry import engine

    with compose.open_history(frame.where) as remembered:
        for one in jobs:
            if one.target.rotates:
                raise compose.unplaced(one)
            with compose.reader(one, compose.stop_for(None), frame.log) as reader:
                points = {point.name: point.taken for point in engine(one.engine).points(one, reader)}
            remembered.points_seen(one.name, one.target.name, points, compose.now())


points.add_command(export)


def _iso(instant: object) -> str | None:
    from datetime import datetime

    from orchestrator.views.format import iso

    return iso(instant) if isinstance(instant, datetime) else None


COMMANDS: tuple[click.Command, ...] = (status, history, show, points)
