"""What of a copy is read again by sending it to nobody."""

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Sendable:
    """A dataset of a copy, what reads it whole, and how much that is."""

    name: str
    size: Bytes
    reads: tuple[Pipeline, ...]
