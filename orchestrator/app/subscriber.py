"""Subscribers to the progress of a use case: a terminal, or none. A use case itself prints nothing."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:  # a use case that only reads needs none of these
    from orchestrator.domain.events import RunEvent
    from orchestrator.domain.run import RunReport
    from orchestrator.planners.throughput import ThroughputCounter


class ProgressOutput(Protocol):
    """A receiver of run events; workers call it from threads of their own. `watched`: a person watches it."""

    watched: bool

    def notify(self, event: "RunEvent") -> None:
        """Show one event."""
        ...

    def log(self, line: str) -> None:
        """Show a command line that is about to run."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Silence:
    """A receiver that ignores the events of runs."""

    watched = False

    def notify(self, event: "RunEvent") -> None:
        """Show one event."""

    def log(self, line: str) -> None:
        """Show a command line that is about to run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class Subscriber:
    """A subscriber to a use case. This class ignores everything; subclasses override the methods that they need."""

    def say(self, line: str) -> None:
        """Show a line that is no result."""

    def log(self, line: str) -> None:
        """Show a command line that is about to run, outside of a run."""

    def ended(self, report: "RunReport") -> None:
        """Handle the end of a run, a verification, a restore or a restore test; others may follow."""

    def progress(self) -> ProgressOutput:
        """Return the receiver for the events of later runs."""
        return Silence()


def unheard(_: object) -> None:
    """Ignore the argument; the default of `hears`."""


def count_bytes(monotonic: Callable[[], float]) -> "ThroughputCounter":
    """Return the counter that derives speed and remaining time from the events of a run."""
    from orchestrator.planners.throughput import ThroughputCounter

    return ThroughputCounter(monotonic)
