"""A drill of datasets, planned: what is made of a copy, and what it is compared with."""

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One dataset whose files come back. `source`: the snapshot it is compared with; `scratch`: what was made of the copy's.

    `alone`: the source does not show its files, so that snapshot is the copy's own; nothing else tells what should be in it.
    """

    name: bytes
    number: int
    source: str
    scratch: str
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """All of it. `of`: so many datasets have a snapshot to drill; `left_out`: why some of them have no part.

    `sealed`: how what cannot be read without a key is tried, and `proves`: what that proves, in words. `remarks`: what else
    has to be known of the parts.
    """

    point: str
    parts: tuple[Part, ...]
    of: int
    make: tuple[tuple[Step, ...], ...]
    drop: Step
    where: Location
    left_out: str = ""
    sealed: tuple[Step, ...] = ()
    proves: str = ""
    remarks: tuple[str, ...] = ()
