"""Mounts that killed test runs left behind in pytest's temporary folders."""

import getpass
import os
import re
import subprocess
import tempfile
from pathlib import Path

_ESCAPED = re.compile(r"\\([0-7]{3})")


def folder_of_runs() -> Path:
    """Return the folder below which pytest makes a folder for each of this user's test runs, as pytest itself finds it."""
    top = os.environ.get("PYTEST_DEBUG_TEMPROOT") or tempfile.gettempdir()
    return Path(top).resolve() / f"pytest-of-{getpass.getuser()}"


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
        return Path(f"/proc/{int((run / '.lock').read_text())}").exists()
    except (OSError, ValueError):
        return False
