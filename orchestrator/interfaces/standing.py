"""How a job stands: what history remembers of it, judged, as a table and as JSON.

Reads.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.quick import dataclass
from orchestrator.domain.run import Kind
from orchestrator.domain.units import show_duration
from orchestrator.history.values import HealthFacts, PointRecord, RunRecord
from orchestrator.history.views import Views
from orchestrator.interfaces.text import ago, clock, indented, iso, printable, shortened, table, when
from orchestrator.planners.health import Facts, Health, State, judge

if TYPE_CHECKING:
    from orchestrator.domain.due import Pause

_COLOURS = {
    State.UP: "green",
    State.LATE: "red",
    State.FAILING: "red",
    State.WAITING: "yellow",
    State.NEW: "dim",
    State.PAUSED: "dim",
}
_HEAD = ("JOB", "STATE", "NEWEST PROVED COPY", "LIMIT", "LAST RUN", "POINTS", "SCHEDULE")
_LOOKED_AT = (3, 50)  # runs: nearly always the newest tells how it ended, and reading fifty of each job takes time

Alive = Callable[[int, int, str], bool]
Pauses = Mapping[str, "Pause"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """A job with all that its state is judged by. `running`: the run that goes on now."""

    job: Job
    health: Health
    facts: HealthFacts
    last: RunRecord | None
    running: RunRecord | None
    points: tuple[PointRecord, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A job's health at its target, and the runs it is judged by. `running`: the run that goes on now."""

    health: Health
    facts: HealthFacts
    last: RunRecord | None
    running: RunRecord | None


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
    known = Facts(
        first_begun=facts.first_begun,
        last=last.outcome if last else None,
        last_why=(last.why or "") if last else "",
        proved=facts.newest_copy,
        failures=facts.failures,
        broken=facts.broken or (last is not None and last.kind is Kind.VERIFY),
        running=running.begun_at if running else None,
        awake=awake,
        paused=_rests(pause, now) if pause else "",
    )
    return Judged(health=judge(known, now=now, late_after=job.late_after), facts=facts, last=last, running=running)


def _rests(pause: "Pause", now: datetime) -> str:
    """Since when, until when and why; empty when its time is over."""
    if pause.until is not None and pause.until <= now:
        return ""
    until = f"until {pause.until.astimezone():%Y-%m-%d %H:%M}" if pause.until else "until it is resumed"
    return f"paused {until}" + (f": {pause.why}" if pause.why else "")


def standing(job: Job, views: Views, *, now: datetime, alive: Alive) -> Standing:
    """How a job stands at `now`."""
    found = judged(job, views, now=now, alive=alive)
    return Standing(
        job=job,
        health=found.health,
        facts=found.facts,
        last=found.last,
        running=found.running,
        points=views.points(job.name),
    )


def needs_somebody(found: Standing) -> bool:
    """Whether `status` ends with 4."""
    return found.health.state in (State.LATE, State.FAILING)


def standing_value(found: Standing) -> dict[str, Any]:
    """One job for `status --json`."""
    job, health, running = found.job, found.health, found.running
    return {
        "job": job.name,
        "state": health.state.value,
        "why": health.why,
        "passing": health.passing,
        "schedule": job.schedule,
        "late_after_s": job.late_after,
        "source": show_name(str(job.source)),
        "target": {"place": job.target.name, "location": show_name(str(job.target.location))},
        "newest_proved": _copy_value(found),
        "last_run": _last_value(found.last),
        "failures_in_a_row": found.facts.failures,
        "running": {"run": running.id, "since": iso(running.begun_at)} if running else None,
        "points": {"count": len(found.points), "newest": found.points[-1].name if found.points else None},
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


def standing_lines(found: Sequence[Standing], *, now: datetime, paint: Callable[[str, str | None], str]) -> list[str]:
    """The table, and below each job that is not well why, and what to do."""
    cells = table(_HEAD, [_row(each, now=now) for each in found], right=frozenset({"POINTS"}))
    lines = [paint("  ".join(cells[0]).rstrip(), "bold")]
    for each, row in zip(found, cells[1:], strict=True):
        row[1] = paint(row[1], _COLOURS[each.health.state])
        lines.append("  ".join(row).rstrip())
        lines += [printable(line) for line in indented(_reasons(each), 4)]
    return lines


def _row(found: Standing, *, now: datetime) -> tuple[str, ...]:
    job, copies, last = found.job, found.facts.copies, found.last
    newest = f"{ago(copies[0].current_at, now=now)} in {copies[0].place}" if copies else "none"
    ended = f"{last.outcome} {clock(last.ended_at, now=now)} (run {last.id})" if last else "never"
    if found.running:
        ended = f"running since {clock(found.running.begun_at, now=now)} (run {found.running.id})"
    limit = show_duration(job.late_after) if job.late_after else "-"
    return (job.name, found.health.state, newest, limit, ended, str(len(found.points)), when(job.schedule))


def _reasons(found: Standing) -> list[str]:
    if found.health.state is State.UP:
        return []
    cure = found.last.cure if found.last and found.last.cure else ""
    return [shortened(found.health.why, 300), *([f"what to do: {cure}"] if cure and needs_somebody(found) else [])]
