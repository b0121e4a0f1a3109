"""Several processes from one: their share of a work is done side by side, and one program answers for all of them."""

import errno
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable

TYPE_CHECKING = False  # as typing has it
if TYPE_CHECKING:
    from socket import socket
    from typing import NoReturn

_TERMINATE = 15  # SIGTERM; the module that names it takes longer to import than a folder to read
_MOST = 4
_TOLD, _ANSWERED, _FAILED = b"t", b"a", b"f"
_HEAD = 5  # kind, bytes that follow
_LONGEST = 1 << 30  # bytes of a message
_ENDED = "a process that helps has ended, as one that was killed does"
Answer = Callable[[bytes, Callable[[bytes], None]], bytes]


def run_forked(acts: Iterable[Callable[[], int]]) -> int:
    """Run each act in a process of its own; return 0 when all returned 0. After the first failure the others are ended.

    Only for a program with one thread. What an act does not catch ends its process without a word.
    """
    left = set[int]()
    for act in acts:
        child = os.fork()
        if not child:
            status = 1
            try:
                status = act()
            finally:
                os._exit(status)
        left.add(child)
    failed = 0
    while left:
        child, status = os.wait()
        left.discard(child)
        if status and not failed:
            failed = 1
            if os.WIFSIGNALED(status):
                sys.stderr.write(f"a reader was ended by signal {os.WTERMSIG(status)}\n")
            for other in left:
                os.kill(other, _TERMINATE)
    return failed


class Turn:
    """A turn that one of several forked processes has at a time, to write what no other writes into. Use it in a `with`."""

    def __init__(self) -> None:
        self._turn = os.eventfd(1, os.EFD_SEMAPHORE | os.EFD_CLOEXEC)

    def __enter__(self) -> None:
        os.eventfd_read(self._turn)

    def __exit__(self, *_: object) -> None:
        os.eventfd_write(self._turn, 1)


class ForkedHelpers:
    """Helpers forked from this process as it is, which answer requests side by side, each one at a time. Use it in a `with`.

    They end with it, and with this process. `answer` gets a request, and what tells something meanwhile; an OSError of it is raised here,
    and any other error as one.
    """

    @classmethod
    def start(cls, answer: Answer) -> "ForkedHelpers | None":
        """Start one more than there are processors, as some may wait for a disk; None where that cannot be.

        A fork takes no other thread along, but what such a thread holds: with one there are no helpers.
        """
        if threading.active_count() > 1:
            return None
        helpers = cls()
        try:
            for _ in range(min(_MOST, len(os.sched_getaffinity(0)) + 1)):
                helpers._fork(answer)
        except OSError:  # there is no room for one more process
            if not helpers._children:
                return None
        return helpers

    def __init__(self) -> None:
        self._children: dict[int, tuple[int, socket]] = {}  # by the descriptor of its connection
        self._idle: list[int] = []

    def __enter__(self) -> "ForkedHelpers":
        return self

    def __exit__(self, *_: object) -> None:
        for child, connection in self._children.values():
            connection.close()
            os.kill(child, _TERMINATE)
        for child, _connection in self._children.values():
            os.waitpid(child, 0)
        self._children.clear()

    @property
    def idle(self) -> int:
        """Return how many have nothing to do."""
        return len(self._idle)

    @property
    def busy(self) -> bool:
        """Return whether one has something to do."""
        return len(self._idle) < len(self._children)

    def ask(self, request: bytes) -> None:
        """Give a request to one that is idle. Raises: ChildProcessError where it has ended; OSError."""
        try:
            self._children[self._idle.pop()][1].sendall(len(request).to_bytes(4, "big") + request)
        except BrokenPipeError as error:
            raise ChildProcessError(_ENDED) from error

    def heard(self, patience: float) -> tuple[bool, bytes] | None:
        """Wait for the next message: whether it is an answer, and the message; None: there was none in so many seconds. Raises: OSError."""
        import select

        poll = select.poll()
        for descriptor in self._children:
            poll.register(descriptor, select.POLLIN)
        ready = poll.poll(patience * 1000)
        if not ready:
            return None
        descriptor = ready[0][0]
        connection = self._children[descriptor][1]
        head = _receive(connection, _HEAD)
        kind, message = head[:1], _receive(connection, int.from_bytes(head[1:], "big"))
        if kind == _FAILED:
            raise OSError(*json.loads(message))
        if kind == _ANSWERED:
            self._idle.append(descriptor)
        return kind == _ANSWERED, message

    def _fork(self, answer: Answer) -> None:
        import socket

        here, there = socket.socketpair()
        try:
            child = os.fork()
        except OSError:
            here.close()
            there.close()
            raise
        if not child:
            for _, other in self._children.values():
                other.close()
            here.close()
            _serve(there, answer)
        there.close()
        self._children[here.fileno()] = (child, here)
        self._idle.append(here.fileno())


def _serve(connection: "socket", answer: Answer) -> "NoReturn":
    """Answer requests until the other side is gone: it ends this process, and hears the signals that are for both."""
    status = 1
    try:
        _leave_signals()

        def tell(message: bytes) -> None:
            _send(connection, _TOLD, message)

        while head := connection.recv(4):
            request = _receive(connection, int.from_bytes(head + _receive(connection, 4 - len(head)), "big"))
            try:
                _send(connection, _ANSWERED, answer(request, tell))
            except OSError as error:
                _send(connection, _FAILED, json.dumps([error.errno, error.strerror, error.filename]).encode())
            except Exception as error:  # noqa: BLE001  # raised again where the answer is waited for
                _send(connection, _FAILED, json.dumps([errno.ECHILD, f"a helper failed: {error!r}"]).encode())
        status = 0
    finally:
        os._exit(status)


def _leave_signals() -> None:
    import signal

    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _send(connection: "socket", kind: bytes, message: bytes) -> None:
    connection.sendall(kind + len(message).to_bytes(4, "big") + message)


def _receive(connection: "socket", size: int) -> bytes:
    """Return so many bytes. Raises: ChildProcessError where the other side is gone; OSError."""
    if size > _LONGEST:
        raise ChildProcessError(f"a helper sent {size} B at once")
    parts = list[bytes]()
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            raise ChildProcessError(_ENDED)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
