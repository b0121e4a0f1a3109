"""Block devices as a survey found them, before anything on them is opened."""

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockDevice:
    """A disk or a part of a disk. `name`: its kernel name; `disk`: the kernel name of the whole disk.

    `kind`: its content as blkid names it (ext4, zfs_member, crypto_LUKS …); empty: nothing. `uuid` as Disk.identity; `sub`: of
    a pool, which part of it this is. `above`: devices that were made on it. `at`: where it, or a device above it, is mounted.
    `external`: it is connected by USB, or may be pulled out. Serial, model and wwn are as the disk or the USB bridge reports
    them.
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
    case: str = ""  # the same for all disks behind one USB bridge; empty: there is no bridge
    table: str = ""  # the kind of its partition table
    answers: bool = True  # False: it could not be read; then kind, uuid and label come from udev's memory

    @property
    def blank(self) -> bool:
        """Return True when the device could be read and holds no known content."""
        return self.answers and not (self.kind or self.table or self.parts)

    @property
    def called(self) -> str:
        """Return the device's name for people: its path, model and serial."""
        about = " ".join(filter(None, (self.model, self.serial and f"serial {self.serial}")))
        return f"{self.path} ({about})" if about else self.path
