"""The exact commands that make a disk usable and let it go, each flag with its reason."""

from orchestrator.domain.plan import Command, Effect, Pipeline, alone
from orchestrator.domain.rotation import BELOW, POOL, ROOM

# What comes from a disk that was away gains nobody rights here: no set-user-id programs, no device nodes.
_SAFE = "nosuid,nodev"
# Not even the journal is replayed before the marker is proved.
_UNTOUCHED = {"ext4": "ro,noload", "xfs": "ro,norecovery", "btrfs": "ro,rescue=nologreplay"}


def untouched() -> dict[str, str]:
    """By kind of filesystem, the options with which a look changes nothing on it."""
    return dict(_UNTOUCHED)


def mountpoint(name: str) -> str:
    """Where the disk of that name is mounted."""
    return f"{ROOM}/{name}"


def node(name: str) -> str:
    """The device of ours through which a disk is used: of its opened LUKS container, or below its pool."""
    return f"{POOL}{name}"


def below(name: str) -> str:
    """The name of the device under a LUKS container that holds a pool."""
    return f"{name}{BELOW}"


def make_mountpoint(name: str) -> Pipeline:
    """Only root looks into it while nothing is mounted there."""
    return alone("install", "-d", "-m", "0700", mountpoint(name), effect=Effect.WRITES)


def mounted_pipeline(name: str) -> Pipeline:
    """What is mounted there, with its device and options; exit 1: nothing."""
    return alone("findmnt", "-J", "-M", mountpoint(name), "-o", "SOURCE,FSTYPE,OPTIONS,MAJ:MIN", effect=Effect.READS)


def mount_untouched(device: str, content: str, name: str) -> Pipeline:
    """To look at the marker: nothing on the disk changes."""
    options = f"{_UNTOUCHED[content]},{_SAFE},noexec"
    return alone("mount", "-t", content, "-o", options, device, mountpoint(name), effect=Effect.WRITES)


def mount(device: str, content: str, name: str) -> Pipeline:
    """For copies. noatime: each reading would be a writing. errors=remount-ro: ext4 would write on into what is damaged."""
    more = ",errors=remount-ro" if content == "ext4" else ""
    return alone(
        "mount", "-t", content, "-o", f"rw,noatime,{_SAFE}{more}", device, mountpoint(name), effect=Effect.WRITES
    )


def only_read(device: str, *, on: bool) -> Pipeline:
    """The kernel writes nothing to the device, or may again. Why: ext4 notes damage that it sees even when mounted with ro."""
    return alone("blockdev", "--setro" if on else "--setrw", device, effect=Effect.WRITES)


def is_here(device: str) -> Pipeline:
    """An exit other than 0: no such device."""
    return alone("lsblk", "-n", "-d", "-o", "KNAME", device, effect=Effect.READS)


def ext4_errors(kernel_name: str) -> Pipeline:
    """How often ext4 has met damage since it was checked."""
    return alone("cat", f"/sys/fs/ext4/{kernel_name}/errors_count", effect=Effect.READS)


def unmount(name: str) -> Pipeline:
    """Ends when all is on the medium."""
    return alone("umount", mountpoint(name), effect=Effect.WRITES)


def unmount_lazily(name: str) -> Pipeline:
    """For a disk that is gone: nothing can be written any more, and who still looks is shut out."""
    return alone("umount", "-l", mountpoint(name), effect=Effect.WRITES)


def check_filesystem(device: str) -> Pipeline:
    """ext4: replays the journal and repairs what is safe to repair (-p). xfs and btrfs do this when mounted."""
    return alone("e2fsck", "-p", device, effect=Effect.WRITES)


def unlock(device: str, key_file: str, name: str, *, read_only: bool) -> Pipeline:
    """Opens a LUKS container. --key-file: it never asks anybody."""
    only = ("--readonly",) if read_only else ()
    return alone(
        "cryptsetup", "open", "--type", "luks2", "--batch-mode", *only, "--key-file", key_file, device, node(name),
        effect=Effect.WRITES,
    )  # fmt: skip


def lock(name: str) -> Pipeline:
    """Closes it."""
    return alone("cryptsetup", "close", node(name), effect=Effect.WRITES)


def inside_pipeline(name: str) -> Pipeline:
    """What lies in the opened container."""
    return alone("blkid", "-p", "-o", "export", f"/dev/mapper/{node(name)}", effect=Effect.READS)


def make_node(device: str, sectors: int, name: str) -> Pipeline:
    """A device of ours that leads to the disk, and can be led to it again when it comes back under another name."""
    return alone("dmsetup", "create", node(name), "--table", f"0 {sectors} linear {device} 0", effect=Effect.WRITES)


def lead_node(device: str, sectors: int, name: str) -> tuple[Pipeline, ...]:
    """Leads it to the disk that came back. --noflush --nolockfs: nothing can be written to where it led before."""
    return (
        alone("dmsetup", "reload", node(name), "--table", f"0 {sectors} linear {device} 0", effect=Effect.WRITES),
        alone("dmsetup", "suspend", "--noflush", "--nolockfs", node(name), effect=Effect.WRITES),
        alone("dmsetup", "resume", node(name), effect=Effect.WRITES),
    )


def remove_node(name: str) -> Pipeline:
    """Takes it away again. --retry: udev may still look at it."""
    return alone("dmsetup", "remove", "--retry", node(name), effect=Effect.WRITES)


def node_table(name: str) -> Pipeline:
    """Where it leads; an exit other than 0: there is none."""
    return alone("dmsetup", "table", node(name), effect=Effect.READS)


def works(number: str) -> str:
    """The kernel's file of what the device of that number, as 8:16, has done."""
    return f"/sys/dev/block/{number}/stat"


def works_of(kernel_name: str) -> str:
    """The same by the name that the kernel gives the device."""
    return f"/sys/class/block/{kernel_name}/stat"


def number_is_here(number: str) -> Pipeline:
    """An exit other than 0: the kernel knows no device of that number, as 8:16. Why not by its name: a table has none."""
    return alone("test", "-e", f"/sys/dev/block/{number}", effect=Effect.READS)


def import_pool(guid: str, name: str, *, read_only: bool, force: bool = False) -> Pipeline:
    """By its guid and under a temporary name (-t), so that no other pool's name matters. -N: nothing is mounted.

    -R: a mountpoint of the disk never lies over something live. cachefile=none: nobody imports it at the next boot.
    """
    only = ("-o", "readonly=on") if read_only else ()
    more = ("-f",) if force else ()
    return alone(
        "zpool", "import", "-d", f"/dev/mapper/{node(name)}", "-N", *more, "-R", mountpoint(name), "-o", "cachefile=none", *only,
        "-t", guid, node(name), effect=Effect.WRITES,
    )  # fmt: skip


def encryption_root(name: str) -> Pipeline:
    """The dataset whose key the pool's top dataset has; empty or "-": it is not encrypted itself."""
    return alone("zfs", "get", "-Hp", "-o", "value", "encryptionroot", node(name), effect=Effect.READS)


def load_keys(name: str, key_file: str, *, below: bool, try_only: bool = False) -> Pipeline:
    """From a file: it never asks anybody. `below`: of all encrypted datasets, else of the top one, which the others share.

    `try_only`: tells whether it would open them (-n).
    """
    flags = (*(("-n",) if try_only else ()), *(("-r",) if below else ()))
    return alone("zfs", "load-key", *flags, "-L", f"file://{key_file}", node(name), effect=Effect.WRITES)


def export_pool(name: str) -> Pipeline:
    """Ends when all is on the medium."""
    return alone("zpool", "export", node(name), effect=Effect.WRITES)


def sync_pool(name: str) -> Pipeline:
    """Ends when all that was written is on the medium."""
    return alone("zpool", "sync", node(name), effect=Effect.WRITES)


def clear_pool(name: str) -> Pipeline:
    """After the node leads to the disk again."""
    return alone("zpool", "clear", node(name), effect=Effect.WRITES)


def pool_health(name: str) -> Pipeline:
    """Its guid and whether it works; an exit other than 0: it is not imported."""
    return alone("zpool", "list", "-Hp", "-o", "guid,health", node(name), effect=Effect.READS)


def pool_is_read_only(name: str) -> Pipeline:
    """on or off; an exit other than 0: it is not imported."""
    return alone("zpool", "get", "-Hp", "-o", "value", "readonly", node(name), effect=Effect.READS)


def vdev_pipeline(name: str) -> Pipeline:
    """Its devices by their guids."""
    return alone("zpool", "status", "-g", node(name), effect=Effect.READS)


def label_pipeline(device: str) -> Pipeline:
    """The label of a device that is not imported under this name."""
    return alone("zdb", "-l", device, effect=Effect.READS)


def make_dataset(dataset: str) -> Pipeline:
    """-p: those above it too, and none is a mistake that is there. Nothing of it is ever mounted by itself."""
    return alone("zfs", "create", "-p", "-o", "canmount=off", "-o", "mountpoint=none", dataset, effect=Effect.WRITES)


def flush(device: str) -> Pipeline:
    """What the kernel still holds of the device goes out."""
    return alone("blockdev", "--flushbufs", device, effect=Effect.WRITES)


def sectors_pipeline(device: str) -> Pipeline:
    """Its size in sectors of 512 bytes."""
    return alone("blockdev", "--getsz", device, effect=Effect.READS)


def in_flight(disk: str) -> Pipeline:
    """How many requests are under way: reads and writes."""
    return alone("cat", f"/sys/block/{disk}/inflight", effect=Effect.READS)


def switch_off(disk: str) -> Pipeline:
    """The kernel flushes the disk's own cache, stops it where it can be stopped, and lets it go."""
    one = Command(argv=("printf", "1"), effect=Effect.READS)
    write = Command(argv=("dd", f"of=/sys/block/{disk}/device/delete", "status=none"), effect=Effect.WRITES)
    return Pipeline(stages=(one, write))
