"""Signs of life of a run: what each of its processes has done so far."""

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Vitals:
    """One process. `moved`: bytes read and written in its life; None: not to be known, as it runs as somebody else."""

    pid: int
    processor_s: float
    moved: int | None
