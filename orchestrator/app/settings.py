"""What is asked for besides a command itself: where things lie, and how much is told."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator import compose
from orchestrator.views import output as door

if TYPE_CHECKING:
    from orchestrator.config.models import Configuration
    from orchestrator.domain.job import Job
    from orchestrator.history.views import Views


class Frame:
    """What was asked for; `config`, `state`: the directories as they were typed, if they were."""

    def __init__(
        self,
        *,
        config: str | None = None,
        state: str | None = None,
        json: bool = False,
        verbose: bool = False,
        quiet: bool = False,
    ) -> None:
        self.config = config
        self.state = state
        self.json = json
        self.verbose = verbose
        self.quiet = quiet

    @property
    def where(self) -> compose.Directories:
        """Where configuration and state lie."""
        return compose.directories(self.config, self.state, os.environ, root=os.geteuid() == 0)

    def configuration(self) -> "Configuration":
        """All jobs and places. Raises: DeclarationError."""
        return compose.configuration(self.where)

    def jobs(self, names: Sequence[str]) -> "tuple[Job, ...]":
        """The jobs of these names, each once; without a name all. Raises: DeclarationError."""
        known = self.configuration()
        return tuple(known.job(name) for name in dict.fromkeys(names)) if names else known.jobs

    def views(self) -> "Views":
        """A look into the history. Raises: HistoryError."""
        return compose.open_views(self.where)

    def answer(self, value: Mapping[str, Any], lines: Callable[[], Sequence[str]] | Sequence[str]) -> None:
        """The result: the object with --json, else the lines."""
        if self.json:
            door.answer_value(value)
        else:
            door.answer(lines() if callable(lines) else lines)

    def log(self, line: str) -> None:
        """A command line that is about to run, where somebody wants to see it."""
        if self.verbose:
            door.say(f"+ {line}")

    def repeat(self, command: str) -> str:
        """A command of ours as one would type it, with the same directories."""
        import shlex

        told = [("--config", self.config), ("--state", self.state)]
        options = [f"{option} {shlex.quote(value)}" for option, value in told if value]
        return " ".join(["poolferry", command, *options])
