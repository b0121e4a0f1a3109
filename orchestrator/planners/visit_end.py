"""How the visit of a disk ended: what was done on it, and whether it may be pulled out."""

from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.rotation import Disk
from orchestrator.domain.run import RunReport
from orchestrator.planners.identify_disk import State


class Ending(StrEnum):
    """How a visit ended. REFUSED: the disk was not the one, or could not be opened; nothing was written to it."""

    DONE = "done"
    INCOMPLETE = "incomplete"
    PULLED_OUT = "pulled-out"
    BUSY = "busy"
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Visited:
    """A visit as it ended. `seen`: what the disk turned out to be; `safe`: it may be pulled out.

    `readings`: what was read again within the set's budget. `beside`: what else in its case is still in use. `health`: see
    Visit.
    """

    disk: Disk
    ending: Ending
    seen: State
    why: str
    cure: str
    safe: bool
    reports: tuple[RunReport, ...] = ()
    readings: tuple[RunReport, ...] = ()
    beside: str = ""
    health: str | None = None
