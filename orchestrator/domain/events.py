"""Events that a run reports while it goes on, for the progress bar, the log and the history; and activity of its processes."""

from orchestrator.domain.fast_dataclass import dataclass


def no_log(_: str) -> None:
    """Ignore a command line that is about to run. Where this is the log, the line is not even built."""


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
    """Progress in bytes; `expected` None when unknown. `whole`: of all copying steps of the run, else of the newest step."""

    done: int
    expected: int | None
    whole: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWaits:
    """A run that has begun and waits, for a permit: nothing of it goes on meanwhile. `text`: empty when the wait is over."""

    text: str


RunEvent = RunStarted | RunMessage | RunWaits | StepStarted | TransferProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessActivity:
    """Activity of one process. `moved`: bytes read and written in its life; None: unknown, as it runs as another user."""

    pid: int
    processor_s: float
    moved: int | None
