"""State of a job, judged from what history remembers."""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.domain.age import CLOCKS_DIFFER
from orchestrator.domain.fast_dataclass import dataclass, field, replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import USED
from orchestrator.domain.point import ReadTotals
from orchestrator.domain.problem import (
    DAMAGE_FOUND,
    DRILL_FAILED,
    SAME_COMMAND,
    UNSEEN,
    Problem,
    ProblemType,
    UnseenCopies,
    find_half_written,
    parse_unseen,
    problem_hint,
    problem_sentence,
)
from orchestrator.domain.rotation import DiskState
from orchestrator.domain.run import PROCESS_GONE, Outcome, RunType
from orchestrator.domain.source_identity import SOURCE_STATE
from orchestrator.domain.source_state import parse_source_state
from orchestrator.domain.units import show_duration
from orchestrator.history.values import NO_POINTS, HealthFacts, PointCounts, RunRecord
from orchestrator.history.views import HistoryReader
from orchestrator.planners.health import CopyHealth, HealthInput, JobState, judge_health
from orchestrator.views.drills import newest_drill
from orchestrator.views.format import unseen_sentence
from orchestrator.views.status import JobStatus, Overview

if TYPE_CHECKING:
    from orchestrator.app.settings import Settings
    from orchestrator.domain.drill import DrillRecord
    from orchestrator.domain.due import JobPause
    from orchestrator.views.disks import SetReport

_LOOKED_AT = (1, 50)  # runs: the newest nearly always has the outcome, and reading fifty of each job takes time

_DRILLS = 20
_LEAST_SPACE = 64 << 10  # bytes: a run records more
_WITH_HINT = (JobState.LATE, JobState.FAILING, JobState.INCOMPLETE, JobState.WAITING)
_COMMANDS = {RunType.RUN: "run", RunType.VERIFY: "verify", RunType.DRILL: "drill"}
_DECIDES_NOTHING = (Outcome.WAITING, Outcome.INTERRUPTED)

Alive = Callable[[int, int, str], bool]
Pauses = Mapping[str, "JobPause"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """The facts by which a job is judged, as history has them. `problems`: at all places; `read`: by place, of a job that promises reading."""

    health: HealthFacts
    memory: Mapping[str, str]
    points: PointCounts
    drills: "tuple[DrillRecord, ...]"
    problems: tuple[Problem, ...]
    read: Mapping[str, ReadTotals] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHealth:
    """A job's health at its target, and the runs that decide it. `running`: the run in progress.

    `blamed`: the failure that no good run has followed, else the newest run that ended, which is `last`. `problems`: those of
    the copies, that no run ended; `hint`: what helps; `moved`: where the place was when it was last used, if it is elsewhere now;
    `unseen`: the last look did not find the newest copy; `points`: of the place where it is now.
    """

    health: CopyHealth
    facts: HealthFacts
    last: RunRecord | None
    blamed: RunRecord | None
    running: RunRecord | None
    problems: tuple[Problem, ...]
    drills: "tuple[DrillRecord, ...]"
    hint: str
    moved: str
    points: PointCounts
    unseen: UnseenCopies | None = None


def lasting_run(run: RunRecord | None, job: Job, views: HistoryReader) -> RunRecord | None:
    """Return the equal run that history keeps: the first of several runs that wait for one disk.

    Why: a person looks up the run that a notice names days later, when many more runs have waited.
    """
    if run is None or not job.target.rotates or run.outcome is not Outcome.WAITING:
        return run
    before = next((each for each in views.runs(job.name, _LOOKED_AT[-1]) if each.id < run.id), None)
    same = before is not None and (before.outcome, before.why) == (run.outcome, run.why)
    return before if same else run


def read_job_facts(jobs: Sequence[Job], views: HistoryReader, now: datetime) -> dict[str, JobFacts]:
    """Return the facts by which jobs are judged, by job: each statement once for all of them."""
    names = [job.name for job in jobs]
    with views.glance():
        health = views.health_facts_of_jobs(
            {job.name: _place(job) for job in jobs}, limit=_LOOKED_AT[0], latest=now + CLOCKS_DIFFER
        )
        memory, points = views.memory_of_jobs(names), views.point_counts_of_jobs(names)
        drills, problems = views.drills.of_jobs(names, limit=_DRILLS), views.problems.open_of_jobs(names)
        read = _read_by_place(jobs, views, now)
    return {
        name: JobFacts(
            health=health[name], memory=memory[name], points=points[name], drills=drills[name], problems=problems[name],
            read=read.get(name, {}),
        )
        for name in names
    }  # fmt: skip


def _read_by_place(jobs: Sequence[Job], views: HistoryReader, now: datetime) -> dict[str, dict[str, ReadTotals]]:
    """Return what was read again of the jobs that promise it, by job and place; not on a disk that nobody expects."""
    promised = {job.name: now - span for job in jobs if (span := _promised(job))}
    if not promised:
        return {}
    away = set[str]()
    if any(job.target.rotates for job in jobs if job.name in promised):
        asleep = {disk for disk, snooze in views.disks.snoozes().items() if snooze.until > now}
        known = views.disks.known()
        away = {each.name for each in known if each.standing is not DiskState.ACTIVE or each.disk in asleep}
    totals = views.read_totals(promised, now + CLOCKS_DIFFER)
    return {name: {place: one for place, one in places if place not in away} for name, places in totals.items()}


def _promised(job: Job) -> timedelta | None:
    within = job.verify.read_all_within
    return None if within is None else timedelta(seconds=within)


def _unread(job: Job, read: Mapping[str, ReadTotals], now: datetime) -> tuple[str, str]:
    """Return what was not read again within its promise, as a sentence, and what ends that; empty where nothing is late."""
    limit = _promised(job)
    places = [disk.name for disk in job.target.rotation.disks] if job.target.rotation else [job.target.name]
    ages = {place: now - oldest for place in places if place in read and (oldest := read[place].oldest)}
    late = {place: age for place, age in ages.items() if limit and age > limit}
    if limit is None or not late:
        return "", ""
    place, age = max(late.items(), key=lambda each: each[1])
    where = f"on disk {place}" if job.target.rotates else f"at {place}"
    told = f"a part of the copies {where} was not read for {show_duration(age.total_seconds())}; read-all-within is {show_duration(limit.total_seconds())}"
    read_it = f"poolferry verify {job.name} --due"
    return told, f"plug in disk {place}, and: {read_it}" if job.target.rotates else read_it


def _place(job: Job) -> tuple[str, str] | None:
    """Return the place whose copies count; None: any disk of a rotation set holds a copy that counts."""
    return None if job.target.rotates else (job.target.name, str(job.target.location))


def _last_to_tell(facts: HealthFacts, views: HistoryReader) -> RunRecord | None:
    """Return the newest run that ended, of those that copy or verify."""
    last = facts.last
    for limit in _LOOKED_AT:
        last = last if limit == _LOOKED_AT[0] else views.runs(facts.job, limit)
        found = next((run for run in last if run.outcome and run.kind in (RunType.RUN, RunType.VERIFY)), None)
        if found or len(last) < limit:
            break
    return found


def judge_job(
    job: Job, views: HistoryReader, *, now: datetime, alive: Alive, pauses: Pauses | None = None, awake: datetime | None = None,
    known: JobFacts | None = None,
) -> JobHealth:  # fmt: skip
    """Return a job's health at `now`. `pauses`: by job; `known`: its facts; both are read when not given; `awake`: as in `HealthInput`."""
    pause = (views.due_runs.pauses() if pauses is None else pauses).get(job.name)
    at, found = _place(job), known or read_job_facts((job,), views, now)[job.name]
    facts, memory, drills = found.health, found.memory, found.drills
    last = _last_to_tell(facts, views)
    if last and last.outcome is Outcome.WAITING and _ended_well_since(last, facts.last_well):
        last = facts.last_well  # it waited for a run that has ended well since, such as one that held the lock
    moved = "" if job.target.rotates else _moved_from(job, memory)
    if moved:
        facts = replace(facts, copies=())
    unseen = parse_unseen(memory.get(UNSEEN + facts.copies[0].place, "")) if facts.copies else None
    goes = facts.going_on
    running = goes if goes and alive(goes.pid, goes.process_started, goes.boot) else None
    last = _as_died(goes) if goes and not running and _counts_as_last(goes, last) else last
    half = () if moved or running else find_half_written(job.name, memory)
    facts = _without_half_written(facts, half)
    blamed = facts.last_failed or _failed_drill(found, views, at) or last
    problems = () if moved else tuple(each for each in (*found.problems, *half) if at is None or each.place == at[0])
    gravest = next((each for each in problems if each.kind is not ProblemType.LEFT_OUT), None)
    left_out = next((each for each in reversed(problems) if each.kind is ProblemType.LEFT_OUT), None)
    unread, unread_hint = ("", "") if moved else _unread(job, found.read, now)
    judged = HealthInput(
        first_begun=facts.first_begun,
        last=blamed.outcome if blamed else None,
        last_why=(blamed.why or "") if blamed else "",
        last_kind=blamed.kind if blamed else RunType.RUN,
        since=_last_run_text(last) if last and facts.last_failed and last.outcome in _DECIDES_NOTHING else "",
        newest_verified=facts.newest_copy,
        failures=facts.failures,
        broken=facts.broken or (blamed is not None and blamed.kind in (RunType.VERIFY, RunType.DRILL)),
        running=running.begun_at if running else None,
        awake=awake,
        copies=job.copies,
        paused=_rests(pause, now) if pause else "",
        problem=problem_sentence(gravest) if gravest else "",
        left_out=problem_sentence(left_out) if left_out else "",
        unread=unread,
        unseen=unseen_sentence(unseen, (blamed.why or "") if blamed else "") if unseen else "",
        looked=unseen is None or unseen.looked,
        points=found.points.number,
    )
    health = judge_health(judged, now=now, late_after=job.late_after)
    if moved and job.copies:
        why = "no copy is there yet" if health.state is JobState.NEW else health.why
        why = f"{why}; {job.target.name} was {moved} at the last run, and its copies lie there"
        health = replace(health, why=why)
    chosen = None if judged.last in (Outcome.FAILED, Outcome.REFUSED) else gravest or left_out
    hint = (
        _hint(blamed, chosen, job, found.points.newest) or _late_hint(job, health, judged, unread_hint)
        if health.state in _WITH_HINT
        else ""
    )
    return JobHealth(
        health=health, facts=facts, last=last, blamed=blamed, running=running, problems=problems, drills=drills, hint=hint,
        moved=moved, unseen=unseen, points=NO_POINTS if moved else found.points,
    )  # fmt: skip


def _counts_as_last(died: RunRecord, last: RunRecord | None) -> bool:
    """Return whether a run that died is the last to tell: it copied or read, and none has ended since."""
    return died.kind in (RunType.RUN, RunType.VERIFY) and (last is None or last.id < died.id)


def _as_died(run: RunRecord) -> RunRecord:
    """Return a run whose process is gone as interrupted: that is recorded by the next command that writes."""
    return replace(run, outcome=Outcome.INTERRUPTED, why=PROCESS_GONE)


def _without_half_written(facts: HealthFacts, half: tuple[Problem, ...]) -> HealthFacts:
    """Return the facts without copies that a run began to change, and did not end."""
    if not half:
        return facts
    places = {each.place for each in half}
    copies = tuple(each for each in facts.copies if each.place not in places)
    return replace(facts, first_begun=facts.first_begun or half[0].since, copies=copies)


def _hint(blamed: RunRecord | None, problem: Problem | None, job: Job, newest: str | None) -> str:
    """Return what ends the problem; else the hint of the run to blame, with the command that it means: it is read elsewhere here."""
    if problem:
        return problem_hint(problem, newest=newest)
    hint = (blamed.hint or "") if blamed else ""
    if blamed and blamed.kind in _COMMANDS and hint.endswith(SAME_COMMAND):
        hint += f": poolferry {_COMMANDS[blamed.kind]} {job.name}"
    return hint


def _late_hint(job: Job, health: CopyHealth, judged: HealthInput, unread: str) -> str:
    """Return what ends the lateness of a copy, or the doubt in one, where no run failed; empty where it is not late, or a disk is to be brought."""
    if judged.last is Outcome.NOTHING and health.age is None and job.copies and not job.target.rotates:
        return f"poolferry verify {job.name}"  # it found copies of before this history
    if health.state is JobState.LATE and judged.unread and health.why.startswith(judged.unread):
        return unread
    if health.state is not JobState.LATE or not job.copies or job.target.rotates:
        return ""
    if health.age is not None and health.age < 0:
        return f"see that the clock is right (`timedatectl`), then poolferry run {job.name}"
    return f"poolferry run {job.name}; `poolferry schedule {job.name}` says when it runs by itself"


def _moved_from(job: Job, memory: Mapping[str, str]) -> str:
    """Return where the job's place was at its last run, if it lies elsewhere now: what is known lies there."""
    used = memory.get(USED)
    return "" if used in (None, str(job.target.location)) else str(used)


def _ended_well_since(waited: RunRecord, well: RunRecord | None) -> bool:
    """Return True when a run ended well after another one had ended, though it began before."""
    return bool(well and well.ended_at and waited.ended_at and well.ended_at >= waited.ended_at)


def _failed_drill(known: JobFacts, views: HistoryReader, at: tuple[str, str] | None) -> RunRecord | None:
    """Return the newest restore test if it failed: data that cannot be restored are no copy, even if runs succeed.

    One that found damage counts until that is over, as a problem of its own says.
    """
    found = newest_drill(known.drills, at[0] if at else None)
    if found is None or found.drilled.outcome is Outcome.DONE:
        return None
    damaged = {each.place for each in known.problems if each.kind is ProblemType.DAMAGED}
    if (found.drilled.why or "").startswith(DRILL_FAILED + DAMAGE_FOUND) and found.drilled.place not in damaged:
        return None
    story = views.run(found.run)
    return story.run if story else None


def _last_run_text(run: RunRecord) -> str:
    return f"{run.outcome}: {run.why}" if run.why else f"{run.outcome}"


def _rests(pause: "JobPause", now: datetime) -> str:
    """Return since when, until when and why a job is paused, as text; empty when the pause is over."""
    if pause.until is not None and pause.until <= now:
        return ""
    until = f"until {pause.until.astimezone():%Y-%m-%d %H:%M}" if pause.until else "until it is resumed"
    return f"paused {until}" + (f": {pause.why}" if pause.why else "")


def job_statuses(jobs: Sequence[Job], views: HistoryReader, *, now: datetime, alive: Alive) -> list[JobStatus]:
    """Return the state of each job, all at one moment."""
    with views.glance():
        pauses = views.due_runs.pauses()
        states = views.facts_of_jobs(SOURCE_STATE)
        known = read_job_facts(jobs, views, now)
        found = [_job_status(job, views, now=now, alive=alive, pauses=pauses, known=known[job.name]) for job in jobs]
    return [
        replace(each, source=parse_source_state(states[each.job.name])) if each.job.name in states else each
        for each in found
    ]


def _with_progress(found: JobStatus, views: HistoryReader, state: str) -> JobStatus:
    """Return the status with the step and the progress of the run that goes on, if one does."""
    if found.running is None:
        return found
    from orchestrator.runner.progress_note import read_progress

    step = views.open_step(found.running.id)
    return replace(found, step=step.action if step else "", progress=read_progress(state, found.running.id))


def _job_status(
    job: Job, views: HistoryReader, *, now: datetime, alive: Alive, pauses: Pauses, known: JobFacts
) -> JobStatus:
    found = judge_job(job, views, now=now, alive=alive, pauses=pauses, known=known)
    return JobStatus(
        job=job,
        health=found.health,
        facts=found.facts,
        last=found.last,
        blamed=found.blamed,
        running=found.running,
        points=found.points,
        problems=found.problems,
        hint=found.hint,
        drills=found.drills,
        unseen=found.unseen,
    )


def why_unrecorded(state: str) -> str:
    """Return why no run can be recorded, as far as it shows without a write: then no run begins, and none that fails is known.

    Why the import in the call: nearly always the first look is enough.
    """
    try:
        seen = os.statvfs(state)
    except OSError:
        return ""
    if seen.f_bavail * seen.f_frsize >= _LEAST_SPACE and not seen.f_flag & os.ST_RDONLY:
        return ""
    from orchestrator.process.mounted import explain_unwritable

    why = explain_unwritable(state, _LEAST_SPACE)
    return f"no run can be recorded in {state}: {why}" if why else ""


def survey_jobs(settings: "Settings", names: Sequence[str], now: datetime) -> Overview:
    """Return the state of the jobs of these names; without a name of all. Raises: DeclarationError, HistoryError."""
    from orchestrator.app.ended_jobs import stray_copies
    from orchestrator.app.lost_key import find_lost_key
    from orchestrator.app.next_run import find_next_runs

    known = settings.configuration()
    jobs = tuple(known.job(name) for name in dict.fromkeys(names)) if names else known.jobs
    aimed = {one.target.name for one in jobs if one.target.rotates}
    with settings.views() as views:
        found = job_statuses(jobs, views, now=now, alive=compose.is_process_alive)
        found = [_with_progress(each, views, settings.where.state) for each in found]
        running = [each.job.name for each in found if each.running]
        coming = find_next_runs(known.jobs, views, now=now, running=running)
        sets: tuple[SetReport, ...] = ()
        if aimed:
            from orchestrator.app.disk_report import report_sets

            sets = report_sets(
                [each for each in known.sets if each.name in aimed], known.jobs, views, now, state=settings.where.state
            )
        stray = () if names else stray_copies(known.jobs, views)
        lost_key = find_lost_key(settings.where.state, jobs, views)
    return Overview(
        jobs=tuple(found), coming=coming, sets=sets, rotates=bool(aimed), scheduled=any(one.schedule for one in jobs),
        stray=stray, unrecorded=why_unrecorded(settings.where.state), lost_key=lost_key,
    )  # fmt: skip
