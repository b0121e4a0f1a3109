"""Block devices as they were found: what a look tells of each, before anything on it is opened."""

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A disk or a part of one, by the kernel's `name`; `disk`: of the whole disk it belongs to.

    `kind`: what lies on it, in the words of blkid (ext4, zfs_member, crypto_LUKS …); empty: nothing. `uuid` as
    Disk.identity; `sub`: of a pool, which part of it this is. `above`: devices that were made on it. `at`: where it, or
    what lies above it, is mounted. `external`: it hangs on USB, or may be pulled out. Serial, model and wwn are what
    the disk or a bridge before it claims.
    """

    name: str
    path: str
    disk: str
    size: int
    kind: str
    uuid: str
    sub: str
    label: str
    read_only: bool
    external: bool
    serial: str
    model: str
    wwn: str
    above: tuple[str, ...] = ()
    at: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()  # names of its partitions
    case: str = ""  # the same for all disks behind one USB bridge; empty: it hangs on none
    table: str = ""  # the kind of its partition table
    answers: bool = True  # False: it could not be read; then kind, uuid and label are what udev remembers

    @property
    def blank(self) -> bool:
        """It was read, and nothing that anybody knows lies on it."""
        return self.answers and not (self.kind or self.table or self.parts)

    @property
    def called(self) -> str:
        """The device for people."""
        about = " ".join(filter(None, (self.model, self.serial and f"serial {self.serial}")))
        return f"{self.path} ({about})" if about else self.path
