"""Methods that every machine of the lab offers a test, wherever it runs."""

import json
import posixpath
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.lab.kits import history_with_kits

CHECKOUT = Path(__file__).resolve().parents[2]
# Makes an encrypted dataset; GIVE_KEY is what `zfs load-key` wants then. Why no passphrase: to make a key of one takes seconds.
GIVE_KEY = "printf %064d 1"
ENCRYPTED = f"{GIVE_KEY} | zfs create -o encryption=on -o keyformat=hex -o keylocation=prompt"


class LabError(RuntimeError):
    """The lab, or a command in it that had to end well, did not do what was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """End of a command, with all its output."""

    code: int
    out: bytes
    errors: bytes

    @property
    def text(self) -> str:
        """Its stdout, without the spaces around it."""
        return self.out.decode(errors="surrogateescape").strip()

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines of its stdout."""
        return tuple(self.text.splitlines())

    @property
    def complaint(self) -> str:
        """Its stderr, without the spaces around it."""
        return self.errors.decode(errors="surrogateescape").strip()

    @property
    def json(self) -> Any:
        """Its stdout, read as JSON."""
        return json.loads(self.out)


class Running(ABC):
    """A command under way."""

    @abstractmethod
    def feed(self, data: bytes) -> None:
        """More for its stdin, which `popen(..., stdin=True)` opened."""

    @abstractmethod
    def end_of_input(self) -> None:
        """Closes its stdin."""

    @abstractmethod
    def kill(self, number: int = 15) -> None:
        """Signals its process group: itself and what it started."""

    @abstractmethod
    def poll(self) -> int | None:
        """Its exit status (a signal is negative), None while it runs."""

    @abstractmethod
    def wait(self, seconds: float = 120) -> Ended:
        """Wait for its end and return it. Raises LabError when it still runs after so many seconds, or when its machine went away."""

    def until(self, condition: Callable[[], Any], seconds: float, *, pause: float = 0.2) -> Any:
        """Return what the condition says once it says something true. Raises LabError, with what the command said, when it ended before."""
        late = time.monotonic() + seconds
        while True:
            ended = self.poll() is not None
            if said := condition():
                return said
            if ended or time.monotonic() > late:
                raise LabError(f"waited in vain: {self.wait(0)}")
            time.sleep(pause)


@dataclass(slots=True, kw_only=True)
class Disk:
    """A disk as a sparse file on the host. `plugged`: how the machine that holds it calls it; empty while nobody does.

    `read_only`: its switch is set; `sick`: every reading of it fails.
    """

    name: str
    path: Path
    bus: str = "scsi"
    plugged: str = field(default="", compare=False)
    read_only: bool = False
    sick: bool = False

    @property
    def device(self) -> str:
        """Its name in the machine, the same after every plugging in."""
        if self.bus == "usb":
            return f"/dev/disk/by-id/usb-QEMU_QEMU_HARDDISK_{self.name}-0:0"
        return f"/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_{self.name}"


class Machine(ABC):
    """A machine with real OpenZFS on which the working tree runs as `poolferry`."""

    name: str
    config = "/etc/poolferry"
    state = "/var/lib/poolferry"

    @abstractmethod
    def popen(
        self,
        command: str | Sequence[str],
        *,
        user: str = "",
        environment: Mapping[str, str] | None = None,
        stdin: bool = False,
    ) -> Running:
        """Begins a command: a text is for /bin/sh, words are run as they are."""

    @abstractmethod
    def pool(
        self, name: str, size: str = "1G", *, disk: bool = False, usb: bool = False, options: Sequence[str] = ()
    ) -> str:
        """Makes a pool of that name on a sparse file and returns the name; `options` are for zpool create.

        `disk`, `usb`: on a disk of its own, which takes the machine some seconds; it is in `disks` under the pool's name.
        """

    @abstractmethod
    def close(self) -> None:
        """Ends the machine and removes what was made for it; again is no mistake."""

    def sh(
        self, command: str | Sequence[str], *, check: bool = True, given: bytes | str | None = None, seconds: float = 120,
        user: str = "", environment: Mapping[str, str] | None = None,
    ) -> Ended:  # fmt: skip
        """Runs a command to its end.

        Raises: LabError when it ends badly, unless `check` is False; and when it takes longer than so many seconds.
        """
        running = self.popen(command, user=user, environment=environment, stdin=given is not None)
        if given is not None:
            running.feed(given.encode() if isinstance(given, str) else given)
            running.end_of_input()
        try:
            ended = running.wait(seconds)
        except LabError:
            running.kill(9)
            raise
        if check and ended.code:
            raise LabError(
                f"{self.name}: {command!r} ended with {ended.code}\n{ended.text[-2000:]}\n{ended.complaint[-2000:]}"
            )
        return ended

    def lies_on(self, pool: str) -> str:
        """The file or the partition below a pool that has only one."""
        (path,) = (line.split()[0] for line in self.sh(["zpool", "list", "-vHPo", "name", pool]).lines if "/" in line)
        return path

    def poolferry(self, *arguments: str, check: bool = False, seconds: float = 120, user: str = "") -> Ended:
        """Runs the working tree's program to its end; `.json` of the answer is what --json printed."""
        return self.sh(["poolferry", *arguments], check=check, seconds=seconds, user=user)

    def write(self, path: str, content: str | bytes, *, mode: int = 0o644) -> None:
        """A file with that content, with the folders above it."""
        place, above = shlex.quote(path), shlex.quote(posixpath.dirname(path) or ".")
        script = f"mkdir -p {above} && cat > {place} && chmod {mode:o} {place}"
        self.sh(script, given=content)

    def read(self, path: str) -> bytes:
        """Return what a file holds."""
        return self.sh(["cat", path]).out

    def job(self, name: str, text: str, *, targets: str = "") -> None:
        """A job file in the machine's configuration, and targets.toml with it when its text is told."""
        self.write(f"{self.config}/jobs/{name}.toml", text)
        if targets:
            self.write(f"{self.config}/targets.toml", targets)

    def kitted(self, *names: str, at: Sequence[str] = ("vault",)) -> None:
        """A new history in which these jobs have a recovery kit of today at these places or disks, so that no run makes one."""
        self.write(f"{self.state}/history.sqlite", history_with_kits(names, tuple(at)), mode=0o600)
