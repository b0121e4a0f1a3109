"""A gate that only lets points be added to a folder of the house, and the requests of whoever holds its key."""

import os
import re
import shlex
import socket
import struct
import subprocess
import sys
from pathlib import Path

from tests.processes import family
from tests.whole.house import House, kill
from tests.whole.large_copy import AT_ONCE
from tests.whole.sshd import Sshd


def gate(house: House, sshd: Sshd, *words: str, right: str = "adds", folder: Path | None = None) -> Path:
    """Let the client's key add points to a folder, or only read it, and do nothing else with it; return the folder."""
    folder = folder or house.folder / "far"
    key, keys = (sshd.folder / "user_key.pub").read_text(), sshd.folder / "authorized_keys"
    keys.unlink()
    done = house.call("setup", "gate", "laptop", f"--{right}", str(folder), *words, "--key", key, "--into", str(keys))
    assert done.code == 0, done
    assert right == "reads" or folder.stat().st_mode & 0o777 == 0o700
    return folder


def first_point(house: House, sshd: Sshd) -> Path:
    """Make a gate and a first point behind it; return the gate's folder."""
    house.write("file", "content")
    house.write("deep/other", "more")
    house.target = gate(house, sshd)
    house.job(target=sshd.url(house.target), pipe=sshd.pipe, retry=AT_ONCE)
    assert (ended := house.run()).outcome == "done", ended
    return house.target


def other_program(sshd: Sshd, text: str) -> None:
    """Let another program answer for the gate, with the words of the key's line."""
    keys, program = sshd.folder / "authorized_keys", sshd.folder / "other-version"
    _, _, words = keys.read_text().partition(" gate ")
    program.write_text(text)
    program.chmod(0o755)
    write_line(sshd, f'command="{program} gate {words}')


def speak(sshd: Sshd, before: str) -> None:
    """Let the gate be that of another version, by what is run before it."""
    program = f"import sys\n{before}\nfrom orchestrator.__main__ import program\nprogram()\n"
    other_program(sshd, f"#!{sys.executable}\n{program}")


def write_line(sshd: Sshd, line: str) -> None:
    """Let this line be the key's, and nobody answer any more who was left behind by a request that came by the line before."""
    if pid := left_process(sshd):
        kill(pid)
    (sshd.folder / "authorized_keys").write_text(line)


def left_process(sshd: Sshd) -> int:
    """The process that an earlier request of the gate left behind; 0: there is none."""
    line = (sshd.folder / "authorized_keys").read_text()
    (state,) = re.findall(r"--state ([^ \"]+)", line)
    (name,) = re.findall(r" gate ([^ \"]+)", line)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        try:
            folder = os.open(state, os.O_PATH)
        except FileNotFoundError:
            return 0
        try:
            server.connect(f"/proc/self/fd/{folder}/gate-{name}.session")
            return int(struct.unpack("3i", server.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])
        except (FileNotFoundError, ConnectionRefusedError):
            return 0
        finally:
            os.close(folder)


def receivers(sshd: Sshd) -> list[int]:
    """The rsyncs that answer requests."""
    below = [pid for pid in (sshd.pid, left_process(sshd)) if pid]
    return [pid for one in below for pid, name in family(one) if name == "rsync"]


def ask(sshd: Sshd, *words: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    """Return the answer to a request of a hostile client."""
    argv = ["ssh", "-F", str(sshd.folder / "client"), "-p", str(sshd.port), f"{sshd.user}@127.0.0.1", shlex.join(words)]
    return subprocess.run(argv, input=stdin, capture_output=True, timeout=60, check=False)


def script(sshd: Sshd, *words: str, stdin: bytes = b"") -> "subprocess.CompletedProcess[bytes]":
    return ask(sshd, "sh", "-c", "cat /etc/shadow", *words, stdin=stdin)


def send(
    sshd: Sshd, source: Path, target: str | Path, *options: str, pulls: bool = False
) -> "subprocess.CompletedProcess[bytes]":
    """Let a hostile client's rsync copy to a path there, or from one."""
    shell = shlex.join(("ssh", "-F", str(sshd.folder / "client"), "-p", str(sshd.port)))
    there = f"{sshd.user}@127.0.0.1:"
    ends = (f"{there}{source}/", f"{target}/") if pulls else (f"{source}/", f"{there}{target}/")
    return subprocess.run(["rsync", *options, "-e", shell, *ends], capture_output=True, timeout=60, check=False)
