"""The plan of one dataset, as a value."""

from collections.abc import Mapping
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import (
    Bookmark,
    Deed,
    Encryption,
    Flags,
    FullSend,
    IncrementalSend,
    ResumedSend,
    Snapshot,
)
from orchestrator.engines.zfs.plan.common_snapshot import Base


class Cover(StrEnum):
    """The encryption that datasets below a copy would inherit."""

    OPEN = "not encrypted"
    SEALED = "encrypted by the target, with its key"
    RAW = "encrypted by the source: a raw copy"


def below(above: Cover) -> Cover:
    """Return the encryption inheritance of a dataset that is not sent raw."""
    return Cover.SEALED if above is Cover.SEALED else Cover.OPEN


def encryption_below(above: Cover) -> Encryption | None:
    """Return the encryption setting for a dataset that is not sent raw."""
    return {Cover.OPEN: None, Cover.SEALED: Encryption.AS_ABOVE, Cover.RAW: Encryption.OFF}[above]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """The plan of one dataset.

    `base`: what both sides hold now; `there`: what the target has of it now stays; `comes`: the copy's dataset, or its
    first snapshot, comes to be; `moved`: what the target had there is renamed away; `cover`: how the copy is encrypted;
    `empty`: the source has nothing to send it from; `blocks`: the refusal for which nothing can be made below it.
    """

    name: str
    deeds: tuple[Deed, ...] = ()
    base: Base | None = None
    there: bool = False
    comes: bool = False
    moved: bool = False
    cover: Cover = Cover.OPEN
    empty: bool = False
    flags: Flags | None = None
    refusal: Refusal | None = None
    blocks: Refusal | None = None
    warnings: tuple[str, ...] = ()

    @property
    def end(self) -> Snapshot | Bookmark | None:
        """Return the newest snapshot or bookmark that both sides hold in the end."""
        sent = [deed.snapshot for deed in self.deeds if isinstance(deed, FullSend | IncrementalSend | ResumedSend)]
        return sent[-1] if sent else self.base.base if self.base else None


Lanes = Mapping[str, Lane]


def carries(deed: Deed, snapshot: Snapshot) -> bool:
    """Return whether an action sends the snapshot."""
    if isinstance(deed, IncrementalSend) and deed.between:
        return deed.base.createtxg < snapshot.createtxg <= deed.snapshot.createtxg
    return isinstance(deed, FullSend | IncrementalSend | ResumedSend) and deed.snapshot.guid == snapshot.guid
