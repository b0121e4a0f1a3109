"""This very machine in the place of a virtual one, where it has OpenZFS of its own: pools on files, the same tests.

It offers what can be done without a second machine: commands, the working tree's program with a configuration and a state
of its own, files, pools. There is no USB, no wire, no power to cut: tests that need those are marked `virtual` and skipped.
A pool keeps the name it was asked for: where the host has one of that name, zpool refuses and the test fails at once.
Honestly: the project's own runs happen in virtual machines. In one of them test_lab.py tries this module; how the whole
set of tests does on a host with a configuration of its own is for `make test-zfs` there to say.
"""

import contextlib
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.lab.common import CHECKOUT, Ended, LabError, Machine, Running

_SIZES = {"M": 1 << 20, "G": 1 << 30}


class LocalCommand(Running):
    """A command under way on this machine."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._said: dict[str, bytes] = {}
        self._readers = [
            threading.Thread(target=self._read, args=(name,), daemon=True) for name in ("stdout", "stderr")
        ]
        for reader in self._readers:
            reader.start()

    def feed(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(data)

    def end_of_input(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def kill(self, number: int = 15) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def poll(self) -> int | None:
        return self._process.poll()

    def wait(self, seconds: float = 120) -> Ended:
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise LabError(f"still running after {seconds} s") from error
        for reader in self._readers:
            reader.join(seconds)
        return Ended(code=code, out=self._said.get("stdout", b""), errors=self._said.get("stderr", b""))

    def _read(self, name: str) -> None:
        with getattr(self._process, name) as stream:
            self._said[name] = stream.read()


class NativeMachine(Machine):
    """The host itself. Its pools lie on sparse files in a folder that `close` removes."""

    name = "host"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="poolferry-native-", dir="/var/tmp"))
        self.pools: list[str] = []
        self.begun: list[LocalCommand] = []
        self.config = str(self.folder / "etc")
        self.state = str(self.folder / "state")
        program = self.folder / "bin" / "poolferry"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nPYTHONPATH={CHECKOUT} exec {sys.executable} -P -m orchestrator "$@"\n')
        program.chmod(0o755)

    def popen(
        self,
        command: str | Sequence[str],
        *,
        user: str = "",
        environment: Mapping[str, str] | None = None,
        stdin: bool = False,
    ) -> LocalCommand:
        own = {
            "HOME": pwd.getpwnam(user or "root").pw_dir,
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}:/usr/sbin:/sbin",
            "POOLFERRY_CONFIG": self.config,
            "POOLFERRY_STATE": self.state,
        }
        process = subprocess.Popen(
            ["/bin/sh", "-c", command] if isinstance(command, str) else list(command),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **own, **(environment or {})}, cwd=self.folder, start_new_session=True, bufsize=0,
            user=user or None,
        )  # fmt: skip
        self.begun.append(LocalCommand(process))
        return self.begun[-1]

    def pool(
        self, name: str, size: str = "1G", *, disk: bool = False, usb: bool = False, options: Sequence[str] = ()
    ) -> str:
        file = self.folder / f"{name}.img"
        with file.open("wb") as sparse:
            sparse.truncate(int(size[:-1]) * _SIZES[size[-1]])
        self.sh(["zpool", "create", "-o", "cachefile=none", *options, name, str(file)])
        self.pools.append(name)
        return name

    def close(self) -> None:
        for command in self.begun:
            if command.poll() is None:
                command.kill(9)
                command.wait(30)
        for name in self.pools:
            self.sh(["zpool", "destroy", "-f", name], check=False)
        self.pools.clear()
        shutil.rmtree(self.folder, ignore_errors=True)


def no_native_zfs() -> str:
    """Return why the tests cannot run on this machine itself; nothing when they can."""
    if os.geteuid() != 0:
        return "pools need root"
    if not shutil.which("zpool"):
        return "there is no OpenZFS here (zpool is missing)"
    if subprocess.run(["zpool", "list"], capture_output=True).returncode:
        return "the zfs module is not loaded"
    return ""
