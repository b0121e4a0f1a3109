"""Differences that a survey found between the source and the newest copy."""

from collections.abc import Mapping

from orchestrator.domain.fast_dataclass import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderChanges:
    """Changes in one top folder: its number of entries before, and how many of them are gone or changed."""

    before: int | None
    deleted: int
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Differences that a survey found between the source and the newest restore point. None means unknown.

    `entries_before`, `files_before`: in the newest point; None when there is none. `other`: entries of which only mode, owner,
    times of links or similar data differ. `altered`: the files among them, as far as they are named. `moving`: bytes of the
    files to move. `device_…`: the filesystem that holds the source, identified the same way in both surveys. Why: a device
    number of btrfs, ZFS or NFS may change with each mount, so for those it must be something more stable, or None.
    """

    entries_before: int | None
    files_before: int | None
    entries_now: int | None
    deleted: int
    changed: int
    created: int
    other: int = 0
    altered: tuple[bytes, ...] = ()
    moving: int | None = None
    folders: Mapping[bytes, FolderChanges] = field(default_factory=dict)
    deleted_examples: tuple[bytes, ...] = ()
    changed_examples: tuple[bytes, ...] = ()
    device_before: int | str | None = None
    device_now: int | str | None = None

    @property
    def none(self) -> bool:
        """Return True when the survey found no difference between the source and the newest copy."""
        return not (self.deleted or self.changed or self.created or self.other)
