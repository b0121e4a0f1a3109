"""The commands that erase a device and make it a disk of a set; only `disks enroll` uses them."""

import re
from collections.abc import Sequence

from orchestrator.disks.commands import node
from orchestrator.domain.plan import Effect, Pipeline, single_command
from orchestrator.domain.rotation import MOUNT_ROOT

_LABEL = {"ext4": 16, "xfs": 12, "btrfs": 255}  # the longest label


def erase_device(device: str, parts: Sequence[str]) -> tuple[Pipeline, ...]:
    """Return the commands to erase all signatures, partitions first: otherwise the old content would be found later."""
    names = (*(f"/dev/{part}" for part in parts), device)
    return tuple(single_command("wipefs", "-a", name, effect=Effect.DESTROYS) for name in names)


def make_filesystem(device: str, content: str, name: str, uuid: str) -> Pipeline:
    """Return the command to make a filesystem on the whole device, with a unique uuid."""
    label = name[: _LABEL[content]]
    argv: tuple[str, ...]
    match content:
        case "xfs":
            argv = ("mkfs.xfs", "-q", "-f", "-m", f"uuid={uuid}", "-L", label, device)
        case "btrfs":
            argv = ("mkfs.btrfs", "-q", "-f", "-U", uuid, "-L", label, device)
        case _:
            # -m 0: no space is reserved for root, the only user that writes here; lazy tables would be written later.
            argv = (
                "mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-U", uuid, "-L", label, device,
            )  # fmt: skip
    return single_command(*argv, effect=Effect.DESTROYS)


def make_luks(device: str, uuid: str, key_file: str) -> Pipeline:
    """Return the command to make a LUKS2 container that opens with the file."""
    argv = (
        "cryptsetup",
        "luksFormat",
        "--type",
        "luks2",
        "--batch-mode",
        "--uuid",
        uuid,
        "--key-file",
        key_file,
        device,
    )
    return single_command(*argv, effect=Effect.DESTROYS)


def make_pool(name: str, key_file: str | None = None, key: bytes = b"") -> Pipeline:
    """Return the command to make a pool on the mapped device.

    failmode=continue: a pulled-out disk makes writes fail, not block. mountpoint=none, canmount=off: its datasets never hide a
    directory in use. `key_file`: encrypts all data not sent raw; `key` is its content.
    """
    locked = () if key_file is None else (
        "-O", "encryption=on", "-O", f"keyformat={key_format(key)}", "-O", f"keylocation=file://{key_file}",
    )  # fmt: skip
    return single_command(
        "zpool", "create", "-f", "-o", "ashift=12", "-o", "failmode=continue", "-o", "cachefile=none", "-O", "compression=lz4",
        "-O", "atime=off", "-O", "canmount=off", "-O", "mountpoint=none", *locked, "-R", f"{MOUNT_ROOT}/{name}", node(name),
        f"/dev/mapper/{node(name)}", effect=Effect.DESTROYS,
    )  # fmt: skip


def key_format(key: bytes) -> str:
    """Return a key file's format for ZFS. Source: zfsprops(7): 32 bytes are a raw key, 64 hex digits a hex one."""
    if len(key) == 32:
        return "raw"
    return "hex" if re.fullmatch(rb"[0-9a-fA-F]{64}\n?", key) else "passphrase"


def pool_guid(name: str) -> Pipeline:
    """Return the command to read the guid of a pool that was made or adopted."""
    return single_command("zpool", "get", "-Hp", "-o", "value", "guid", node(name), effect=Effect.READS)


def set_patient_failmode(name: str) -> Pipeline:
    """Return the command to set failmode=continue on an adopted pool, as `make_pool` does."""
    return single_command("zpool", "set", "failmode=continue", node(name), effect=Effect.WRITES)


def settle() -> Pipeline:
    """Return the command to wait until udev knows the new devices."""
    return single_command("udevadm", "settle", "--timeout=20", effect=Effect.READS)
