"""The hooks of late jobs: contract 1, with the facts of the job's newest run and the reason for being late."""

from collections.abc import Sequence

from orchestrator import compose
from orchestrator.app.notify_queue import Say
from orchestrator.domain.events import RunEvent, RunMessage
from orchestrator.domain.job import Job
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.history.store import History
from orchestrator.history.values import RunRecord
from orchestrator.planners.notifications import Notice
from orchestrator.process.stop import StopRequest
from orchestrator.runner.hooks import call_hooks
from orchestrator.runner.run_recorder import RunRecorder


def call_late_hooks(
    where: compose.Directories, jobs: Sequence[Job], late: Sequence[Notice], history: History, *, say: Say
) -> None:
    """Call each late job's hooks once for each notice. A hook that fails is only recorded with the run."""
    known = {job.name: job for job in jobs}
    for notice in late:
        story = history.views.run(notice.seen.run) if notice.seen.run is not None else None
        if story is None:
            say(f"{notice.seen.job} is late, but no run of it has ended: there is nothing to report to its hooks")
            continue
        _call(where, known[notice.seen.job], notice, story.run, history, say)


def _call(where: compose.Directories, job: Job, notice: Notice, run: RunRecord, history: History, say: Say) -> None:
    def notify(event: RunEvent) -> None:
        if isinstance(event, RunMessage) and event.level == "warning":
            say(f"{job.name}: {event.text}")

    job = _job_on_disk(job, notice.seen.target)
    tools = compose.make_run_context(
        job, where, history, notify=notify, log=lambda _: None, stop=StopRequest(), ssh_options=()
    )
    journal = RunRecorder(tools=tools, job=job, run=run.id, begun=compose.monotonic())
    call_hooks("disk-overdue" if job.target.disk else "late", journal, _report(run, notice.seen.why))


def _job_on_disk(job: Job, target: str) -> Job:
    """Return the job on the disk that the notice is about; unchanged, when it is about the job's target itself."""
    rotation = job.target.rotation
    if rotation is None or target == job.target.name:
        return job
    from orchestrator.runner.disk.state import job_on_disk

    return job_on_disk(job, rotation.disk(target))


def _report(run: RunRecord, why: str) -> RunReport:
    """Build the report of the newest run again, but with the reason why the job is late."""
    return RunReport(
        run=run.id, job=run.job, outcome=run.outcome or Outcome.INTERRUPTED, why=why, hint=run.hint or "",
        moved_bytes=run.moved_bytes or 0, took_s=run.took_s or 0.0, resumed=bool(run.resumed), attempts=run.attempts or 0,
        steps=(), points=run.points, warnings=run.warnings, evidence=run.evidence,
    )  # fmt: skip
