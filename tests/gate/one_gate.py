"""A gate of datasets that is asked as sshd asks it, and the words of which hostile requests for it are made."""

import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from orchestrator.process.handover import HAND_OVER, PERL, program_identity

ROOT = "vault/in/laptop"
CHECKOUT = Path(__file__).parents[2]
WORDS = (
    "-F", "destroy", "rollback", "rename", "set", "..", "vault", "tank/secret", f"{ROOT}/../x", "-o", "mountpoint=/etc", "-", "\n", "", "-A",
    "receive", f"{ROOT}/photos", f"{ROOT}@a", "*", "%", "\udcff", "sudo",
)  # fmt: skip


class OneGate:
    """A gate of a plain kind, with the requests of sshd's. `pid`: of the process that its first request left behind."""

    def __init__(self, folder: Path) -> None:
        (folder / "config/gates").mkdir(parents=True)
        self.file, self.state = folder / "config/gates/laptop.toml", folder / "state"
        self.state.mkdir()
        self.file.write_text(f'receives = "{ROOT}"\nat-most = "1T"\n')
        words = ("gate", "laptop", "--config", str(folder / "config"), "--state", str(self.state))
        self.words: tuple[str, ...] = words
        self.argv = self.made_program("poolferry", "from orchestrator.__main__ import program\nprogram()\n")
        self.by_perl = (PERL, HAND_OVER, *self.argv)

    def made_program(self, name: str, text: str) -> tuple[str, ...]:
        """Return the words that start a program of this text, as sshd starts one."""
        program = self.file.parents[2] / name
        program.write_text(f"#!{sys.executable}\n{text}")
        program.chmod(0o755)
        return (str(program), *self.words)

    def identity(self, program: str = "") -> str:
        """Return what tells the gate's program, or another one, from others."""
        argv, before = [program or self.argv[0], *self.words], sys.argv
        try:
            sys.argv = argv
            return program_identity()
        finally:
            sys.argv = before

    def ask(
        self,
        line: str,
        *,
        argv: tuple[str, ...] = (),
        stdin: bytes = b"",
        patience: float = 60,
        more: dict[str, str] | None = None,
    ) -> tuple[int, bytes, bytes]:
        given = {**self.variables(line), **(more or {})}
        done = subprocess.run(
            argv or self.argv, env=given, input=stdin, capture_output=True, timeout=patience, check=False
        )
        return done.returncode, done.stdout, done.stderr

    def begin(self, line: str, stdin: bytes, *, argv: tuple[str, ...]) -> "subprocess.Popen[bytes]":
        """Ask, and do not wait; what is said about it is thrown away."""
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            return subprocess.Popen(argv, env=self.variables(line), stdin=file, stderr=subprocess.DEVNULL)

    def variables(self, line: str) -> dict[str, str]:
        given = {"SSH_ORIGINAL_COMMAND": line, "SSH_CONNECTION": "10.0.0.9 1 10.0.0.1 22"}
        passed = {name: each for name, each in os.environ.items() if not name.startswith(("POOLFERRY_", "XDG_"))}
        return {**passed, "PYTHONPATH": str(CHECKOUT), **given}

    @property
    def door(self) -> Path:
        return self.state / "gate-laptop.session"

    @property
    def pid(self) -> int:
        """The process that listens; 0: there is none."""
        try:
            with self.connected() as server:
                return int(struct.unpack("3i", server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
        except (FileNotFoundError, ConnectionRefusedError):
            return 0

    def connected(self) -> socket.socket:
        server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folder = os.open(self.state, os.O_PATH)
        try:
            server.connect(f"/proc/self/fd/{folder}/{self.door.name}")
        except BaseException:
            server.close()
            raise
        finally:
            os.close(folder)
        return server

    def end(self) -> None:
        if pid := self.pid:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
