"""Mounts of test runs: each has its own, and nothing that killed ones left behind in pytest's temporary folders stays."""

import ctypes
import getpass
import os
import re
import subprocess
import tempfile
from pathlib import Path

from tests.processes import is_there

_NEW_MOUNTS = 0x20000  # linux/sched.h
_RECURSIVE, _SLAVE, _SHARED = 1 << 14, 1 << 19, 1 << 20  # linux/mount.h
_ESCAPED = re.compile(r"\\([0-7]{3})")


def folder_of_runs() -> Path:
    """Return the folder below which pytest makes a folder for each of this user's test runs, as pytest itself finds it."""
    top = os.environ.get("PYTEST_DEBUG_TEMPROOT") or tempfile.gettempdir()
    return Path(top).resolve() / f"pytest-of-{getpass.getuser()}"


def take_own_mounts() -> bool:
    """Give this process, and what it starts, mounts of its own that its own children share, as systemd shares them; return whether it has them.

    Why: a program of another test that has mounts of its own would keep a disk of ours in use, where "/" is shared with nobody.
    """
    native = os.environ.get("POOLFERRY_LAB_NATIVE")  # services of the machine are to see our mounts there
    if os.geteuid() != 0 or native:
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS):
        return False
    return not any(libc.mount(b"none", b"/", None, _RECURSIVE | kind, None) for kind in (_SLAVE, _SHARED))


def let_go_of_mounts(root: Path) -> None:
    """Unmount what lies below the folders of test runs that are over, the last mount first.

    Why before pytest removes these folders: it removes what is mounted there, too, which may be anybody's, and a mount point that it
    cannot remove fails each later run.
    """
    if os.geteuid() != 0:
        return
    for place in reversed(mounts()):
        if place.is_relative_to(root) and place != root and not _goes_on(root / place.relative_to(root).parts[0]):
            subprocess.run(["umount", "-l", "--", str(place)], check=False)


def mounts() -> list[Path]:
    """Return where something is mounted, the first mount first."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [Path(_ESCAPED.sub(lambda octal: chr(int(octal[1], 8)), line.split(" ")[1])) for line in lines]


def _goes_on(run: Path) -> bool:
    """Return whether a test run's own process is there; pytest writes its number into the lock of the run's folder."""
    try:
        return is_there(int((run / ".lock").read_text()))
    except (OSError, ValueError):
        return False
