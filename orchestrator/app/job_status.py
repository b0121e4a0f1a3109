"""How a job stands: what history remembers of it, judged, as a table and as JSON."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from orchestrator.app.next_run import Next, next_value
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.run import Kind, Outcome
from orchestrator.domain.units import show_duration
from orchestrator.history.values import HealthFacts, PointCounts, RunRecord
from orchestrator.history.views import Views
from orchestrator.planners.health import Facts, Health, State, judge
from orchestrator.views.drills import last_value, newest, newest_line
from orchestrator.views.format import ago, brief, indented, iso, printable, shortened, table

if TYPE_CHECKING:
    from orchestrator.domain.due import Pause
    from orchestrator.history.drills import DrillRecord

_COLOURS = {
    State.UP: "green",
    State.LATE: "red",
    State.FAILING: "red",
    State.WAITING: "yellow",
    State.NEW: "dim",
    State.PAUSED: "dim",
}
_HEAD = ("JOB", "STATE", "PROVED COPY", "LIMIT", "LAST RUN", "POINTS", "NEXT RUN")
_LOOKED_AT = (1, 50)  # runs: nearly always the newest tells how it ended, and reading fifty of each job takes time

_DRILLS = 20
_DECIDES_NOTHING = (Outcome.WAITING, Outcome.INTERRUPTED)

Alive = Callable[[int, int, str], bool]
Pauses = Mapping[str, "Pause"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A job with all that its state is judged by. `running`: the run that goes on now; `blamed`: as in `Judged`."""

    job: Job
    health: Health
    facts: HealthFacts
    last: RunRecord | None
    blamed: RunRecord | None
    running: RunRecord | None
    points: PointCounts
    drills: "tuple[DrillRecord, ...]" = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A job's health at its target, and the runs it is judged by. `running`: the run that goes on now.

    `blamed`: the failure that nothing has made good, else the newest run that ended, which is `last`.
    """

    health: Health
    facts: HealthFacts
    last: RunRecord | None
    blamed: RunRecord | None
    running: RunRecord | None


def kept(run: RunRecord | None, job: Job, views: Views) -> RunRecord | None:
    """The run that tells the same and will still be known later: of runs that wait for one disk history keeps the first.

    Why: what a notice names is looked up days after it, when many more runs have waited.
    """
    if run is None or not job.target.rotates or run.outcome is not Outcome.WAITING:
        return run
    before = next((each for each in views.runs(job.name, _LOOKED_AT[-1]) if each.id < run.id), None)
    same = before is not None and (before.outcome, before.why) == (run.outcome, run.why)
    return before if same else run


def judged(
    job: Job, views: Views, *, now: datetime, alive: Alive, pauses: Pauses | None = None, awake: datetime | None = None
) -> Judged:
    """A job's health at `now`. `pauses`: by job, asked for when not told; `awake`: as in `Facts`."""
    pause = (views.owing.pauses() if pauses is None else pauses).get(job.name)
    # Any disk of a rotation set holds a copy that counts.
    at = None if job.target.rotates else (job.target.name, str(job.target.location))
    for limit in _LOOKED_AT:
        facts = views.health_facts(job.name, limit=limit, at=at)
        last = next((run for run in facts.last if run.outcome and run.kind in (Kind.RUN, Kind.VERIFY)), None)
        if last or len(facts.last) < limit:
            break
    goes = facts.going_on
    running = goes if goes and alive(goes.pid, goes.process_started, goes.boot) else None
    blamed = facts.last_failed or _failed_drill(job, views, at) or last
    known = Facts(
        first_begun=facts.first_begun,
        last=blamed.outcome if blamed else None,
        last_why=(blamed.why or "") if blamed else "",
        since=_told(last) if last and facts.last_failed and last.outcome in _DECIDES_NOTHING else "",
        proved=facts.newest_copy,
        failures=facts.failures,
        broken=facts.broken or (blamed is not None and blamed.kind in (Kind.VERIFY, Kind.DRILL)),
        running=running.begun_at if running else None,
        awake=awake,
        copies=job.copies,
        paused=_rests(pause, now) if pause else "",
    )
    health = judge(known, now=now, late_after=job.late_after)
    return Judged(health=health, facts=facts, last=last, blamed=blamed, running=running)


def _failed_drill(job: Job, views: Views, at: tuple[str, str] | None) -> RunRecord | None:
    """The newest drill, where it did not end well: data that do not come back are no copy, however well runs end."""
    found = newest(views.drills.of(job.name, limit=_DRILLS), at[0] if at else None)
    if found is None or found.drilled.outcome is Outcome.DONE:
        return None
    story = views.run(found.run)
    return story.run if story else None


def _told(run: RunRecord) -> str:
    return f"{run.outcome}: {run.why}" if run.why else f"{run.outcome}"


def _rests(pause: "Pause", now: datetime) -> str:
    """Since when, until when and why; empty when its time is over."""
    if pause.until is not None and pause.until <= now:
        return ""
    until = f"until {pause.until.astimezone():%Y-%m-%d %H:%M}" if pause.until else "until it is resumed"
    return f"paused {until}" + (f": {pause.why}" if pause.why else "")


def standings(jobs: Sequence[Job], views: Views, *, now: datetime, alive: Alive) -> list[Standing]:
    """How each job stands, all at one moment."""
    with views.glance():
        pauses = views.owing.pauses()
        return [_standing(job, views, now=now, alive=alive, pauses=pauses) for job in jobs]


def _standing(job: Job, views: Views, *, now: datetime, alive: Alive, pauses: Pauses) -> Standing:
    found = judged(job, views, now=now, alive=alive, pauses=pauses)
    return Standing(
        job=job,
        health=found.health,
        facts=found.facts,
        last=found.last,
        blamed=found.blamed,
        running=found.running,
        points=views.point_counts(job.name),
        drills=views.drills.of(job.name, limit=_DRILLS),
    )


def needs_somebody(found: Standing) -> bool:
    """Whether `status` ends with 4."""
    return found.health.state in (State.LATE, State.FAILING)


def standing_value(found: Standing, following: Next) -> dict[str, Any]:
    """One job for `status --json`. `following`: its next run."""
    job, health, running = found.job, found.health, found.running
    return {
        "job": job.name,
        "state": health.state.value,
        "why": health.why,
        "passing": health.passing,
        "schedule": job.schedule,
        "next_run": next_value(following),
        "late_after_s": job.late_after,
        "source": show_name(str(job.source)),
        "target": {"place": job.target.name, "location": show_name(str(job.target.location))},
        "newest_proved": _copy_value(found),
        "last_run": _last_value(found.last),
        "failed_run": _last_value(found.facts.last_failed),
        "failures_in_a_row": found.facts.failures,
        "running": {"run": running.id, "since": iso(running.begun_at)} if running else None,
        "points": {"count": found.points.number, "newest": found.points.newest},
        "last_drill": last_value(found.drills),
    }


def _copy_value(found: Standing) -> dict[str, Any] | None:
    if not found.facts.copies:
        return None
    copy, age = found.facts.copies[0], found.health.age
    return {
        "point": copy.name,
        "place": copy.place,
        "at": iso(copy.current_at),
        "age_s": None if age is None else round(age),
    }


def _last_value(last: RunRecord | None) -> dict[str, Any] | None:
    if last is None:
        return None
    return {"run": last.id, "outcome": last.outcome, "at": iso(last.ended_at), "why": last.why, "cure": last.cure}


def standing_lines(
    found: Sequence[Standing], following: Mapping[str, Next], *, now: datetime, paint: Callable[[str, str | None], str]
) -> list[str]:
    """The table, and below each job that is not well why, and what to do. `following`: the next runs, by job."""
    rows = [(*_row(each, now=now), following[each.job.name].words) for each in found]
    cells = table(_HEAD, rows, right=frozenset({"POINTS"}))
    lines = [paint("  ".join(cells[0]).rstrip(), "bold")]
    for each, row in zip(found, cells[1:], strict=True):
        row[1] = paint(row[1], _COLOURS[each.health.state])
        lines.append("  ".join(row).rstrip())
        drilled = newest_line(each.job.drill, each.drills, now)
        lines += [printable(line) for line in indented([*_reasons(each), *([drilled] if drilled else [])], 4)]
    return lines


def _row(found: Standing, *, now: datetime) -> tuple[str, ...]:
    """The cells but the last. The place is told where it may be one of several disks."""
    job, copies, last = found.job, found.facts.copies, found.last
    place = f" on {copies[0].place}" if copies and job.target.rotates else ""
    newest = f"{ago(copies[0].current_at, now=now)}{place}" if copies else "none"
    ended = f"{last.outcome} {brief(last.ended_at, now=now)} (run {last.id})" if last else "never"
    if found.running:
        ended = f"running since {brief(found.running.begun_at, now=now)} (run {found.running.id})"
    limit = show_duration(job.late_after) if job.late_after else "-"
    return (job.name, found.health.state, newest, limit, ended, str(found.points.number))


def _reasons(found: Standing) -> list[str]:
    if found.health.state is State.UP:
        return []
    cure = found.blamed.cure if found.blamed and found.blamed.cure else ""
    return [shortened(found.health.why, 300), *([f"what to do: {cure}"] if cure and needs_somebody(found) else [])]
