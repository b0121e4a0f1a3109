"""Settings of a use case besides its own arguments: directories, and the subscriber of its progress."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.subscriber import Subscriber

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.job import Job
    from orchestrator.history.views import HistoryReader


class Settings:
    """`config`, `state`: the directories as typed, if given. `subscriber`: receives the progress."""

    def __init__(
        self, *, config: str | None = None, state: str | None = None, subscriber: Subscriber | None = None
    ) -> None:
        self.config = config
        self.state = state
        self.subscriber = subscriber or Subscriber()

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
    """A request for something that does not exist or contradicts itself; nothing was done. The message names the problem."""
