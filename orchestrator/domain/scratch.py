"""Scratch copies: clones of a restore point that may be written, tried and dropped."""

from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """One of them. `of`: the point that it shows; `until`: when it may go by itself; `used`: bytes written into it."""

    name: str
    at: Location
    job: str
    of: str
    until: datetime | None
    used: int
    mountpoint: str
