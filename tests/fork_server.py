"""Commands of ours without a new start of Python for each: a server has imported them, and every command is a fork of it.

A command is still a process of its own with its own arguments, folder, environment, streams, signals and end. What tests of the
start itself need, such as another interpreter or locale, is started anew, see `may_fork`.
"""

import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import orchestrator
from orchestrator.__main__ import program

ROOT = Path(__file__).resolve().parents[1]
# These are taken in when Python or its libraries start; with others than the server's own, a command is started anew.
_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "COVERAGE", "LD_", "MALLOC_", "OPENSSL", "SSL_")
_LENGTH = struct.Struct("!I")
_STATUS = struct.Struct("!i")


def _start_variables(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_AT_START)}


def server_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a server for tests in this one."""
    return {
        **{name: value for name, value in environment.items() if not name.startswith("PYTHON")},
        "PYTHONPATH": str(ROOT),
    }


class ForkServer:
    """A server, and its client. It ends with the process that made it."""

    def __init__(self) -> None:
        self._environment = server_environment(os.environ)
        self._folder = tempfile.TemporaryDirectory(prefix="poolferry-fork-")
        self._address = os.path.join(self._folder.name, "socket")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(self._address)
            listening.listen(64)
            self._server = subprocess.Popen(
                [sys.executable, "-m", "tests.fork_server", str(listening.fileno())],
                env=self._environment, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, pass_fds=[listening.fileno()],
            )  # fmt: skip

    def may_fork(self, environment: Mapping[str, str]) -> bool:
        """Tell whether a command with this environment can be a fork of this server."""
        return _start_variables(environment) == _start_variables(self._environment)

    def run(
        self, arguments: Sequence[str], *, environment: Mapping[str, str], folder: str, timeout: float
    ) -> subprocess.CompletedProcess[bytes]:
        """A command to its end. Raises: subprocess.TimeoutExpired; then it is killed."""
        asked = json.dumps({"arguments": list(arguments), "environment": dict(environment), "folder": folder}).encode()
        out, err = os.pipe(), os.pipe()
        with socket.socket(socket.AF_UNIX) as call, open(os.devnull, "rb") as nothing:
            try:
                call.connect(self._address)
                socket.send_fds(call, [_LENGTH.pack(len(asked))], [nothing.fileno(), out[1], err[1]])
                call.sendall(asked)
            finally:
                os.close(out[1])
                os.close(err[1])
            said = _read_both(out[0], err[0], time.monotonic() + timeout)
            call.settimeout(timeout)
            status = call.recv(_STATUS.size) if said is not None else b""
        if said is None or not status:
            raise subprocess.TimeoutExpired(list(arguments), timeout)
        return subprocess.CompletedProcess(list(arguments), _STATUS.unpack(status)[0], *said)

    def end(self) -> None:
        """End the server."""
        with contextlib.suppress(OSError):
            self._server.communicate(timeout=20)
        self._folder.cleanup()


@functools.cache
def _server(_: int) -> ForkServer:
    """The server of this process, made at its first command."""
    made = ForkServer()
    atexit.register(made.end)
    return made


def run_command(
    arguments: Sequence[str], *, environment: Mapping[str, str], folder: str, timeout: float
) -> subprocess.CompletedProcess[bytes]:
    """A command of ours to its end, as a fork where that is the same. Raises: subprocess.TimeoutExpired."""
    server = _server(os.getpid())
    if server.may_fork(environment):
        return server.run(arguments, environment=environment, folder=folder, timeout=timeout)
    return subprocess.run(
        [sys.executable, "-m", "orchestrator", *arguments],
        env=environment, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout,
    )  # fmt: skip


def _read_both(out: int, err: int, until: float) -> tuple[bytes, bytes] | None:
    """All that comes through two pipes, which are closed then; None: they were not closed in time at the other end."""
    said = {out: bytearray(), err: bytearray()}
    with open(out, "rb", buffering=0), open(err, "rb", buffering=0), selectors.DefaultSelector() as selector:
        for each in said:
            selector.register(each, selectors.EVENT_READ)
        while selector.get_map():
            if not (ready := selector.select(max(0.0, until - time.monotonic()))):
                return None
            for key, _ in ready:
                if piece := os.read(key.fd, 65536):
                    said[key.fd] += piece
                else:
                    selector.unregister(key.fd)
    return bytes(said[out]), bytes(said[err])


def _serve(listening: socket.socket) -> None:
    """Fork for each call, and tell it how the fork ended; until our input is closed."""
    children: dict[int, tuple[int, socket.socket]] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(listening, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd == 0:
                    return
                if key.fd == listening.fileno():
                    call, _ = listening.accept()
                    child = _fork(call)
                    ends = os.pidfd_open(child)
                    children[ends] = (child, call)
                    selector.register(ends, selectors.EVENT_READ)
                    selector.register(call, selectors.EVENT_READ, child)
                elif key.data is not None:  # it waits no more
                    selector.unregister(key.fd)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(key.data, signal.SIGKILL)
                else:
                    child, call = children.pop(key.fd)
                    selector.unregister(key.fd)
                    os.close(key.fd)
                    with contextlib.suppress(KeyError):
                        selector.unregister(call)
                    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
                    with contextlib.suppress(OSError), call:
                        call.sendall(_STATUS.pack(status))


def _fork(call: socket.socket) -> int:
    head, streams, _, _ = socket.recv_fds(call, _LENGTH.size, 3)
    (size,) = _LENGTH.unpack(head)
    asked = json.loads(call.recv(size, socket.MSG_WAITALL))
    child = os.fork()
    if child == 0:
        _become(asked, streams)
    for each in streams:
        os.close(each)
    return child


def _become(asked: dict[str, Any], streams: Sequence[int]) -> NoReturn:
    """Be the command, in this child."""
    code = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        os.closerange(3, 1024)
        os.chdir(asked["folder"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        sys.argv = [str(ROOT / "orchestrator" / "__main__.py"), *asked["arguments"]]
        sys.path[0] = asked["folder"]
        sys.stdin, sys.stdout, sys.stderr = (
            open(each.fileno(), each.mode, encoding=each.encoding, errors=each.errors, closefd=False)  # noqa: SIM115
            for each in (sys.stdin, sys.stdout, sys.stderr)
        )
        program()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001 - as of any program
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _import_all() -> None:
    """Import what commands import, but for the page, which needs libraries of its own."""
    for module in pkgutil.walk_packages(orchestrator.__path__, "orchestrator."):
        if not module.name.startswith("orchestrator.web"):
            importlib.import_module(module.name)


if __name__ == "__main__":
    _import_all()
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as heard:
        _serve(heard)
