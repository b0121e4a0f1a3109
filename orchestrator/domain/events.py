"""What a run tells while it goes: for the progress bar, the log and history."""

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """A run has begun."""

    run: int
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """Something worth a line: `level` is "info" or "warning"."""

    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBegun:
    """A step starts; `expected` bytes, None when unknown."""

    does: str
    expected: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Bytes so far; `expected` None when unknown. `whole`: of all copying steps of the run, else of the step that began last."""

    done: int
    expected: int | None
    whole: bool = False


Event = Begun | Said | StepBegun | Moved
