"""The front page of the status page: each source against its promise, what is wrong first; the same facts as `status` shows."""

import re
from collections.abc import Sequence
from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import show_name
from orchestrator.domain.problem import problem_hint, problem_sentence
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import show_count, show_duration
from orchestrator.planners.drill import estimate_whole
from orchestrator.planners.health import JobState
from orchestrator.views.drills import newest_drill, newest_drill_line
from orchestrator.views.format import format_brief
from orchestrator.views.run_progress import pace_words
from orchestrator.views.status import (
    MAKE_WRITABLE,
    JobStatus,
    NextRuns,
    Overview,
    blamed_sentence,
    copy_age,
    needs_attention,
    source_sentence,
)

_ORDER = (
    JobState.FAILING, JobState.LATE, JobState.INCOMPLETE, JobState.NO_FILE, JobState.WAITING, JobState.PAUSED, JobState.NEW, JobState.UP
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One thing that is wrong, and what helps. `command`: the command in the hint, to be copied; empty: none was found.

    `said`: the end of the run to blame, where the state does not say it; `hint` is empty where the next has the same.
    """

    why: str
    said: str
    hint: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningRow:
    """A run that goes on. `share`: the part that is done; None while unknown."""

    job: str
    run: int
    since: str
    step: str
    share: float | None
    pace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """One job against its promise. `share`: the age of its newest verified copy as a part of its limit; None: no limit, or no copy.

    `drill_well` None: no restore test yet, or none is requested; `whole_restore`: how long all of it would take, as last measured;
    `enrolls`: its rotation set, if that has no disk: until one is enrolled no run copies anything.
    """

    job: str
    state: JobState
    bad: bool
    source: str
    target: str
    copy: str
    place: str
    limit: str
    share: float | None
    points: int
    newest: str | None
    last: str
    last_run: int | None
    drill: str
    drill_well: bool | None
    whole_restore: str
    next: str
    why: str
    advice: tuple[Advice, ...]
    running: RunningRow | None
    copies: bool
    enrolls: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The first sentence of the page. `kind`: "good", "bad", "new" or "calm"."""

    kind: str
    title: str
    more: str


def source_rows(found: Overview, now: datetime) -> tuple[SourceRow, ...]:
    """Return all jobs, what is wrong first, then by the part of the limit that is used up."""
    rows = [source_row(each, found.coming, now) for each in found.jobs]
    return tuple(sorted(rows, key=lambda row: (_ORDER.index(row.state), -(row.share or 0), row.job)))


def source_row(found: JobStatus, coming: NextRuns, now: datetime) -> SourceRow:
    """Return one job against its promise."""
    job, copies, last = found.job, found.facts.copies, found.last
    drilled, limit = newest_drill(found.drills), job.late_after
    whole = estimate_whole(drilled.drilled) if drilled else None
    age = found.health.age
    return SourceRow(
        job=job.name, state=found.health.state, bad=needs_attention(found), source=show_name(str(job.tree)),
        target=show_name(str(job.target.location)) if not job.target.rotates else f"disks of the set {job.target.name}",
        copy=copy_age(found, now=now) if copies else "",
        place=copies[0].place if copies else job.target.name, limit=show_duration(limit) if limit else "",
        share=max(age, 0) / limit if age is not None and limit else None,
        points=found.points.number, newest=found.points.newest,
        last=f"{last.outcome} {format_brief(last.ended_at, now=now)}" if last else "none",
        last_run=last.id if last else None,
        drill=newest_drill_line(job.drill, found.drills, now).removeprefix("last drill: "),
        drill_well=drilled.drilled.outcome is Outcome.DONE if drilled else None,
        whole_restore=show_duration(whole) if whole is not None else "",
        next=coming.jobs[job.name].words, why=found.health.why, advice=_advice(found, now), running=_running(found, now),
        copies=job.copies, enrolls=rotation.name if (rotation := job.target.rotation) and not rotation.disks else "",
    )  # fmt: skip


def hint_command(hint: str, job: str) -> str:
    """Return the command that a hint names: in backquotes, or a call of poolferry with the job's name and its options."""
    quoted = re.search(r"`([^`]+)`", hint)
    plain = re.search(rf"poolferry (?:[a-z]+ ){{1,2}}{re.escape(job)}(?![\w.-])(?: --[a-z-]+(?: [\w.:-]+)?)*", hint)
    found = [
        (each.start(), text)
        for each, text in ((quoted, quoted and quoted[1]), (plain, plain and plain[0]))
        if each and text
    ]
    return min(found)[1] if found else ""


def _advice(found: JobStatus, now: datetime) -> tuple[Advice, ...]:
    told = []
    if found.health.state is not JobState.UP:
        told.append((found.health.why, blamed_sentence(found), found.hint if needs_attention(found) else ""))
        for each in found.problems:
            sentence = problem_sentence(each)
            if sentence not in found.health.why:
                told.append((f"also: {sentence}", "", problem_hint(each, newest=found.points.newest)))
    if found.source is not None:
        told.append((source_sentence(found.source, now), "", found.source.hint))
    hints = [hint for *_, hint in told]
    return tuple(
        _one_advice(why, said, "" if hints[at + 1 : at + 2] == [hint] else hint, found.job.name)
        for at, (why, said, hint) in enumerate(told)
    )


def _one_advice(why: str, said: str, hint: str, job: str) -> Advice:
    return Advice(why=why, said=said, hint=hint, command=hint_command(hint, job))


def _running(found: JobStatus, now: datetime) -> RunningRow | None:
    if found.running is None:
        return None
    progress = found.progress
    share = min(progress.done / progress.expected, 1.0) if progress and progress.expected else None
    return RunningRow(
        job=found.job.name, run=found.running.id, since=format_brief(found.running.begun_at, now=now), step=found.step,
        share=share, pace=pace_words(progress, now=now) if progress else "",
    )  # fmt: skip


def headline(found: Overview, rows: Sequence[SourceRow]) -> Headline:
    """Return the first sentence of the page."""
    bad, number = sum(row.bad for row in rows) + len(found.stray), len(rows) + len(found.stray)
    late_disks = any(each.standing.health.late or each.standing.health.overdue for each in found.sets)
    ailing = any(each.standing.health.ailing for each in found.sets)
    if found.unrecorded:
        return Headline(kind="bad", title="No run can be recorded", more=f"{found.unrecorded}; {MAKE_WRITABLE}.")
    if bad:
        verb = "needs" if bad == 1 else "need"
        return Headline(
            kind="bad", title=f"{bad} of {show_count(number, 'job')} {verb} you", more="What is wrong comes first, with the command that helps."
        )  # fmt: skip
    if late_disks or ailing:
        return Headline(
            kind="bad", title="A disk needs you", more="Each job is well; a disk of a set is late, or ails."
        )
    if rows and all(row.state is JobState.NEW for row in rows):
        more = "The first run makes the first restore point, or goes on from those that lie at the target; its command is below."
        return Headline(kind="new", title="History knows no run yet", more=more)
    resting = [row for row in rows if row.state is not JobState.UP]
    if resting:
        names = ", ".join(f"{row.job} is {row.state}" for row in resting[:3])
        return Headline(kind="calm", title="Nothing needs you", more=f"{names}{' …' if len(resting) > 3 else ''}.")
    return Headline(
        kind="good", title="All promises are kept", more=f"{show_count(len(rows), 'job')}: each newest copy is verified{_limits_kept(rows)}."
    )  # fmt: skip


def _limits_kept(rows: Sequence[SourceRow]) -> str:
    """Return which limits the ages of the newest copies keep; a job without one is never late."""
    free = [row.job for row in rows if not row.limit]
    if not free:
        return ", and younger than its limit"
    if len(free) == len(rows):
        return "; no limit is set (late-after), so none is ever late"
    named = f"{', '.join(free[:3])}{' …' if len(free) > 3 else ''}"
    return f", and younger than its limit; no limit is set for {named} (late-after)"
