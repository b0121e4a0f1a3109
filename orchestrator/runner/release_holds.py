"""Release of unneeded pins on one pool, recorded like every other action."""

import os

from orchestrator.domain.errors import OrchestratorError, Stopped
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Step
from orchestrator.domain.run import Kind, Outcome, RunReport
from orchestrator.runner.context import Tools
from orchestrator.runner.run_recorder import begin, evidence_of
from orchestrator.runner.steps import Hands


def let_go(job: Job, tools: Tools, steps: tuple[Step, ...]) -> RunReport:
    """Run the steps of one pool. `job`: a made-up job that represents it."""
    journal = begin(job, tools, f"let go of pins on {job.source}", Kind.PINS)
    journal.attempt_begun()
    notes = f"{tools.state}/notes/pins"
    os.makedirs(notes, mode=0o700, exist_ok=True)
    try:
        for step in steps:
            Hands(journal, tools.writer(()), notes).do((step,))
    except Stopped as error:
        return journal.ended(Outcome.INTERRUPTED, tools.stop.reason or error.why, cure="the same command does the rest")
    except OrchestratorError as error:
        journal.attempt_ended(error)
        return journal.ended(Outcome.FAILED, error.why, cure=error.cure, evidence=evidence_of(error))
    return journal.ended(Outcome.DONE, "; ".join(step.does for step in steps))
