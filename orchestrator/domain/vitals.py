"""Signs of life of a run: processor time and bytes moved of each of its processes."""

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessActivity:
    """Activity of one process. `moved`: bytes read and written in its life; None: unknown, as another user runs it."""

    pid: int
    processor_s: float
    moved: int | None
