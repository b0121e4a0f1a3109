"""Packages built of the checkout, and a story that is told with one in a new minimal Debian.

mmdebstrap makes the chroot, mounts what it needs in a mount namespace of its own, and keeps nothing.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.lab.recipe import sources

CHECKOUT = Path(__file__).resolve().parents[2]
DEB = CHECKOUT / "systemd/debian/build_package.py"
ZIPAPP = CHECKOUT / "systemd/zipapp/build_zipapp.py"


def missing() -> str:
    """Return why nothing can be installed in a chroot here; empty: it can."""
    if os.geteuid() != 0:
        return "only root makes a chroot"
    programs = [name for name in ("mmdebstrap", "dpkg-deb") if not shutil.which(name)]
    return f"not installed: {', '.join(programs)}" if programs else ""


def build(builder: Path, into: Path, umask: int = 0o022) -> Path:
    """Return the file that a builder makes in that folder."""
    told = subprocess.run(
        [sys.executable, builder, into], capture_output=True, text=True, preexec_fn=lambda: (os.umask(umask), None)[1]
    )
    assert told.returncode == 0, told.stderr
    return Path(told.stdout.splitlines()[-1])


def tell_in_debian(suite: str, story: Path, built: Path, name: str, *options: str) -> None:
    """Run the story as root in the chroot, where `built` lies in /root by that name."""
    told = subprocess.run(
        [
            "mmdebstrap", "--quiet", "--variant=minbase", "--format=null", "--dpkgopt=force-unsafe-io", *options,
            f"--customize-hook=upload {built} /root/{name}", f'--customize-hook=chmod 755 "$1/root/{name}"',
            f"--customize-hook=upload {story} /root/story.sh", '--customize-hook=chroot "$1" sh /root/story.sh',
            suite, "/dev/null", *sources(suite),
        ],
        capture_output=True, text=True, errors="replace",
    )  # fmt: skip
    assert told.returncode == 0, told.stdout[-3000:] + told.stderr[-3000:]
