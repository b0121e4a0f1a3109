"""Settings of a use case besides its own arguments: directories, and the subscriber of its progress.

A subscriber is a terminal, or none: a use case itself prints nothing.
"""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, Self

from orchestrator import compose

if TYPE_CHECKING:  # a use case that only reads needs none of these
    from orchestrator.config.models import Configuration
    from orchestrator.domain.events import RunEvent
    from orchestrator.domain.job import Job
    from orchestrator.domain.run import RunReport
    from orchestrator.history.views import HistoryReader
    from orchestrator.planners.throughput import ThroughputCounter


class ProgressOutput(Protocol):
    """A receiver of run events; workers call it from threads of their own. `watched`: a person watches it; `verbose`: `log`
    shows something.
    """

    watched: bool
    verbose: bool

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

    watched = verbose = False

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


class Settings:
    """`config`, `state`: the directories as typed, if given. `subscriber`: receives the progress. `interrupted`: by Ctrl-C; `stopped`: by any signal."""

    def __init__(
        self, *, config: str | None = None, state: str | None = None, subscriber: Subscriber | None = None
    ) -> None:
        self.config = config
        self.state = state
        self.subscriber = subscriber or Subscriber()
        self.interrupted = False
        self.stopped = False
        self.heard_of_newer = False  # a centre that is newer was said

    @property
    def where(self) -> compose.Directories:
        """Return the directories of configuration and state."""
        return compose.find_directories(self.config, self.state, os.environ, root=os.geteuid() == 0)

    def configuration(self) -> "Configuration":
        """Return all jobs and places. Raises: DeclarationError."""
        return compose.read_configuration(self.where)

    def jobs(self, names: Sequence[str]) -> "tuple[Job, ...]":
        """Return the jobs of these names, each once; without a name all of them. Raises: DeclarationError."""
        known = self.configuration()
        return tuple(known.job(name) for name in dict.fromkeys(names)) if names else known.jobs

    def views(self) -> "HistoryReader":
        """Open the history for reading. Raises: HistoryError."""
        return compose.open_history_reader(self.where)

    def say(self, line: str) -> None:
        """Send a line that is no result to the subscriber."""
        self.subscriber.say(line)

    def log(self, line: str) -> None:
        """Send a command line that is about to run to the subscriber."""
        self.subscriber.log(line)

    def repeat(self, command: str) -> str:
        """Return a command of ours as a person would type it, with the same directories."""
        import shlex

        told = [("--config", self.config), ("--state", self.state)]
        options = [f"{option} {shlex.quote(value)}" for option, value in told if value]
        return " ".join(["poolferry", command, *options])


class WrongRequest(Exception):
    """A request for something that does not exist or contradicts itself; nothing was done. The message names the problem.

    `hint`: what to do; empty: how the command is typed.
    """

    def __init__(self, why: str, hint: str = "") -> None:
        super().__init__(why)
        self.hint = hint
