"""The exact commands that make a disk usable and release it, each flag with its reason."""

from orchestrator.domain.plan import Command, Effect, Pipeline, single_command
from orchestrator.domain.rotation import LUKS_NODE_SUFFIX, MOUNT_ROOT, POOL_PREFIX

# Data from a disk that was away must give nobody rights here: no programs, no device nodes, no links that lead outside.
_SAFE = "nosuid,nodev,noexec,nosymfollow"
# Not even the journal is replayed before the marker is verified.
_UNTOUCHED = {"ext4": "ro,noload", "xfs": "ro,norecovery", "btrfs": "ro,rescue=nologreplay"}


def untouched_options() -> dict[str, str]:
    """Return the mount options, by kind of filesystem, with which reading changes nothing on it."""
    return dict(_UNTOUCHED)


def mountpoint(name: str) -> str:
    """Return the mountpoint of the disk of that name."""
    return f"{MOUNT_ROOT}/{name}"


def node(name: str) -> str:
    """Return the name of a disk's mapped device: its opened LUKS container, or the device below its pool."""
    return f"{POOL_PREFIX}{name}"


def below(name: str) -> str:
    """Return the name of the device under a LUKS container that holds a pool."""
    return f"{name}{LUKS_NODE_SUFFIX}"


def make_mountpoint(name: str) -> Pipeline:
    """Return the command to create the mountpoint; only root can open it while nothing is mounted there."""
    return single_command("install", "-d", "-m", "0700", mountpoint(name), effect=Effect.WRITES)


def mounted_pipeline(name: str) -> Pipeline:
    """Return the command to show what is mounted there, with its device and options; exit 1: nothing."""
    return single_command(
        "findmnt", "-J", "-M", mountpoint(name), "-o", "SOURCE,FSTYPE,OPTIONS,MAJ:MIN", effect=Effect.READS
    )


def mount_untouched(device: str, content: str, name: str) -> Pipeline:
    """Return the command to mount a disk for reading its marker; nothing on the disk changes."""
    options = f"{_UNTOUCHED[content]},{_SAFE}"
    return single_command("mount", "-t", content, "-o", options, device, mountpoint(name), effect=Effect.WRITES)


def mount(device: str, content: str, name: str) -> Pipeline:
    """Return the command to mount for copies. noatime: no write per read. errors=remount-ro: damage stops ext4 writes."""
    more = ",errors=remount-ro" if content == "ext4" else ""
    return single_command(
        "mount", "-t", content, "-o", f"rw,noatime,{_SAFE}{more}", device, mountpoint(name), effect=Effect.WRITES
    )


def set_read_only(device: str, *, on: bool) -> Pipeline:
    """Return the command to make a device read-only, or not. Why: ext4 records damage even when mounted with ro."""
    return single_command("blockdev", "--setro" if on else "--setrw", device, effect=Effect.WRITES)


def is_here(device: str) -> Pipeline:
    """Return the command to find a device; an exit other than 0: no such device."""
    return single_command("lsblk", "-n", "-d", "-o", "KNAME", device, effect=Effect.READS)


def ext4_errors(kernel_name: str) -> Pipeline:
    """Return the command to read how often ext4 has found damage since its last check."""
    return single_command("cat", f"/sys/fs/ext4/{kernel_name}/errors_count", effect=Effect.READS)


def unmount(name: str) -> Pipeline:
    """Return the command to unmount; it ends when all is on the medium."""
    return single_command("umount", mountpoint(name), effect=Effect.WRITES)


def unmount_lazily(name: str) -> Pipeline:
    """Return the command to unmount a disk that is gone: nothing can be written any more, and its users get errors."""
    return single_command("umount", "-l", mountpoint(name), effect=Effect.WRITES)


def check_filesystem(device: str) -> Pipeline:
    """Return the command to check ext4: journal replay and safe repairs (-p). xfs and btrfs do this when mounted."""
    return single_command("e2fsck", "-p", device, effect=Effect.WRITES)


def unlock(device: str, key_file: str, name: str, *, read_only: bool) -> Pipeline:
    """Return the command to open a LUKS container. --key-file: it never asks a question."""
    only = ("--readonly",) if read_only else ()
    return single_command(
        "cryptsetup", "open", "--type", "luks2", "--batch-mode", *only, "--key-file", key_file, device, node(name),
        effect=Effect.WRITES,
    )  # fmt: skip


def lock(name: str) -> Pipeline:
    """Return the command to close the LUKS container."""
    return single_command("cryptsetup", "close", node(name), effect=Effect.WRITES)


def inside_pipeline(name: str) -> Pipeline:
    """Return the command to identify the content of the opened container."""
    return single_command("blkid", "-p", "-o", "export", f"/dev/mapper/{node(name)}", effect=Effect.READS)


def make_node(device: str, sectors: int, name: str) -> Pipeline:
    """Return the command to map a device onto the disk; it can be redirected when the disk gets another name."""
    return single_command(
        "dmsetup", "create", node(name), "--table", f"0 {sectors} linear {device} 0", effect=Effect.WRITES
    )


def lead_node(device: str, sectors: int, name: str) -> tuple[Pipeline, ...]:
    """Return the commands to redirect it to the returned disk. --noflush --nolockfs: the old one takes no writes."""
    return (
        single_command(
            "dmsetup", "reload", node(name), "--table", f"0 {sectors} linear {device} 0", effect=Effect.WRITES
        ),
        single_command("dmsetup", "suspend", "--noflush", "--nolockfs", node(name), effect=Effect.WRITES),
        single_command("dmsetup", "resume", node(name), effect=Effect.WRITES),
    )


def remove_node(name: str) -> Pipeline:
    """Return the command to remove the mapped device. --retry: udev may still use it."""
    return single_command("dmsetup", "remove", "--retry", node(name), effect=Effect.WRITES)


def node_table(name: str) -> Pipeline:
    """Return the command to show the table of the mapped device; an exit other than 0: there is none."""
    return single_command("dmsetup", "table", node(name), effect=Effect.READS)


def io_counters(number: str) -> str:
    """Return the kernel's I/O statistics file of the device of that number, such as 8:16."""
    return f"/sys/dev/block/{number}/stat"


def io_counters_of(kernel_name: str) -> str:
    """Return the same file by the kernel's name of the device."""
    return f"/sys/class/block/{kernel_name}/stat"


def number_is_here(number: str) -> Pipeline:
    """Return the command to find a device number such as 8:16; exit not 0: unknown. Why not by name: a table has none."""
    return single_command("test", "-e", f"/sys/dev/block/{number}", effect=Effect.READS)


def import_pool(guid: str, name: str, *, read_only: bool, force: bool = False) -> Pipeline:
    """Return the command to import a pool by guid, under a temporary name (-t) against name clashes. -N: no mounts.

    -R: a mountpoint of the disk never hides a directory in use. cachefile=none: it is not imported at the next boot.
    """
    only = ("-o", "readonly=on") if read_only else ()
    more = ("-f",) if force else ()
    return single_command(
        "zpool", "import", "-d", f"/dev/mapper/{node(name)}", "-N", *more, "-R", mountpoint(name), "-o", "cachefile=none", *only,
        "-t", guid, node(name), effect=Effect.WRITES,
    )  # fmt: skip


def encryption_root(name: str) -> Pipeline:
    """Return the command to read the encryption root of the top dataset; empty or "-": it is not encrypted itself."""
    return single_command("zfs", "get", "-Hp", "-o", "value", "encryptionroot", node(name), effect=Effect.READS)


def load_keys(name: str, key_file: str, *, below: bool, try_only: bool = False) -> Pipeline:
    """Return the command to load keys from a file: it never asks a question.

    `below`: of all encrypted datasets, else of the shared top one. `try_only`: only check whether it would open them (-n).
    """
    flags = (*(("-n",) if try_only else ()), *(("-r",) if below else ()))
    return single_command("zfs", "load-key", *flags, "-L", f"file://{key_file}", node(name), effect=Effect.WRITES)


def export_pool(name: str) -> Pipeline:
    """Return the command to export the pool; it ends when all is on the medium."""
    return single_command("zpool", "export", node(name), effect=Effect.WRITES)


def sync_pool(name: str) -> Pipeline:
    """Return the command to sync the pool; it ends when all that was written is on the medium."""
    return single_command("zpool", "sync", node(name), effect=Effect.WRITES)


def clear_pool(name: str) -> Pipeline:
    """Return the command to clear the pool's errors after the mapped device leads to the disk again."""
    return single_command("zpool", "clear", node(name), effect=Effect.WRITES)


def pool_health(name: str) -> Pipeline:
    """Return the command to read the pool's guid and health; an exit other than 0: it is not imported."""
    return single_command("zpool", "list", "-Hp", "-o", "guid,health", node(name), effect=Effect.READS)


def guid_of_pool(pool: str) -> Pipeline:
    """Return the command to read the guid of a pool of this machine, by its own name; an exit other than 0: it is not imported."""
    return single_command("zpool", "get", "-Hp", "-o", "value", "guid", pool, effect=Effect.READS)


def pool_is_read_only(name: str) -> Pipeline:
    """Return the command to read the pool's readonly property (on or off); an exit other than 0: not imported."""
    return single_command("zpool", "get", "-Hp", "-o", "value", "readonly", node(name), effect=Effect.READS)


def vdev_pipeline(name: str) -> Pipeline:
    """Return the command to list the pool's devices by their guids."""
    return single_command("zpool", "status", "-g", node(name), effect=Effect.READS)


def label_pipeline(device: str) -> Pipeline:
    """Return the command to read the label of a device that is not imported under this name."""
    return single_command("zdb", "-l", device, effect=Effect.READS)


def make_dataset(dataset: str) -> Pipeline:
    """Return the command to create a dataset. -p: parents too, an existing one is no error. Nothing is mounted."""
    return single_command(
        "zfs", "create", "-p", "-o", "canmount=off", "-o", "mountpoint=none", dataset, effect=Effect.WRITES
    )


def flush(device: str) -> Pipeline:
    """Return the command to write out the kernel's buffers of the device."""
    return single_command("blockdev", "--flushbufs", device, effect=Effect.WRITES)


def sectors_pipeline(device: str) -> Pipeline:
    """Return the command to read the device's size. Units: sectors of 512 bytes."""
    return single_command("blockdev", "--getsz", device, effect=Effect.READS)


def in_flight(disk: str) -> Pipeline:
    """Return the command to read the number of requests in flight: reads and writes."""
    return single_command("cat", f"/sys/block/{disk}/inflight", effect=Effect.READS)


def switch_off(disk: str) -> Pipeline:
    """Return the command to switch a disk off: the kernel flushes its cache, stops it if possible, and releases it."""
    one = Command(argv=("printf", "1"), effect=Effect.READS)
    write = Command(argv=("dd", f"of=/sys/block/{disk}/device/delete", "status=none"), effect=Effect.WRITES)
    return Pipeline(stages=(one, write))
