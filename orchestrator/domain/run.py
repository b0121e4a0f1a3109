"""Results of runs: outcomes, executed steps, and the report of a run."""

from enum import StrEnum

from orchestrator.domain.errors import NotNow, OrchestratorError, SourceRenamed, Stopped, TargetUnable
from orchestrator.domain.fast_dataclass import dataclass


class RunType(StrEnum):
    """Purpose of a run; only runs and verifications show the state of the copies."""

    RUN = "run"
    VERIFY = "verify"
    RESTORE = "restore"
    EXPORT = "export"
    PINS = "pins"
    TRY = "try"
    DRILL = "drill"


PROCESS_GONE = "its process is gone: killed, the machine lost its power, or the state directory was full; the next run of the job continues"


class Outcome(StrEnum):
    """Outcome of a run. INCOMPLETE: a copy was made and verified, with files left out or stored otherwise."""

    DONE = "done"
    INCOMPLETE = "incomplete"
    NOTHING = "nothing-to-do"
    REFUSED = "refused"
    WAITING = "waiting"
    FAILED = "failed"
    INTERRUPTED = "interrupted"

    @property
    def well(self) -> bool:
        """Return True when the run made a copy, or found that it has one."""
        return self in (Outcome.DONE, Outcome.NOTHING, Outcome.INCOMPLETE)


EXIT_CODES = {
    Outcome.DONE: 0, Outcome.NOTHING: 0, Outcome.INCOMPLETE: 5, Outcome.FAILED: 1, Outcome.REFUSED: 3, Outcome.WAITING: 75, Outcome.INTERRUPTED: 1,
}  # fmt: skip


def outcome_of(error: OrchestratorError) -> Outcome:
    """Return the outcome of a run that this error ended: the same for every kind of run, and for a command without one."""
    match error:
        case NotNow():
            return Outcome.WAITING
        case Stopped():
            return Outcome.INTERRUPTED
        case TargetUnable() | SourceRenamed():
            return Outcome.REFUSED
    return Outcome.FAILED


class VisitCause(StrEnum):
    """Cause of a visit: udev, a timer or the daemon; a person's command; or one that only reads, such as a restore."""

    AUTOMATIC = "automatic"
    BY_HAND = "by-hand"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """Report of one executed step. `moved_bytes` None: not a copy, or unknown."""

    action: str
    why: str
    moved_bytes: int | None
    took_s: float
    confirmed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """Report of one ended run; the public form of `run --json`."""

    run: int
    job: str
    outcome: Outcome
    why: str
    hint: str
    moved_bytes: int
    took_s: float
    resumed: bool
    attempts: int
    steps: tuple[StepReport, ...]
    points: tuple[str, ...]
    warnings: tuple[str, ...]
    evidence: tuple[str, ...] = ()


UNRECORDED = 0  # in place of a run's number: history knows nothing of it


def unrecorded_report(job: str, outcome: Outcome, why: str, *, hint: str, evidence: tuple[str, ...] = ()) -> RunReport:
    """Return the report of what did not begin, as something else has the disk, or as the request was wrong."""
    return RunReport(
        run=UNRECORDED, job=job, outcome=outcome, why=why, hint=hint, moved_bytes=0, took_s=0.0, resumed=False, attempts=0, steps=(),
        points=(), warnings=(), evidence=evidence,
    )  # fmt: skip
