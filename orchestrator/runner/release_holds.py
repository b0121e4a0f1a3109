"""Release of unneeded pins on one pool, recorded like every other action."""

import os

from orchestrator.domain.errors import OrchestratorError, Stopped
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Step
from orchestrator.domain.run import Outcome, RunReport, RunType
from orchestrator.runner.context import RunContext
from orchestrator.runner.run_recorder import begin_run, error_evidence
from orchestrator.runner.steps import StepExecutor


def release_holds(job: Job, tools: RunContext, steps: tuple[Step, ...]) -> RunReport:
    """Run the steps of one pool. `job`: an artificial job that represents it."""
    journal = begin_run(job, tools, f"let go of pins on {job.source}", RunType.PINS)
    journal.attempt_begun()
    notes = f"{tools.state}/notes/pins"
    os.makedirs(notes, mode=0o700, exist_ok=True)
    try:
        for step in steps:
            StepExecutor(journal, tools.writer(()), notes).do((step,))
    except Stopped as error:
        return journal.ended(Outcome.INTERRUPTED, tools.stop.reason or error.why, hint="the same command does the rest")
    except OrchestratorError as error:
        journal.attempt_ended(error)
        return journal.ended(Outcome.FAILED, error.why, hint=error.hint, evidence=error_evidence(error))
    return journal.ended(Outcome.DONE, "; ".join(step.action for step in steps))
