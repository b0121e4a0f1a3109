"""A drill of datasets, planned: what is made of a copy, and what it is compared with. Pure."""

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Step
from orchestrator.domain.quick import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One dataset. `source`: the source's snapshot; `scratch`: what was made of the copy's."""

    name: bytes
    number: int
    source: str
    scratch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """All of it. `of`: so many datasets have a snapshot that both sides hold; `left_out`: why the others have no part."""

    point: str
    parts: tuple[Part, ...]
    of: int
    make: tuple[tuple[Step, ...], ...]
    drop: Step
    where: Location
    left_out: str = ""
