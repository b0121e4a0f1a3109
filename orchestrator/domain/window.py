"""Daily time windows in which runs may begin; a module of its own because each start imports it."""

from datetime import time

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """A span of each day in local time, also over midnight; the end is excluded."""

    begin: time
    end: time

    def holds(self, clock: time) -> bool:
        """Return True when this time of day lies in the window."""
        if self.begin < self.end:
            return self.begin <= clock < self.end
        return clock >= self.begin or clock < self.end

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M}"
