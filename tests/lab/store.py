"""Keeps images and saved states, makes those that are missing, and removes what nobody uses any more."""

import contextlib
import fcntl
import hashlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from tests.lab.build import Tell, build_image
from tests.lab.emulator import NUMBERS, qemu_version
from tests.lab.recipe import HERE, cache_folder, image_key
from tests.lab.virtual import VirtualMachine
from tests.lab.warm import ASKING, PORT
from tests.lab.watched import WatchedFolder

# Another checkout with another recipe may live on the same folder.
_KEPT_UNUSED_S = 24 * 3600
# What the first commands of a test would otherwise load under emulation; and of ssh's ways the ones that cost an emulator least.
_WARM = (
    "printf 'KexAlgorithms curve25519-sha256\\nCiphers aes128-gcm@openssh.com\\n' > /etc/ssh/ssh_config.d/lab.conf; "
    "modprobe -a usb-storage uas sd_mod xhci_pci 9pnet_virtio 9p dm_mod loop 2>/dev/null; udevadm settle; "
    "/opt/poolferry/bin/python -c 'import argparse, blake3, click, json, logging, rich.console, sqlite3, subprocess, tomllib, xxhash'; "
    "rsync --version > /dev/null; mbuffer --version > /dev/null 2>&1; ssh -V 2> /dev/null; zpool list > /dev/null; zfs list > /dev/null; "
    "dmsetup version > /dev/null; "
    "setsid -f /opt/poolferry/bin/python -P /usr/local/lib/lab/warm.py </dev/null >/run/warm.log 2>&1; "
    f"until ss -Hltn | grep -q ':{PORT} '; do sleep 0.1; done; sync; fstrim /"
)


class Store:
    """The folder of images; `notify` hears what takes long."""

    def __init__(self, *, folder: Path | None = None, notify: Tell = print) -> None:
        self.folder = folder or cache_folder()
        self.notify = notify

    def image_folder(self, flavour: str) -> Path:
        """Return where the image of this checkout's recipe lies once it is built."""
        return self.folder / f"{flavour}-{image_key(flavour)}"

    def template_folder(self, flavour: str, name: str) -> Path:
        """Return where the machine's saved state lies: it belongs to one image, one QEMU and one command line."""
        files = b"".join((HERE / name).read_bytes() for name in ("emulator.py", "warm.py"))
        made_by = hashlib.sha256(qemu_version().encode() + files + _WARM.encode())
        return self.image_folder(flavour) / f"saved-{made_by.hexdigest()[:16]}-{name}"

    def ready(self, flavour: str) -> bool:
        """Return whether nothing has to be made."""
        return all(self.template_folder(flavour, name).exists() for name in NUMBERS)

    def image(self, flavour: str) -> Path:
        """The image, built if need be. Raises LabError."""
        place = self.made(self.image_folder(flavour), lambda aside: build_image(aside, flavour, self.notify))
        self._tidy(self.folder, f"{flavour}-*")
        return place

    def template(self, flavour: str, name: str) -> Path:
        """The saved state of a machine, made if need be. Raises LabError."""
        image = self.image(flavour)

        def save(aside: Path) -> None:
            begun = time.monotonic()
            _save(image, name, aside)
            self.notify(f"{flavour}: state of {name} saved in {time.monotonic() - begun:.0f} s")

        place = self.made(self.template_folder(flavour, name), save)
        self._tidy(image, "saved-*")
        return place

    def made(self, place: Path, make: Callable[[Path], None]) -> Path:
        """A folder that is whole as soon as it is there: made beside it first, once even when several ask for it."""
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.with_name(f".lock-{place.name}").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not place.exists():
                    aside = place.with_name(f".making-{place.name}")
                    shutil.rmtree(aside, ignore_errors=True)  # of somebody who was stopped
                    aside.mkdir()
                    make(aside)
                    aside.rename(place)
        (place / "used").touch()
        return place

    def clean(self) -> None:
        """Removes everything."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _tidy(self, folder: Path, pattern: str) -> None:
        for path in (*folder.glob(pattern), *folder.glob(f".making-{pattern}")):
            with contextlib.suppress(FileNotFoundError):  # another process tidies too
                stamp = path / "used"
                used = (stamp if stamp.exists() else path).stat().st_mtime
                if time.time() - used >= _KEPT_UNUSED_S:
                    shutil.rmtree(path, ignore_errors=True)


# On a busy host a unit may run out of its time while the machine boots: it would lie failed in each machine that is restored.
_BEGIN_AGAIN = "failed=$(systemctl list-units --failed --plain --no-legend | cut -d ' ' -f 1); [ -z \"$failed\" ] || systemctl restart $failed"


def _save(image: Path, name: str, aside: Path) -> None:
    watched = WatchedFolder()
    machine = VirtualMachine(name, image=image, run=watched.path / "0" / name)
    try:
        machine.boot(memory=aside / "ram")
        machine.settled()
        machine.sh(_BEGIN_AGAIN, seconds=900)
        machine.write("/usr/local/lib/lab/warm.py", (HERE / "warm.py").read_bytes())
        machine.write("/usr/local/lib/lab/poolferry", ASKING, mode=0o755)
        machine.sh(_WARM, check=False, seconds=900)
        machine.save(aside)
    finally:
        machine.close()
        watched.close()
