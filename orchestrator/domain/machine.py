"""What the owner declares once for the whole machine, in poolferry.toml. Pure."""

from dataclasses import field

from orchestrator.domain.declare import key
from orchestrator.domain.quick import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """How the daemon starts runs."""

    parallel: int = key("runs at once, each into a place of its own", default=2, least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """All of poolferry.toml; without the file, its defaults."""

    clock: Clock = field(default_factory=Clock)
