"""The host's end of the channel to the agent in a guest: many commands over one unix socket (see guest/agent.py)."""

import json
import os
import struct
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.lab.common import Ended, LabError, Running
from tests.lab.qmp import connected, hang_up

_HEADER = struct.Struct(">IBI")
_SYNC = b"\x00LAB-SYNC\xff" * 4
_TOKEN = 16


class GuestCommand(Running):
    """A command under way in a guest."""

    def __init__(self, channel: "Channel", number: int) -> None:
        self._channel = channel
        self._number = number
        self._out = bytearray()
        self._errors = bytearray()
        self._code: int | None = None
        self._failure = ""
        self._done = threading.Event()

    def feed(self, data: bytes) -> None:
        for at in range(0, len(data), 65536):
            self._channel.send(self._number, "I", data[at : at + 65536])

    def end_of_input(self) -> None:
        self._channel.send(self._number, "E")

    def said_since(self, at: int) -> bytes:
        """Return what it has printed so far, from there on."""
        return bytes(self._out[at:])

    def kill(self, number: int = 15) -> None:
        self._channel.send(self._number, "K", str(number).encode())

    def poll(self) -> int | None:
        return self._code if self._done.is_set() else None

    def wait(self, seconds: float = 120) -> Ended:
        if not self._done.wait(seconds):
            raise LabError(f"still running after {seconds} s; so far {self._out[-500:]!r} {self._errors[-500:]!r}")
        if self._failure or self._code is None:
            raise LabError(self._failure)
        return Ended(code=self._code, out=bytes(self._out), errors=bytes(self._errors))

    def take(self, kind: str, payload: bytes) -> bool:
        """Takes a frame for this command; whether it was the last."""
        if kind == "1":
            self._out += payload
        elif kind == "2":
            self._errors += payload
        elif kind == "X":
            answer = json.loads(payload)
            self._code, self._failure = answer.get("code"), answer.get("error", "")
            self._done.set()
        return kind == "X"

    def give_up(self) -> None:
        """Nothing more will come."""
        self._failure = "the machine went away"
        self._done.set()


class Channel:
    """The connection; `begin` must have returned before the first command."""

    def __init__(self, path: Path) -> None:
        self._line = connected(path, within=10)
        self._writing = threading.Lock()
        self._commands: dict[int, GuestCommand] = {}
        self._last = 0
        self._token = b""
        self._in_step = threading.Event()
        self._gone = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def begin(self, *, within: float) -> None:
        """Waits until the agent answers; what it did for somebody before is ended. Raises LabError when it does not."""
        until = time.monotonic() + within
        while not self._in_step.is_set():
            if self._gone or time.monotonic() > until:
                raise LabError(f"the agent in the machine did not answer within {within} s")
            with self._writing:
                # Only the answer to the newest call counts: those to earlier ones may come cut short.
                self._token = os.urandom(_TOKEN)
                self._put(_SYNC + _HEADER.pack(0, ord("R"), _TOKEN) + self._token)
            self._in_step.wait(1)

    def start(self, requested: Mapping[str, Any]) -> GuestCommand:
        """Begins what the agent is asked for."""
        return self._open("O", json.dumps(requested).encode())

    def set_clock(self, now: float) -> None:
        """Gives the guest the time."""
        self._open("T", f"{now:.6f}".encode()).wait(20)

    def send(self, number: int, kind: str, payload: bytes = b"") -> None:
        """One frame."""
        with self._writing:
            self._put(_HEADER.pack(number, ord(kind), len(payload)) + payload)

    def close(self) -> None:
        """Hangs up; commands under way are ended by the agent."""
        hang_up(self._line, self._reader)

    def _open(self, kind: str, payload: bytes) -> GuestCommand:
        with self._writing:
            self._last += 1
            number = self._last
            command = self._commands[number] = GuestCommand(self, number)
        self.send(number, kind, payload)
        if self._gone:
            command.give_up()
        return command

    def _put(self, data: bytes) -> None:
        try:
            self._line.sendall(data)
        except OSError:
            self._gone = True

    def _read(self) -> None:
        got = bytearray()
        try:
            while chunk := self._line.recv(262144):
                got += chunk
                if self._in_step.is_set() or self._find_step(got):
                    self._frames(got)
        except OSError:
            pass
        self._gone = True
        for command in list(self._commands.values()):
            command.give_up()

    def _find_step(self, got: bytearray) -> bool:
        mark = _SYNC + _HEADER.pack(0, ord("r"), _TOKEN) + self._token
        if (at := got.find(mark)) < 0:
            return False
        del got[: at + len(mark)]
        self._in_step.set()
        return True

    def _frames(self, got: bytearray) -> None:
        while len(got) >= _HEADER.size:
            number, kind, length = _HEADER.unpack_from(got)
            if len(got) < _HEADER.size + length:
                return
            payload = bytes(memoryview(got)[_HEADER.size : _HEADER.size + length])
            del got[: _HEADER.size + length]
            command = self._commands.get(number)
            if command and command.take(chr(kind), payload):
                del self._commands[number]
