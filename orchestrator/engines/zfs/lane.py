"""One dataset's part of a plan, as a value. Pure."""

from collections.abc import Mapping

from orchestrator.domain.plan import Refusal
from orchestrator.domain.quick import dataclass
from orchestrator.engines.zfs.bases import Base
from orchestrator.engines.zfs.words import (
    Bookmark,
    Deed,
    Flags,
    FullSend,
    IncrementalSend,
    ResumedSend,
    Snapshot,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One dataset's part of a plan.

    `base`: what both sides hold now; `there`: what the target has of it now stays; `comes`: the copy's dataset, or its
    first snapshot, comes to be; `moved`: what the target had there is renamed away; `sealed`: the copy is encrypted;
    `empty`: the source has nothing to send it from; `blocks`: the refusal for which nothing can be made below it.
    """

    name: str
    deeds: tuple[Deed, ...] = ()
    base: Base | None = None
    there: bool = False
    comes: bool = False
    moved: bool = False
    sealed: bool = False
    empty: bool = False
    flags: Flags | None = None
    refusal: Refusal | None = None
    blocks: Refusal | None = None
    warnings: tuple[str, ...] = ()

    @property
    def end(self) -> Snapshot | Bookmark | None:
        """The newest that both sides hold in the end."""
        sent = [deed.snapshot for deed in self.deeds if isinstance(deed, FullSend | IncrementalSend | ResumedSend)]
        return sent[-1] if sent else self.base.base if self.base else None


Lanes = Mapping[str, Lane]


def carries(deed: Deed, snapshot: Snapshot) -> bool:
    """Whether a deed brings the snapshot."""
    if isinstance(deed, IncrementalSend) and deed.between:
        return deed.base.createtxg < snapshot.createtxg <= deed.snapshot.createtxg
    return isinstance(deed, FullSend | IncrementalSend | ResumedSend) and deed.snapshot.guid == snapshot.guid
