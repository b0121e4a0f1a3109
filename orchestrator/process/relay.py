"""A relay: a program that is fed from our own input, of which the head was read and judged before, and no more than it may have."""

import fcntl
import os
import select
import subprocess
from collections.abc import Callable
from typing import Protocol

from orchestrator.domain.plan import Command
from orchestrator.process.pipeline import WIDE, wide_pipe
from orchestrator.process.program_path import SYSTEM_PATH

_INPUT = 0
_WORTH_IT = 16 << 10  # bytes that are quicker passed on unread


class InputWatch(Protocol):
    """Looks at an input as it passes. `unseen`: so many of the next bytes need no look; `wanted`: how many to read otherwise."""

    @property
    def unseen(self) -> int: ...
    @property
    def wanted(self) -> int: ...
    def follow(self, data: bytes) -> None:
        """Look at what comes next. Raises: what ends it."""

    def pass_over(self, count: int) -> None:
        """Count bytes that passed unseen."""


class CountedInput(Protocol):
    """The limit of an input."""

    def take(self, most: int) -> int:
        """Return how many of so many bytes may come; they count as come."""

    def give_back(self, count: int) -> None:
        """Count bytes no more that were taken and did not come."""


class SilentInput(Exception):
    """An input of which nothing came for too long."""


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


def read_input(*, at_most: int) -> bytes:
    """Return all of our input. Raises: TooMuchInput."""
    read, pieces = 0, []
    while piece := os.read(_INPUT, WIDE):
        read += len(piece)
        if read > at_most:
            raise TooMuchInput
        pieces.append(piece)
    return b"".join(pieces)


def write_output(line: str) -> None:
    """Write a line to our output at once: what this process becomes writes behind it."""
    _write(1, f"{line}\n".encode())


def answer_of(command: Command, *, partly: bool = False) -> str | None:
    """Return what a short command prints; None for a bad end, of which its own words have gone to our errors. `partly`: then, too."""
    ended = subprocess.run(
        command.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=_variables(), check=False
    )
    return None if ended.returncode and not partly else ended.stdout.decode("utf-8", "replace")


def feed(command: Command, head: bytes, *, limit: CountedInput | None, watch: InputWatch | None = None) -> int:
    """Run a command with a head and then our own input; return its exit status, as a shell tells it. Raises: TooMuchInput.

    `limit`: of what comes behind the head.
    `watch`: sees the input before it is passed on; what it raises ends the command's input, and is raised once that has ended.
    """
    source, sink = wide_pipe()
    try:
        process = subprocess.Popen(command.argv, stdin=source, env=_variables())
    finally:
        os.close(source)
    try:
        _write(sink, head)
        _pump(sink, process.pid, limit, watch)
    except BrokenPipeError:
        pass  # it has ended, and says why itself
    finally:
        os.close(sink)
        status = process.wait()
    return status if status >= 0 else 128 - status


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


def _write(sink: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(sink, view) :]


def _pump(sink: int, program: int, limit: CountedInput | None, watch: InputWatch | None) -> None:
    """Pass our input on until it ends, or the program does. Raises: TooMuchInput."""
    poll, child = select.poll(), os.pidfd_open(program)
    poll.register(_INPUT, select.POLLIN)
    poll.register(sink, 0)
    poll.register(child, select.POLLIN)
    taken = WIDE if limit is None else 0
    try:
        while True:
            ready = {descriptor for descriptor, _ in poll.poll()}
            if sink in ready or child in ready:
                return
            taken = taken or (limit.take(WIDE) if limit is not None else WIDE)
            if not taken:
                if os.read(_INPUT, 1):
                    raise TooMuchInput
                return
            moved = _splice(sink, taken) if watch is None else _watched(sink, taken, watch)
            if not moved:
                return
            taken -= moved
    finally:
        if limit is not None:
            limit.give_back(taken)
        os.close(child)


def _splice(sink: int, most: int) -> int:
    return os.splice(_INPUT, sink, most, flags=os.SPLICE_F_MOVE)


def _watched(sink: int, most: int, watch: InputWatch) -> int:
    if watch.unseen >= _WORTH_IT:
        moved = _splice(sink, min(most, watch.unseen))
        watch.pass_over(moved)
        return moved
    read = os.read(_INPUT, min(most, watch.wanted))
    watch.follow(read)
    _write(sink, read)
    return len(read)


def _variables() -> dict[str, str]:
    return {"PATH": ":".join(SYSTEM_PATH), "LC_ALL": "C.UTF-8"}
