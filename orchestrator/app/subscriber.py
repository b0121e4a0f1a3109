"""Who hears what a use case does while it goes on: a terminal, a page, or nobody. A use case itself prints nothing."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, Self

if TYPE_CHECKING:  # what only looks needs none of it
    from orchestrator.domain.events import RunEvent
    from orchestrator.domain.run import RunReport
    from orchestrator.planners.throughput import ThroughputCounter


class ProgressOutput(Protocol):
    """A receiver of run events; workers call it from threads of their own. `watched`: a person sees it move."""

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
    """Hears the events of runs and does nothing with them."""

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
    """Hears what a use case does. This one is nobody; others say what they want to hear."""

    def say(self, line: str) -> None:
        """A line that is no result."""

    def log(self, line: str) -> None:
        """A command line that is about to run, outside of a run."""

    def ended(self, report: "RunReport") -> None:
        """A run, a verification, a restore or a restore test has ended; others may follow."""

    def progress(self) -> ProgressOutput:
        """Return who hears the events of the runs to come."""
        return Silence()


def unheard(_: object) -> None:
    """Hears what is told, and does nothing with it."""


def count_bytes(monotonic: Callable[[], float]) -> "ThroughputCounter":
    """Return what tells speed and remaining time from the events of a run."""
    from orchestrator.planners.throughput import ThroughputCounter

    return ThroughputCounter(monotonic)
