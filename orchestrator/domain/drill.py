"""Plan and result of a restore test: evidence that data can be restored."""

from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Step
from orchestrator.domain.point import Finding
from orchestrator.domain.run import Outcome, RunReport


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillDataset:
    """One dataset to restore. `source`: the snapshot to compare with; `scratch`: the dataset made from the copy.

    `alone`: the source does not show its files, so that snapshot is the copy's own; nothing else shows what it should contain.
    """

    name: bytes
    number: int
    source: str
    scratch: str
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillPlan:
    """Plan of one restore test. `of`: number of datasets with a snapshot to test; `left_out`: why some take no part.

    `encrypted_steps`: how data that cannot be read without a key is tested; `verifies`: a sentence that says what this verifies.
    `remarks`: other facts about the parts that a person should know. `lacking`: full names of the source's datasets whose copies
    lack the point, and are tested as of an older one.
    """

    point: str
    parts: tuple[DrillDataset, ...]
    of: int
    make: tuple[tuple[Step, ...], ...]
    drop: Step
    where: Location
    left_out: str = ""
    encrypted_steps: tuple[Step, ...] = ()
    verifies: str = ""
    remarks: tuple[str, ...] = ()
    lacking: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UserCheckResult:
    """Result of the owner's own check. `exit` None: the check took too long and was ended."""

    argv: tuple[str, ...]
    exit: int | None
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillResult:
    """Result of one restore test.

    `point` None: the test ended before it chose one. `whole`: all of it, no sample; `self_test`: a scratch copy was damaged on
    purpose. `files` and `bytes` were restored, `of_files` and `of_bytes` are in the point; `restore_s`: duration of the
    restore.
    """

    place: str
    point: str | None
    outcome: Outcome
    why: str
    whole: bool
    self_test: bool
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
