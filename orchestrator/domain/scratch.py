"""Scratch copies: clones of a restore point that may be written, tested and dropped."""

from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchClone:
    """One scratch copy. `of`: its restore point; `until`: when it may expire by itself; `used`: bytes written to it."""

    name: str
    at: Location
    job: str
    of: str
    until: datetime | None
    used: int
    mountpoint: str
