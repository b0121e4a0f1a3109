"""What a look found different between the source and the newest copy."""

from collections.abc import Mapping

from orchestrator.domain.fast_dataclass import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderChanges:
    """The same for one top folder: entries in it before, and how many of them are gone or changed."""

    before: int | None
    deleted: int
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a look found different between the source and the newest point. None: unknown.

    `entries_before`, `files_before`: in the newest point; None when there is none. `other`: entries of which only mode,
    owner, times of links or the like differ. `moving`: bytes of the files to move. `device_…`: which filesystem the
    source lies on, the same way told at both looks. Why: a device number of btrfs, ZFS or NFS may change with each
    mount, so for those it must be something steadier, or None.
    """

    entries_before: int | None
    files_before: int | None
    entries_now: int | None
    deleted: int
    changed: int
    created: int
    other: int = 0
    moving: int | None = None
    folders: Mapping[bytes, FolderChanges] = field(default_factory=dict)
    deleted_examples: tuple[bytes, ...] = ()
    changed_examples: tuple[bytes, ...] = ()
    device_before: int | str | None = None
    device_now: int | str | None = None

    @property
    def none(self) -> bool:
        """Source and newest copy are equal as far as a look can tell."""
        return not (self.deleted or self.changed or self.created or self.other)
