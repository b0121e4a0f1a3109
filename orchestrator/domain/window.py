"""Spans of the day, in which runs may begin. By itself, as each start imports it."""

from datetime import time

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A span of each day in local time, also over midnight; the end is outside."""

    begin: time
    end: time

    def holds(self, clock: time) -> bool:
        """Whether this time of day lies in it."""
        if self.begin < self.end:
            return self.begin <= clock < self.end
        return clock >= self.begin or clock < self.end

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M}"
