"""The host's sign of life at the centre of its fleet."""

from typing import TYPE_CHECKING

from orchestrator import __version__, compose
from orchestrator.app.ended_jobs import stray_copies
from orchestrator.app.job_status import job_statuses
from orchestrator.app.next_run import find_next_runs
from orchestrator.domain.errors import DeclarationError
from orchestrator.domain.heartbeat import NO_FILE, HostBeat, JobBeat
from orchestrator.domain.ledger import plain_text

if TYPE_CHECKING:
    from datetime import datetime

    from orchestrator.app.settings import Settings
    from orchestrator.domain.job import Job
    from orchestrator.fleet.connection import CentreSession
    from orchestrator.history.store import History
    from orchestrator.history.views import HistoryReader
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
    strays = (_stray_beat(each, views) for each in stray_copies(jobs, views))
    return (*(_job_beat(each, coming[each.job.name]) for each in found), *strays)


def _stray_beat(stray: "StrayCopies", views: "HistoryReader") -> JobBeat:
    """Tell of a job that has no file any more, as its newest run knew it."""
    facts = views.health_facts(stray.job, limit=1)
    last = facts.last[0]
    return JobBeat(
        job=plain_text(stray.job),
        engine=last.engine,
        source=plain_text(last.source),
        target=plain_text(stray.place or last.target),
        state=NO_FILE,
        why=plain_text(stray.sentence),
        hint=plain_text(stray.hint),
        late_after_s=None,
        copied_at=facts.newest_copy,
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
