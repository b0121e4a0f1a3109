"""Result of a restore test: the evidence that data can be restored."""

from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.point import Finding
from orchestrator.domain.run import Outcome, RunReport


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCheckResult:
    """Result of the owner's own check. `exit` None: the check took too long and was ended."""

    argv: tuple[str, ...]
    exit: int | None
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillResult:
    """Result of one restore test.

    `point` None: it did not come to one. `whole`: all of it, no sample; `proves`: a scratch copy was damaged on purpose.
    `files` and `bytes` came back, `of_files` and `of_bytes` are in the point; `restore_s`: how long bringing back took.
    """

    place: str
    point: str | None
    outcome: Outcome
    why: str
    whole: bool
    proves: bool
    seed: int
    files: int = 0
    bytes: int = 0
    of_files: int | None = None
    of_bytes: int | None = None
    restore_s: float | None = None
    differences: tuple[str, ...] = ()
    checked: UserCheckResult | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillRunResult:
    """A finished restore test. `findings`: the damage that was found in the copy."""

    report: RunReport
    drilled: DrillResult
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillRecord:
    """One restore test, its end time, and its run."""

    run: int
    job: str
    at: datetime
    drilled: DrillResult
