#!/usr/bin/python3 -IS
"""The guest's end of the channel: many commands over one byte stream, a virtio-serial port.

A frame is `>IBI` (channel, kind, length) and its payload. The host sends R (start from scratch; the payload comes back in `r`),
O (open: JSON with argv or sh, environment, folder, user, stdin), I (bytes for stdin), E (end of stdin), K (signal number)
and T (the clock, seconds). The guest sends 1 and 2 (stdout, stderr), X (JSON with code or error) and r.
"""

import contextlib
import errno
import json
import os
import pwd
import select
import signal
import struct
import subprocess
import sys
import time
from typing import Any

HEADER = struct.Struct(">IBI")
SYNC = b"\x00LAB-SYNC\xff" * 4
PORT = "/dev/virtio-ports/lab.agent"
MOST_WAITING = 1 << 20


class Command:
    """One command under way: its process, the streams still open, what waits for its stdin."""

    def __init__(self, requested: dict[str, Any]) -> None:
        user = pwd.getpwnam(requested.get("user") or "root")
        home = user.pw_dir
        self.process = subprocess.Popen(
            requested.get("argv") or ["/bin/sh", "-c", requested["sh"]],
            stdin=subprocess.PIPE if requested.get("stdin") else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "HOME": home, **(requested.get("environment") or {})},
            cwd=requested.get("folder") or home,
            bufsize=0,
            start_new_session=True,
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=(),
        )
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.streams = {self.process.stdout.fileno(): "1", self.process.stderr.fileno(): "2"}
        self.waiting = bytearray()
        self.ended = False
        if self.process.stdin:
            os.set_blocking(self.process.stdin.fileno(), False)

    def signal(self, number: int) -> None:
        """Signals the command and all that it started."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, number)

    def close(self) -> None:
        """Lets go of all streams."""
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()


class Agent:
    """Serves one opened port until it fails."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.poll = select.poll()
        self.out = bytearray()
        self.got = bytearray()
        self.commands: dict[int, Command] = {}
        self.watched: dict[int, tuple[int, str]] = {}
        os.set_blocking(port, False)
        self.poll.register(port, select.POLLIN)

    def serve(self) -> None:
        """Goes round for ever."""
        while True:
            closing = any(not command.streams for command in self.commands.values())
            self.poll.modify(self.port, select.POLLIN | (select.POLLOUT if self.out else 0))
            for number, event in self.poll.poll(5 if closing else None):
                if number == self.port:
                    self._port_event(event)
                elif number in self.watched:
                    self._stream_event(number)
            self._reap()
            self._flush()

    def _port_event(self, event: int) -> None:
        if event & select.POLLIN:
            with contextlib.suppress(BlockingIOError):
                if chunk := os.read(self.port, 262144):
                    return self._take(chunk)
                self._nobody_there()
        elif event & select.POLLHUP:
            self._nobody_there()
        return None

    def _nobody_there(self) -> None:
        self._reset()
        del self.got[:]
        time.sleep(0.02)

    def _take(self, chunk: bytes) -> None:
        tail = max(0, len(self.got) - len(SYNC))
        self.got.extend(chunk)
        if (at := self.got.rfind(SYNC, tail)) >= 0:  # the host starts from the beginning: what was before means nothing
            del self.got[: at + len(SYNC)]
        while len(self.got) >= HEADER.size:
            channel, kind, length = HEADER.unpack_from(self.got)
            if len(self.got) < HEADER.size + length:
                break
            payload = bytes(memoryview(self.got)[HEADER.size : HEADER.size + length])
            del self.got[: HEADER.size + length]
            self._request(channel, chr(kind), payload)

    def _request(self, channel: int, kind: str, payload: bytes) -> None:
        if kind == "R":
            self._reset()
            self.out.extend(SYNC)
            self._send(channel, "r", payload)
        elif kind == "T":
            time.clock_settime(time.CLOCK_REALTIME, float(payload))
            self._send(channel, "X", b'{"code": 0}')
        elif kind == "O":
            self._open(channel, json.loads(payload))
        elif command := self.commands.get(channel):
            self._for_command(channel, command, kind, payload)

    def _open(self, channel: int, requested: dict[str, Any]) -> None:
        try:
            command = self.commands[channel] = Command(requested)
        except Exception as error:  # noqa: BLE001 - whatever it is, the host is to read it
            self._send(channel, "X", json.dumps({"error": repr(error)}).encode())
            return
        for number, kind in command.streams.items():
            self.watched[number] = (channel, kind)
            self.poll.register(number, select.POLLIN)

    def _for_command(self, channel: int, command: Command, kind: str, payload: bytes) -> None:
        if kind == "K":
            command.signal(int(payload))
        elif kind == "E":
            command.ended = True
            if not command.waiting:
                self._close_stdin(command)
        elif kind == "I" and command.process.stdin:
            command.waiting.extend(payload)
            number = command.process.stdin.fileno()
            self.watched[number] = (channel, "0")
            self.poll.register(number, select.POLLOUT)

    def _stream_event(self, number: int) -> None:
        channel, kind = self.watched[number]
        command = self.commands[channel]
        if kind == "0":
            self._feed(number, command)
        elif len(self.out) <= MOST_WAITING:  # not more than the host takes
            if chunk := os.read(number, 65536):
                self._send(channel, kind, chunk)
            else:
                self._drop(number)
                del command.streams[number]

    def _feed(self, number: int, command: Command) -> None:
        try:
            del command.waiting[: os.write(number, memoryview(command.waiting)[:65536].tobytes())]
        except BlockingIOError:
            return
        except OSError:
            command.waiting.clear()
            command.ended = True
        if not command.waiting:
            self._drop(number)
            if command.ended:
                self._close_stdin(command)

    def _close_stdin(self, command: Command) -> None:
        if command.process.stdin and not command.process.stdin.closed:
            self._drop(command.process.stdin.fileno())
            with contextlib.suppress(OSError):
                command.process.stdin.close()

    def _reap(self) -> None:
        for channel, command in list(self.commands.items()):
            if not command.streams and (code := command.process.poll()) is not None:
                self._close_stdin(command)
                command.close()
                del self.commands[channel]
                self._send(channel, "X", json.dumps({"code": code}).encode())

    def _reset(self) -> None:
        for command in self.commands.values():
            command.signal(signal.SIGKILL)
            self._close_stdin(command)
            for number in command.streams:
                self._drop(number)
            command.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                command.process.wait(2)
        self.commands.clear()
        del self.out[:]

    def _drop(self, number: int) -> None:
        if self.watched.pop(number, None):
            self.poll.unregister(number)

    def _send(self, channel: int, kind: str, payload: bytes) -> None:
        self.out.extend(HEADER.pack(channel, ord(kind), len(payload)) + payload)

    def _flush(self) -> None:
        while self.out:
            try:
                del self.out[: os.write(self.port, memoryview(self.out)[:65536].tobytes())]
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in (errno.EPIPE, errno.ENODEV):
                    return
                raise


def main() -> None:
    """Opens the port again and again: the host may come and go."""
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    while True:
        try:
            port = os.open(PORT, os.O_RDWR)
        except OSError:
            time.sleep(0.1)
            continue
        try:
            Agent(port).serve()
        except Exception as error:  # noqa: BLE001 - the channel must live on
            sys.stderr.write(f"agent: {error!r}\n")
        os.close(port)
        time.sleep(0.1)


if __name__ == "__main__":
    main()
