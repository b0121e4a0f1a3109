"""The host's sign of life at the centre of its fleet."""

from typing import TYPE_CHECKING

from orchestrator import __version__, compose
from orchestrator.app.ended_jobs import stray_copies
from orchestrator.app.job_status import job_statuses
from orchestrator.app.next_run import find_next_runs
from orchestrator.domain.errors import DeclarationError
from orchestrator.domain.heartbeat import HostBeat, JobBeat
from orchestrator.domain.ledger import plain_text
from orchestrator.planners.health import JobState

if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.app.settings import Settings
    from orchestrator.domain.job import Job
    from orchestrator.fleet.connection import CentreSession
    from orchestrator.history.store import History
    from orchestrator.views.status import JobStatus, NextRun, StrayCopies


def beat(settings: "Settings", history: "History", centre: "CentreSession", host: int, *, every_s: float) -> None:
    """Tell the centre how each job stands. `every_s`: within what time the next sign of life is promised.

    Raises: CentreUnreachable · CentreRefused · HistoryError.
    """
    from orchestrator.fleet.beats import store_beat

    now, mistakes = compose.now(), 0
    jobs: tuple[JobBeat, ...] | None = None
    try:
        jobs = _judge(settings.configuration().jobs, history, now)
    except DeclarationError as error:
        mistakes = len(error.mistakes)
    told = HostBeat(
        host_at=now, every_s=every_s, version=__version__, waiting=history.outbox.count(), mistakes=mistakes, jobs=jobs
    )
    store_beat(centre, host, told)


def _judge(jobs: "tuple[Job, ...]", history: "History", now: "datetime") -> tuple[JobBeat, ...]:
    views = history.views
    found = job_statuses(jobs, views, now=now, alive=compose.is_process_alive)
    coming = find_next_runs(jobs, views, now=now, running=[each.job.name for each in found if each.running]).jobs
    told = (_job_beat(each, coming[each.job.name]) for each in found)
    return (*told, *map(_stray_beat, stray_copies(jobs, views)))


def _stray_beat(stray: "StrayCopies") -> JobBeat:
    """Tell of a job that has no file any more, as its newest run knew it."""
    last = stray.last
    return JobBeat(
        job=plain_text(stray.job),
        engine=last.engine,
        source=plain_text(last.source),
        target=plain_text(stray.place or last.target),
        state=JobState.NO_FILE.value,
        why=plain_text(stray.sentence),
        hint=plain_text(stray.hint),
        late_after_s=None,
        copied_at=stray.newest,
        due_at=None,
        next_at=None,
        running_at=None,
        last_outcome=last.outcome.value if last.outcome else None,
        last_ended_at=last.ended_at,
        failures=0,
    )


def _job_beat(found: "JobStatus", coming: "NextRun") -> JobBeat:
    job, last = found.job, found.last
    return JobBeat(
        job=job.name,
        engine=job.engine,
        source=plain_text(str(job.tree)),
        target=plain_text(job.target.name),
        state=found.health.state.value,
        why=plain_text(found.health.why),
        hint=plain_text(found.hint),
        late_after_s=job.late_after,
        copied_at=found.facts.newest_copy,
        due_at=coming.due,
        next_at=coming.at,
        running_at=found.running.begun_at if found.running else None,
        last_outcome=last.outcome.value if last and last.outcome else None,
        last_ended_at=last.ended_at if last else None,
        failures=found.facts.failures,
    )
