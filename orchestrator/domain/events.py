"""Events that a run reports while it goes on: for the progress bar, the log and the history.

Signs of life of a run: processor time and bytes moved of each of its processes.

Pure.
"""

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted:
    """The start of a run."""

    run: int
    job: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMessage:
    """A message worth one line: `level` is "info" or "warning"."""

    level: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted:
    """The start of a step; `expected` bytes, None when unknown."""

    action: str
    expected: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferProgress:
    """Progress in bytes; `expected` None when unknown. `whole`: of all copying steps of the run, else of the last step begun."""

    done: int
    expected: int | None
    whole: bool = False


RunEvent = RunStarted | RunMessage | StepStarted | TransferProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessActivity:
    """Activity of one process. `moved`: bytes read and written in its life; None: unknown, as another user runs it."""

    pid: int
    processor_s: float
    moved: int | None
