"""State of each job and its next run, as a table and as JSON."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.names import printable_line, show_name
from orchestrator.domain.problem import Problem, UnseenCopies, problem_hint, problem_sentence
from orchestrator.domain.run import Outcome
from orchestrator.domain.run_progress import RunProgress, progress_value
from orchestrator.domain.source_state import SourceState, SourceStateRecord
from orchestrator.domain.units import show_duration
from orchestrator.history.values import HealthFacts, PointCounts, RunRecord
from orchestrator.planners.health import BAD, CopyHealth, JobState
from orchestrator.views.drills import last_drill_value, newest_drill_line
from orchestrator.views.format import format_ago, format_brief, format_iso, format_table, indent, shorten, unseen_value
from orchestrator.views.run_progress import progress_lines
from orchestrator.views.run_report import reason_lines

if TYPE_CHECKING:  # few jobs have restore tests or rotation sets
    from orchestrator.domain.drill import DrillRecord
    from orchestrator.views.disks import SetReport

_COLOURS = {
    JobState.UP: "green",
    JobState.LATE: "red",
    JobState.FAILING: "red",
    JobState.INCOMPLETE: "red",
    JobState.NO_FILE: "red",
    JobState.WAITING: "yellow",
    JobState.NEW: "dim",
    JobState.PAUSED: "dim",
}
_HEAD = ("JOB", "STATE", "VERIFIED COPY", "LIMIT", "LAST RUN", "POINTS", "NEXT RUN")


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRun:
    """A job's next run. `at` None: not known from the clock; `due`: since when one is due; `words`: for a table."""

    at: datetime | None
    due: datetime | None
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRuns:
    """The next runs by job. `nobody`: why no daemon starts runs at these times; empty: one does, or none is scheduled."""

    jobs: Mapping[str, NextRun]
    nobody: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatus:
    """A job with all facts that decide its state. `running`: the run in progress; `blamed`: as in `JobHealth`.

    `source`: the state of a source that is lost, or being restored; None: it is as ever. `step`, `progress`: of the run in
    progress, as far as they are known. `unseen`: the last look at the place did not find the newest copy.
    """

    job: Job
    health: CopyHealth
    facts: HealthFacts
    last: RunRecord | None
    blamed: RunRecord | None
    running: RunRecord | None
    points: PointCounts
    problems: tuple[Problem, ...] = ()
    hint: str = ""
    drills: "tuple[DrillRecord, ...]" = ()
    source: SourceStateRecord | None = None
    step: str = ""
    progress: RunProgress | None = None
    unseen: UnseenCopies | None = None


def needs_attention(found: JobStatus) -> bool:
    """Return True when a job makes `status` exit with 4."""
    return found.health.state in BAD


def blamed_sentence(found: JobStatus) -> str:
    """Return the end of the run to blame, whose hint is shown; empty where the state says it, or none went wrong.

    Why: a late copy's state says its age alone, and a hint such as `--accept emptied` must not stand without its reason.
    """
    run = found.blamed
    if (
        run is None
        or not run.why
        or run.outcome in (Outcome.DONE, Outcome.NOTHING)
        or not needs_attention(found)
        or run.why in found.health.why
    ):
        return ""
    return f"run {run.id} {run.outcome}: {shorten(run.why, 300)}"


def job_status_value(found: JobStatus, following: NextRun) -> dict[str, Any]:
    """Render one job for `status --json`. `following`: its next run."""
    job, health, running = found.job, found.health, found.running
    return {
        "job": job.name,
        "state": health.state.value,
        "why": health.why,
        "passing": health.passing,
        "schedule": job.schedule,
        "next_run": next_run_value(following),
        "late_after_s": job.late_after,
        "source": show_name(str(job.tree)),
        "target": {"place": job.target.name, "location": show_name(str(job.target.location))},
        "newest_verified": _copy_value(found),
        "last_run": _last_value(found.last),
        "failed_run": _last_value(found.facts.last_failed),
        "failures_in_a_row": found.facts.failures,
        "running": _running_value(found, running) if running else None,
        "hint": found.hint or None,
        "problems": [_problem_value(found, each) for each in found.problems],
        "points": {"count": found.points.number, "newest": found.points.newest},
        "last_drill": last_drill_value(found.drills),
        "source_state": _source_value(found.source),
    }


def _running_value(found: JobStatus, running: RunRecord) -> dict[str, Any]:
    told = None
    if found.progress is not None:
        told = {**progress_value(found.progress), "at": format_iso(found.progress.at)}
    return {"run": running.id, "since": format_iso(running.begun_at), "step": found.step or None, "progress": told}


def _running_lines(found: JobStatus, now: datetime) -> list[str]:
    """Return the step of the run in progress, and how far it is."""
    if found.running is None:
        return []
    return [f"now: {line}" for line in progress_lines(found.step, found.progress, now=now)]


def _problem_value(found: JobStatus, problem: Problem) -> dict[str, Any]:
    return {
        "kind": problem.kind.value,
        "place": problem.place,
        "point": problem.point or None,
        "since": format_iso(problem.since),
        "why": problem_sentence(problem),
        "hint": problem_hint(problem, newest=found.points.newest),
        "count": problem.count,
        "paths": [show_name(path) for path in problem.paths],
    }


def accepted_value(accepted: Sequence[Problem]) -> dict[str, Any]:
    """Render the problems that a person accepted for programs."""
    return {
        "accepted": [
            {"kind": each.kind.value, "place": each.place, "point": each.point or None, "why": problem_sentence(each)}
            for each in accepted
        ]
    }


def accepted_lines(accepted: Sequence[Problem]) -> list[str]:
    """Render the problems that a person accepted."""
    return [f"{each.job}: accepted: {problem_sentence(each)}" for each in accepted]


def _source_value(found: SourceStateRecord | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {"state": found.state.value, "since": format_iso(found.since), "why": found.why, "hint": found.hint}


def source_sentence(found: SourceStateRecord, now: datetime) -> str:
    """Return the state of a source that is lost or being restored, since when, and what its runs do meanwhile."""
    rests = found.state in (SourceState.GONE, SourceState.RENAMED, SourceState.ANEW, SourceState.RESTORING)
    mode = "its runs rest, and no snapshot is taken of it" if rests else "its runs go on"
    return f"source {found.state.value} (since {format_brief(found.since, now=now)}): {mode}: {shorten(found.why, 300)}"


def _source_lines(found: SourceStateRecord | None, now: datetime) -> list[str]:
    return [] if found is None else [source_sentence(found, now), f"what to do: {found.hint}"]


def _copy_value(found: JobStatus) -> dict[str, Any] | None:
    if not found.facts.copies:
        return None
    copy, age = found.facts.copies[0], found.health.age
    return {
        "point": copy.name,
        "place": copy.place,
        "at": format_iso(copy.current_at),
        "age_s": None if age is None else round(age),
        "unseen": unseen_value(found.unseen),
    }


def _last_value(last: RunRecord | None) -> dict[str, Any] | None:
    if last is None:
        return None
    return {
        "run": last.id,
        "outcome": last.outcome,
        "at": format_iso(last.ended_at),
        "why": last.why,
        "hint": last.hint,
    }


def job_status_lines(
    found: Sequence[JobStatus],
    following: Mapping[str, NextRun],
    *,
    now: datetime,
    paint: Callable[[str, str | None], str],
) -> list[str]:
    """Render the table, and below each job with a problem its cause and hint. `following`: the next runs, by job."""
    rows = [(*_row(each, now=now), following[each.job.name].words) for each in found]
    cells = format_table(_HEAD, rows, right=frozenset({"POINTS"}))
    lines = [paint("  ".join(cells[0]).rstrip(), "bold")]
    for each, row in zip(found, cells[1:], strict=True):
        row[1] = paint(row[1], _COLOURS[each.health.state])
        lines.append("  ".join(row).rstrip())
        drilled = newest_drill_line(each.job.drill, each.drills, now)
        lines += [
            printable_line(line)
            for line in indent(
                [
                    *_running_lines(each, now),
                    *_reasons(each),
                    *_source_lines(each.source, now),
                    *([drilled] if drilled else []),
                ],
                4,
            )
        ]
    return lines


def _row(found: JobStatus, *, now: datetime) -> tuple[str, ...]:
    """Return the cells except the last. The place is shown where it may be one of several disks."""
    job, copies, last = found.job, found.facts.copies, found.last
    place = f" on {copies[0].place}" if copies and job.target.rotates else ""
    newest = copy_age(found, now=now) + place
    ended = f"{last.outcome} {format_brief(last.ended_at, now=now)} (run {last.id})" if last else "none"
    if found.running:
        ended = f"running since {format_brief(found.running.begun_at, now=now)} (run {found.running.id})"
    limit = show_duration(job.late_after) if job.late_after else "-"
    return (job.name, found.health.state, newest, limit, ended, str(found.points.number))


def copy_age(found: JobStatus, *, now: datetime) -> str:
    """Return the age of the newest verified copy, for a table; marked where the last look did not find it."""
    if not found.facts.copies:
        return "none"
    return format_ago(found.facts.copies[0].current_at, now=now) + (", unseen" if found.unseen else "")


def _reasons(found: JobStatus) -> list[str]:
    """Return why a job is not up, what helps, and what else is wrong with its copies."""
    if found.health.state is JobState.UP:
        return []
    said = blamed_sentence(found)
    lines = [shorten(found.health.why, 300), *([said] if said else [])]
    lines += [f"what to do: {found.hint}"] if found.hint and needs_attention(found) else []
    for each in found.problems:
        sentence = problem_sentence(each)
        if sentence not in found.health.why:
            lines += [
                shorten(f"also: {sentence}", 300),
                f"what to do: {problem_hint(each, newest=found.points.newest)}",
            ]
    return lines


def next_run_value(found: NextRun) -> dict[str, Any]:
    """Render the next run for JSON."""
    return {"at": format_iso(found.at), "due_since": format_iso(found.due), "words": found.words}


@dataclass(frozen=True, slots=True, kw_only=True)
class StrayCopies:
    """Copies of a job that has no file any more: nobody makes new ones. `place`: where they lie; empty: on disks of a set.

    `target`: the name of the place that holds the newest, which was as the source at `newest`; `last`: the job's newest run; `heir`: the file of a
    job that has made no copy, of the same source in the same place; empty: there is none.
    """

    job: str
    place: str
    target: str
    newest: datetime | None
    last: RunRecord
    heir: str = ""

    @property
    def sentence(self) -> str:
        """Return what is wrong."""
        where = show_name(self.place) if self.place else "its disks"
        return f"it has no file any more, so nobody makes new copies; those in {where} stay"

    @property
    def hint(self) -> str:
        """Return what helps."""
        renamed = (
            f'{self.heir} copies the same: if it is this job, write known-as = "{self.job}" before its first section; else '
            if self.heir
            else ""
        )
        return f"{renamed}put jobs/{self.job}.toml back; or, if the job is over: `poolferry end {self.job}`"


@dataclass(frozen=True, slots=True, kw_only=True)
class LostKey:
    """The key of this host that is gone: its file, and by job the id of the key with which its manifests were tagged."""

    path: str
    keys: Mapping[str, str]

    @property
    def sentence(self) -> str:
        """Return what is wrong."""
        return (
            f"this host's key {', '.join(sorted(set(self.keys.values())))} is gone: {self.path} is not there, and manifests of "
            f"{', '.join(sorted(self.keys))} were tagged with it; no copy is lost, but nobody can tell whether these manifests are ours"
        )

    @property
    def hint(self) -> str:
        """Return what helps."""
        from orchestrator.domain.command_line import quoted  # a key is nearly never lost

        job = min(self.keys)
        return (
            f"put a kept copy of it back: `install -m 600 COPY {quoted(self.path)}`; if it is lost for ever, the next copy that "
            f"`poolferry run {job}` makes has a new key, and ends this"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """State of jobs and of the rotation sets that they use. `scheduled`: one of the jobs has a schedule; `stray`: of no job's file;

    `unrecorded`: why no run can be recorded now, so that what is shown may be old; empty: nothing is known to hinder that.
    """

    jobs: tuple[JobStatus, ...]
    coming: NextRuns
    sets: "tuple[SetReport, ...]"
    rotates: bool
    scheduled: bool
    stray: tuple[StrayCopies, ...] = ()
    unrecorded: str = ""
    lost_key: LostKey | None = None

    @property
    def well(self) -> bool:
        """Return True when nothing is late or failing."""
        health = [each.standing.health for each in self.sets]
        late = any(each.late or each.overdue or each.ailing for each in health)
        return (
            not late and not self.stray and not self.unrecorded and not any(needs_attention(each) for each in self.jobs)
        )


MAKE_WRITABLE = "free some space there, or see why it may only be read; until then no run begins, and what is shown here is from before"


def overview_value(found: Overview, now: datetime) -> dict[str, Any]:
    """Render the overview for `status --json`."""
    jobs = [job_status_value(each, found.coming.jobs[each.job.name]) for each in found.jobs]
    stray = [
        {"job": each.job, "place": show_name(each.place), "why": each.sentence, "hint": each.hint}
        for each in found.stray
    ]
    return {
        "at": format_iso(now), "jobs": jobs, **({"stray": stray} if stray else {}),
        **({"lost_key": {"why": show_name(found.lost_key.sentence), "hint": found.lost_key.hint}} if found.lost_key else {}),
        **({"unrecorded": {"why": show_name(found.unrecorded), "hint": MAKE_WRITABLE}} if found.unrecorded else {}),
        **(_sets_value(found.sets) if found.rotates else {}),
    }  # fmt: skip


def _sets_value(sets: "Sequence[SetReport]") -> dict[str, Any]:
    from orchestrator.views.disks import sets_value

    return sets_value(sets)


def overview_lines(found: Overview, now: datetime, paint: Callable[[str, str | None], str]) -> list[str]:
    """Render the overview for people; printable, and in colours."""
    lines = job_status_lines(found.jobs, found.coming.jobs, now=now, paint=paint)
    if found.rotates:
        from orchestrator.views.disks import sets_lines

        lines += ["", *(printable_line(line) for line in sets_lines(found.sets, now))]
    for each in found.stray:
        lines += ["", *map(printable_line, reason_lines(f"{each.job}: {each.sentence}", hint=each.hint, evidence=()))]
    if lost := found.lost_key:
        lines += ["", *map(printable_line, reason_lines(lost.sentence, hint=lost.hint, evidence=()))]
    if found.unrecorded:
        lines += ["", *map(printable_line, reason_lines(found.unrecorded, hint=MAKE_WRITABLE, evidence=()))]
    return [*lines, *([found.coming.nobody] if found.coming.nobody and found.scheduled else [])]


def unknown_job_lines(jobs: Sequence[Job]) -> list[str]:
    """Render the jobs where no history says how they stand: what each copies, whereto and when."""
    from orchestrator.views.schedule import describe_schedule

    rows = [
        (job.name, "unknown", show_name(str(job.tree)), show_name(str(job.target.location)), describe_schedule(job))
        for job in jobs
    ]
    cells = format_table(("JOB", "STATE", "SOURCE", "TARGET", "SCHEDULE"), rows)
    return ["  ".join(row).rstrip() for row in cells] if rows else []


def unknown_job_value(job: Job) -> dict[str, Any]:
    """Render such a job for `status --json`."""
    return {
        "job": job.name,
        "state": "unknown",
        "schedule": job.schedule,
        "source": show_name(str(job.tree)),
        "target": {"place": job.target.name, "location": show_name(str(job.target.location))},
    }
