"""What a look found different between the source and the newest copy. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The same for one top folder. `before` None: not known."""

    before: int | None
    deleted: int
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Counts of entries, and some names as evidence. `before`: entries in the newest copy; `now`: in the source."""

    before: int | None
    now: int
    files_now: int
    deleted: int
    changed: int
    created: int
    other: int = 0  # folders, links and metadata that differ
    moving: int | None = None  # bytes of the files that differ
    deleted_names: tuple[bytes, ...] = ()
    changed_names: tuple[bytes, ...] = ()
    folders: Mapping[bytes, Folder] = field(default_factory=dict)

    @property
    def none(self) -> bool:
        """Source and newest copy are equal as far as a look can tell."""
        return not (self.deleted or self.changed or self.created or self.other)
