"""The plan of one dataset, as a value."""

from collections.abc import Mapping
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import (
    Action,
    Bookmark,
    FullSend,
    IncrementalSend,
    ReceiveEncryption,
    ResumedSend,
    SendFlags,
    Snapshot,
)
from orchestrator.engines.zfs.plan.increments import CommonSnapshot


class EncryptionInheritance(StrEnum):
    """The encryption that datasets below a copy would inherit."""

    OPEN = "not encrypted"
    SEALED = "encrypted by the target, with its key"
    RAW = "encrypted by the source: a raw copy"


def inheritance_below(above: EncryptionInheritance) -> EncryptionInheritance:
    """Return the encryption inheritance of a dataset that is not sent raw."""
    return EncryptionInheritance.SEALED if above is EncryptionInheritance.SEALED else EncryptionInheritance.OPEN


def encryption_below(above: EncryptionInheritance) -> ReceiveEncryption | None:
    """Return the encryption setting for a dataset that is not sent raw."""
    return {
        EncryptionInheritance.OPEN: None,
        EncryptionInheritance.SEALED: ReceiveEncryption.AS_ABOVE,
        EncryptionInheritance.RAW: ReceiveEncryption.OFF,
    }[above]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetPlan:
    """The plan of one dataset.

    `base`: the snapshot that both sides hold now; `there`: the target's present data stays; `comes`: the copy's dataset, or its
    first snapshot, is created; `moved`: the target's present dataset is renamed; `inheritance`: how the copy is encrypted;
    `empty`: the source has no snapshot to send; `waits`: for another one, and a new survey; `blocks`: the refusal
    that prevents all datasets below it; `before`: actions that come before all others.
    """

    name: str
    actions: tuple[Action, ...] = ()
    before: tuple[Action, ...] = ()
    base: CommonSnapshot | None = None
    there: bool = False
    comes: bool = False
    moved: bool = False
    inheritance: EncryptionInheritance = EncryptionInheritance.OPEN
    empty: bool = False
    waits: bool = False
    flags: SendFlags | None = None
    refusal: Refusal | None = None
    blocks: Refusal | None = None
    warnings: tuple[str, ...] = ()

    @property
    def end(self) -> Snapshot | Bookmark | None:
        """Return the newest snapshot or bookmark that both sides hold in the end."""
        sent = [
            action.snapshot for action in self.actions if isinstance(action, FullSend | IncrementalSend | ResumedSend)
        ]
        return sent[-1] if sent else self.base.base if self.base else None


DatasetPlans = Mapping[str, DatasetPlan]


def brings_snapshot(action: Action, snapshot: Snapshot) -> bool:
    """Return whether an action sends the snapshot."""
    if isinstance(action, IncrementalSend) and action.between:
        return action.base.createtxg < snapshot.createtxg <= action.snapshot.createtxg
    return isinstance(action, FullSend | IncrementalSend | ResumedSend) and action.snapshot.guid == snapshot.guid
