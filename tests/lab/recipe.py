"""Parts of an image; its key changes when any of them does."""

import ast
import contextlib
import functools
import hashlib
import os
import re
import threading
from dataclasses import dataclass
from pathlib import Path

from tests.lab.requirements import runtime_requirements

HERE = Path(__file__).parent
GUEST = HERE / "guest"
DISK_SIZE = "4G"

# The regular kernel: Debian's cloud kernel has no USB storage.
KERNEL = ("linux-image-amd64", "linux-headers-amd64", "zfs-dkms", "busybox-static")
TOOLS = tuple(
    "systemd-sysv udev kmod passwd sudo openssh-server openssh-client rsync mbuffer pv lzop zstd xz-utils python3 "
    "python3-venv iproute2 iputils-ping e2fsprogs dosfstools exfatprogs sqlite3 zfsutils-linux sanoid procps util-linux "
    "fdisk dmsetup cryptsetup-bin xfsprogs btrfs-progs usbutils strace acl attr dbus libpam-systemd".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavour:
    """One Debian: the name of its release, its Python, and what else differs."""

    name: str
    python: str
    zfs: str


FLAVOURS = {
    "trixie": Flavour(name="trixie", python="3.13", zfs="2.3"),
    "bookworm": Flavour(name="bookworm", python="3.11", zfs="2.1"),
}


_PARSER = threading.Lock()  # of one thread at a time: Python 3.11 counts the depth of all threads' trees together


def _parsed(path: Path) -> ast.Module:
    """The tree of a module's text; parsed once more where a thread that we do not know of parsed something meanwhile, as an import does."""
    with _PARSER:
        for _ in range(9):
            with contextlib.suppress(SystemError):
                return ast.parse(path.read_text())
        return ast.parse(path.read_text())


@functools.cache
def image_key(flavour: str) -> str:
    """The key of the image that this checkout would build. What only comments on the building does not count."""
    told = hashlib.sha256(repr((FLAVOURS[flavour], KERNEL, TOOLS, DISK_SIZE, runtime_requirements())).encode())
    for path in sorted(path for path in GUEST.iterdir() if path.is_file()):
        told.update(path.name.encode() + path.read_bytes())
    for name in ("build.py", "kernel.py"):
        told.update(ast.dump(_parsed(HERE / name)).encode())
    return told.hexdigest()[:16]


def sources(flavour: str) -> tuple[str, ...]:
    """The lines of sources.list: from where this machine takes its own Debian packages. Raises: LookupError."""
    main, security = _mirrors()
    parts = "main contrib"
    return (
        f"deb {main} {flavour} {parts}",
        f"deb {main} {flavour}-updates {parts}",
        f"deb {security} {flavour}-security {parts}",
    )


def _mirrors() -> tuple[str, str]:
    lists = [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]
    text = "\n".join(path.read_text() for path in lists if path.is_file() and path.suffix in (".list", ".sources"))
    known = re.findall(r"(?m)^(?:URIs:|deb(?: \[[^]]*\])?)\s+(\S+)", text)
    main = next((url for url in known if url.rstrip("/").endswith("/debian")), "")
    security = next((url for url in known if url.rstrip("/").endswith("debian-security")), "")
    if not main or not security:
        raise LookupError("this machine's apt sources name no Debian mirror with its security updates")
    return main, security


def cache_folder() -> Path:
    """Return where images and templates are kept: $POOLFERRY_LAB, else ~/.cache/poolferry/lab."""
    return Path(os.environ.get("POOLFERRY_LAB") or Path.home() / ".cache/poolferry/lab").absolute()
