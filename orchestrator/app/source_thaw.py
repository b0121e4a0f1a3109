"""Sources that a killed run left held still for a snapshot: the daemon lets them go when it starts."""

import contextlib
import threading
from collections.abc import Callable, Sequence

from orchestrator import compose
from orchestrator.domain.errors import NotNow, OrchestratorError
from orchestrator.domain.events import RunEvent, RunMessage, no_log
from orchestrator.domain.job import Job
from orchestrator.history.store import History
from orchestrator.process.stop import StopRequest

Say = Callable[[str], None]


def release_held_sources(where: compose.Directories, jobs: Sequence[Job], history: History, *, say: Say) -> None:
    """Call the snapshot-after that killed runs owe, each in a thread: a hook may take its time, and the daemon must not."""
    for job in jobs:
        if job.hooks.of("snapshot-after") and _owes(job, history):
            threading.Thread(
                target=_release, args=(where, job, history, say), daemon=True, name=f"release {job.name}"
            ).start()


def _owes(job: Job, history: History) -> bool:
    from orchestrator.runner.source_freeze import owing_run

    return owing_run(job, history) is not None


def _release(where: compose.Directories, job: Job, history: History, say: Say) -> None:
    """Call it, while no run of the job goes on: that one calls it itself. A failure is a failed run, which is reported."""
    from orchestrator.runner.locks import lock_job
    from orchestrator.runner.run_recorder import RunRecorder, begin_run
    from orchestrator.runner.source_freeze import owing_run, release_left

    def notify(event: RunEvent) -> None:
        if isinstance(event, RunMessage):
            say(f"{job.name}: {event.text}")

    with contextlib.suppress(NotNow), lock_job(job, where.state, wait=lambda _: False, patience=0.0):
        tools = compose.make_run_context(
            job, where, history, notify=notify, log=no_log, stop=StopRequest(), ssh_options=()
        )
        run = owing_run(job, history)
        if run is None:
            return
        try:
            release_left(RunRecorder(tools=tools, job=job, run=run, begun=compose.monotonic()))
        except OrchestratorError as error:
            begin_run(job, tools, "the daemon started, and the source was held still").ended_by(error, continues="")
            say(f"{job.name}: {error.why}; {error.hint}")
