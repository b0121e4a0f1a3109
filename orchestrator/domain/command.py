"""Commands as values: what will run, where, and how strong its effect is. Pure."""

import shlex
from enum import IntEnum

from orchestrator.domain.place import Host
from orchestrator.domain.quick import dataclass


class Effect(IntEnum):
    """How strong a command is. DESTROYS (rollback, destroy, receive -F, rsync --delete in a mirror) needs consent."""

    READS = 0
    WRITES = 1
    DESTROYS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One program with its arguments, on this machine or on a host. `environment` adds to a clean environment."""

    argv: tuple[str, ...]
    effect: Effect
    host: Host | None = None
    environment: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        """The line as a person would paste it into a shell."""
        setting = "".join(f"{key}={shlex.quote(value)} " for key, value in self.environment)
        line = setting + shlex.join(self.argv)
        return f"ssh {self.host} {shlex.quote(line)}" if self.host else line


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """Commands joined by pipes. `reads`: a file for the first one's input; `keeps`: a file that collects the output.

    `counts`: the stage behind which bytes are counted, where somebody wants to know.
    """

    stages: tuple[Command, ...]
    reads: str | None = None
    keeps: str | None = None
    counts: int = 0

    @property
    def effect(self) -> Effect:
        """The strongest effect of its stages."""
        return max(stage.effect for stage in self.stages)

    def __str__(self) -> str:
        tail = f" > {shlex.quote(self.keeps)}" if self.keeps else ""
        head = f" < {shlex.quote(self.reads)}" if self.reads else ""
        return " | ".join(str(stage) for stage in self.stages) + head + tail


def alone(*argv: str, effect: Effect, host: Host | None = None) -> Pipeline:
    """A pipeline of one command."""
    return Pipeline(stages=(Command(argv=argv, effect=effect, host=host),))
