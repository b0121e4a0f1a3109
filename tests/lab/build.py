"""Builds an image from Debian packages: the root disk, the kernel, the guest's Python for use on the host."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.lab import kernel
from tests.lab.common import LabError
from tests.lab.recipe import DISK_SIZE, FLAVOURS, GUEST, KERNEL, TOOLS, sources
from tests.lab.requirements import runtime_requirements, unpack

Tell = Callable[[str], None]

_OPTIONS = (
    "--variant=apt",
    "--skip=check/qemu",
    '--aptopt=Acquire::Languages "none"',
    '--aptopt=APT::Install-Recommends "false"',
    "--dpkgopt=force-unsafe-io",
    *(f"--dpkgopt=path-exclude=/usr/share/{part}/*" for part in ("man", "doc", "locale")),
    "--dpkgopt=path-exclude=/usr/lib/firmware/*",
    "--dpkgopt=path-exclude=/lib/firmware/*",
)
# Enough of the guest's Python to compile the working tree on the host, where nothing is emulated.
# A build ends with whoever started it, compilers and mounts included: a namespace of its own takes them along. Its first
# process is a shell, because some package's script sends TERM to process 1.
_BOUND: tuple[str, ...] = ("setpriv", "--pdeathsig", "KILL")
if os.geteuid() == 0:
    _BOUND += (
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "sh",
        "-c",
        '"$@"; exit $?',
        "sh",
    )
_LIBRARIES = "lib/x86_64-linux-gnu/"
_PYTHON = (
    "bin/python3.*",
    "lib/python3.*",
    *(_LIBRARIES + name for name in ("ld-linux-*", "libc.so*", "libm.so*", "libz.so*", "libexpat.so*")),
)


def build_image(folder: Path, flavour: str, notify: Tell) -> None:
    """Fills an empty folder with an image. Raises LabError with the last lines of what went wrong."""
    begun = time.monotonic()
    given = folder / "lab-in"
    _gather(given, flavour)
    notify(
        f"{flavour}: installing Debian packages and building OpenZFS (some minutes; the log is {folder / 'build.log'})"
    )
    _bootstrap(folder, flavour, given)
    notify(f"{flavour}: packages after {time.monotonic() - begun:.0f} s; making the disk")
    _make_disk(folder)
    took = round(time.monotonic() - begun)
    (folder / "image.json").write_text(json.dumps({"flavour": flavour, "took_s": took}))
    notify(f"{flavour}: image built in {took} s")


def _gather(given: Path, flavour: str) -> None:
    """What the host gives: the guest's files, keys, and what poolferry needs at run time."""
    shutil.copytree(GUEST, given, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("id_ed25519", "ssh_host_ed25519_key"):
        _run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", given / name])
    unpack(runtime_requirements(), given / "site-packages", python=FLAVOURS[flavour].python)
    _run(["chmod", "-R", "a+rX", given])
    for above in (given.parent, given):  # mmdebstrap's other self, when it is not root, reads them
        above.chmod(0o755)


def _bootstrap(folder: Path, flavour: str, given: Path) -> None:
    argv = [
        *_BOUND, "mmdebstrap", *_OPTIONS, "--include=" + ",".join((*KERNEL, *TOOLS)),
        f"--customize-hook=copy-in {given} /", '--customize-hook=chroot "$1" sh /lab-in/setup.sh',
        flavour, folder / "root.tar", *sources(flavour),
    ]  # fmt: skip
    log = folder / "build.log"
    with log.open("wb") as out:
        words = [str(word) for word in argv]
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=_environment(folder))
    if done.returncode:
        raise LabError(f"mmdebstrap ended with {done.returncode}:\n" + log.read_text(errors="replace")[-3000:])


def _environment(folder: Path) -> dict[str, str]:
    """What root builds lies in the folder, and goes with it; another user's mapped self could not come in there."""
    return {**os.environ, "TMPDIR": str(folder)} if os.geteuid() == 0 else dict(os.environ)


def _make_disk(folder: Path) -> None:
    """The root disk and the kernel out of root.tar; as root, or as root of a user namespace."""
    root, tar = folder / "root", folder / "root.tar"
    above = [] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--map-auto"]
    root.mkdir()
    try:
        _run([*above, "tar", "-xf", tar, "-C", root, "--numeric-owner", "--exclude=./dev/*"])  # /dev is a devtmpfs
        (folder / "initrd").write_bytes(kernel.initramfs(root))
        (folder / "vmlinux").write_bytes(kernel.elf_kernel(next((root / "boot").glob("vmlinuz-*")).read_bytes()))
        _keep_python(root, folder / "python")
        # With a journal: power cuts are part of the work.
        features = "^metadata_csum,^64bit"
        disk = folder / "root.raw"
        _run([*above, "mke2fs", "-q", "-t", "ext4", "-E", "lazy_itable_init=1,nodiscard", "-O", features, "-m", "0",
              "-d", root, disk, DISK_SIZE])  # fmt: skip
    finally:
        _run([*above, "rm", "-rf", root])
    tar.unlink()
    shutil.rmtree(folder / "lab-in")
    backing = ("-b", "root.raw", "-F", "raw")
    _run(["qemu-img", "create", "-q", "-f", "qcow2", *backing, "empty.qcow2"], folder=folder)


def _keep_python(root: Path, kept: Path) -> None:
    """Enough of the guest's Python to compile the working tree on the host, where nothing is emulated."""
    for path in (found for pattern in _PYTHON for found in (root / "usr").glob(pattern)):
        place = kept / path.relative_to(root)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, place, symlinks=True)
        else:
            shutil.copy2(path, place, follow_symlinks=False)


def _run(argv: Sequence[str | Path], *, folder: Path | None = None) -> None:
    words = [str(word) for word in argv]
    done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise LabError(f"{' '.join(words)} ended with {done.returncode}:\n{done.stderr[-3000:]}")
