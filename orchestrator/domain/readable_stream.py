"""Datasets of a copy that are read again by a send whose output is discarded."""

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.units import Bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableDataset:
    """One dataset of a copy, the pipelines that read it completely, and its size."""

    name: str
    size: Bytes
    reads: tuple[Pipeline, ...]
