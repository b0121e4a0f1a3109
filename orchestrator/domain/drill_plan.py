"""Plan of a restore test of datasets: what is created from a copy, and what it is compared with."""

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillDataset:
    """One dataset to restore. `source`: the snapshot to compare with; `scratch`: the dataset made from the copy.

    `alone`: the source does not show its files, so that snapshot is the copy's own; nothing else tells what should be in it.
    """

    name: bytes
    number: int
    source: str
    scratch: str
    alone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillPlan:
    """Plan of one restore test. `of`: number of datasets with a snapshot to test; `left_out`: why some have no part.

    `encrypted_steps`: how what cannot be read without a key is tried, and `proves`: what that proves, in words. `remarks`: what else
    has to be known of the parts.
    """

    point: str
    parts: tuple[DrillDataset, ...]
    of: int
    make: tuple[tuple[Step, ...], ...]
    drop: Step
    where: Location
    left_out: str = ""
    encrypted_steps: tuple[Step, ...] = ()
    proves: str = ""
    remarks: tuple[str, ...] = ()
