"""A relay: a program that is fed from our own input, of which the head was read and judged before, and no more than it may have."""

import fcntl
import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Thread
from typing import Protocol

from orchestrator.domain.plan import Command
from orchestrator.process.pipeline import WIDE, wide_pipe
from orchestrator.process.program_path import SYSTEM_PATH

_INPUT = 0
_LITTLE = 4 << 10  # bytes; what is shorter is joined, as each piece costs some 200 bytes more
_JOINED = 128 << 10  # bytes up to which
_SLICE = 128 << 10  # bytes that are written at once, so that a slow program is seen to take some
_TURN = 0.0002  # seconds for which one thread computes while the other waits; by itself Python has 25 times that


class InputWatch(Protocol):
    """Looks at an input as it passes."""

    def follow(self, data: bytes) -> None:
        """Look at what comes next. Raises: what ends it."""


class CountedInput(Protocol):
    """The limit of an input."""

    def take(self, most: int) -> int:
        """Return how many of so many bytes may come; they count as come."""

    def give_back(self, count: int) -> None:
        """Count bytes no more that were taken and did not come."""


class SilentInput(Exception):
    """An input of which nothing came for too long, or a program that took nothing of it for as long."""


class TooMuchInput(Exception):
    """An input that is longer than it may be; the program has ended, and what it kept of it is its own matter."""


class InputBegin:
    """The beginning of our input. `came`: what was read of it before; `patience`: the most seconds of silence, None: any."""

    def __init__(self, came: bytes, patience: float | None) -> None:
        self._came, self._patience, self._poll = came, patience, select.poll()
        self._poll.register(_INPUT, select.POLLIN)

    def _read(self, most: int) -> bytes:
        if self._came:
            piece, self._came = self._came[:most], self._came[most:]
            return piece
        if self._patience is not None and not self._poll.poll(1000 * self._patience):
            raise SilentInput
        return os.read(_INPUT, most)

    def head(self, missing: Callable[[bytes], int]) -> bytes:
        """Return the head. `missing`: how many more bytes are needed after these. Raises: EOFError for an end before, SilentInput."""
        head = b""
        while needed := missing(head):
            read = self._read(needed)
            if not read:
                raise EOFError
            head += read
        return head

    def rest(self, head: bytes, most: int, watch: InputWatch | None) -> tuple[bytes, bool]:
        """Return the head and what follows it, up to `most` bytes in all, or as many as came, and whether our input ended by then.

        `watch`: sees all behind the head, and what it raises is raised. Raises: SilentInput.
        """
        pieces, size = [head], len(head)
        while size < most or self._came:
            piece = self._read(max(most - size, len(self._came)))
            if not piece:
                return b"".join(pieces), True
            if watch is not None:
                watch.follow(piece)
            size += len(piece)
            pieces.append(piece)
        return b"".join(pieces), False


def read_input(*, at_most: int, patience: float) -> bytes:
    """Return all of our input. `patience`: the most seconds of silence. Raises: TooMuchInput, SilentInput."""
    read, pieces, poll = 0, list[bytes](), select.poll()
    poll.register(_INPUT, select.POLLIN)
    while True:
        if not poll.poll(1000 * patience):
            raise SilentInput
        if not (piece := os.read(_INPUT, WIDE)):
            return b"".join(pieces)
        read += len(piece)
        if read > at_most:
            raise TooMuchInput
        pieces.append(piece)


def write_output(line: str) -> None:
    """Write a line to our output at once: what this process becomes writes behind it."""
    _write(1, f"{line}\n".encode())


def answer_of(command: Command, *, partly: bool = False) -> str | None:
    """Return what a short command prints; None for a bad end, of which its own words have gone to our errors. `partly`: then, too."""
    ended = subprocess.run(
        command.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=_variables(), check=False
    )
    return None if ended.returncode and not partly else ended.stdout.decode("utf-8", "replace")


def feed(
    command: Command,
    head: bytes,
    *,
    limit: CountedInput | None,
    watch: InputWatch | None = None,
    memory: int = WIDE,
    patience: float | None = None,
) -> int:
    """Run a command with a head, if there is one, and then our own input; return its exit status, as a shell tells it. Raises: TooMuchInput, SilentInput.

    `limit`: of what comes behind the head. `memory`: the most bytes that wait here for the program; `patience`: the most seconds in which
    nothing comes, or goes. `watch`: sees the input before it is passed on; what it raises ends the command's input, and is raised once that
    has ended.
    Why no program for the buffer: what passes is read here anyway, and each more program copies it once more.
    """
    source, sink = wide_pipe()
    with suppress(OSError):  # it is no pipe, or this user has too many wide ones
        fcntl.fcntl(_INPUT, fcntl.F_SETPIPE_SZ, WIDE)
    buffer = _Buffer(sink, memory)
    sys.setswitchinterval(_TURN)
    try:
        process = subprocess.Popen(command.argv, stdin=source, env=_variables())
    finally:
        os.close(source)
    try:
        buffer.start()
        if head:
            buffer.put(head, patience)
        _pump(buffer, process.pid, limit, watch, patience)
        buffer.drain(patience)
    except SilentInput:
        process.terminate()  # else it could wait for what it does not take
        raise
    finally:
        buffer.end()
        status = process.wait()
    return status if status >= 0 else 128 - status


class _Buffer:
    """Bytes that wait for a program: a thread writes them, so that no input waits while the program is busy, and none the other way."""

    def __init__(self, sink: int, most: int) -> None:
        self._sink, self._most = sink, most
        self._pieces, self._size = (
            deque[bytes | bytearray](),
            0,
        )  # a bytearray: of little pieces, and more may come to the last one
        self._took = 0.0  # when the program took some, or there was nothing to take; seconds of the monotonic clock
        self._ended = False  # nothing more comes, or the program is gone
        self._changed = Condition()
        self._writer = Thread(target=self._write_all, daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._writer.start()

    def put(self, piece: bytes, patience: float | None) -> bool:
        """Let a piece wait, once there is room; return whether the program is there still. Raises: SilentInput."""
        with self._changed:
            if not self._size:
                self._took = time.monotonic()
            self._wait(lambda: self._size < self._most, patience)
            self._append(piece)
            self._size += len(piece)
            self._changed.notify_all()
            return not self._ended

    def drain(self, patience: float | None) -> None:
        """Wait until the program has taken all, or is gone. Raises: SilentInput."""
        with self._changed:
            self._wait(lambda: not self._size, patience)

    def _wait(self, is_so: Callable[[], bool], patience: float | None) -> None:
        """Wait until something is so, or the program is gone. Raises: SilentInput where it takes nothing for so long, however little waits."""
        while not self._ended:
            left = None if patience is None else self._took + patience - time.monotonic()
            if left is not None and left <= 0 and self._size:
                raise SilentInput
            if is_so():
                return
            self._changed.wait(left)

    def _append(self, piece: bytes) -> None:
        last = self._pieces[-1] if self._pieces else b""
        if len(piece) >= _LITTLE:
            self._pieces.append(piece)
        elif isinstance(last, bytearray) and len(last) < _JOINED:
            last += piece
        else:
            self._pieces.append(bytearray(piece))

    def end(self) -> None:
        """Let the program's input end behind what waits."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        if self._writer.ident is None:
            os.close(self._sink)
        else:
            self._writer.join()

    def _write_all(self) -> None:
        try:
            while piece := self._next():
                for at in range(0, len(piece), _SLICE):
                    self._write_slice(memoryview(piece)[at : at + _SLICE])
        except BrokenPipeError:
            with self._changed:
                self._ended = True  # it says why itself
                self._changed.notify_all()
        finally:
            os.close(self._sink)

    def _write_slice(self, data: memoryview) -> None:
        _write(self._sink, data)
        with self._changed:
            self._size -= len(data)
            self._took = time.monotonic()
            self._changed.notify_all()

    def _next(self) -> bytes | bytearray:
        """Return the next piece; nothing: there is none any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._ended or self._pieces)
            return self._pieces.popleft() if self._pieces else b""


def become_fed(command: Command, data: bytes) -> None:
    """Become a command whose whole input is there; return where a pipe here cannot hold that. Raises: OSError."""
    source, sink = wide_pipe()
    if len(data) > fcntl.fcntl(sink, fcntl.F_GETPIPE_SZ):
        os.close(source)
        os.close(sink)
        return
    _write(sink, data)
    os.close(sink)
    os.dup2(source, _INPUT)
    os.execvpe(command.argv[0], command.argv, _variables())  # noqa: S606 - no shell is wanted


def _write(sink: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]


def _pump(
    buffer: _Buffer, program: int, limit: CountedInput | None, watch: InputWatch | None, patience: float | None
) -> None:
    """Pass our input on until it ends, or the program does. Raises: TooMuchInput, SilentInput."""
    poll, child = select.poll(), os.pidfd_open(program)
    poll.register(_INPUT, select.POLLIN)
    poll.register(child, select.POLLIN)
    taken = WIDE if limit is None else 0
    try:
        while ready := {descriptor for descriptor, _ in poll.poll(None if patience is None else 1000 * patience)}:
            if child in ready:
                return
            taken = taken or (limit.take(WIDE) if limit is not None else WIDE)
            piece = os.read(_INPUT, taken or 1)
            if not piece:
                return
            if not taken:
                raise TooMuchInput
            taken -= len(piece)
            if watch is not None:
                watch.follow(piece)
            if not buffer.put(piece, patience):
                return
        raise SilentInput
    finally:
        if limit is not None:
            limit.give_back(taken)
        os.close(child)


def _variables() -> dict[str, str]:
    return {"PATH": ":".join(SYSTEM_PATH), "LC_ALL": "C.UTF-8"}
