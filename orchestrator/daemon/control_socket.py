"""The daemon's control socket: one line asks for an act of the closed list, one line answers.

Who may ask is decided twice: the file is for root and one group (0660), and the kernel says who is at the other end. What may be
asked is checked by `app.acts`, by name; a page that was taken over can therefore ask for no more than its buttons do.
"""

import contextlib
import grp
import os
import pwd
import socket
import struct
import threading
from collections.abc import Callable

from orchestrator import compose
from orchestrator.app.control import GROUP, RUNTIME, control_address, control_folder, encode_answer
from orchestrator.app.socket_file import listen_in_file
from orchestrator.domain.act import LONGEST_LINE, ActAnswer, ActRequest, parse_request
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import printable_line

MOST_CALLERS = 16
_BACKLOG = 512
_PATIENCE_S = 5.0  # for the whole line: who is slower gets no answer
_SO_PEERGROUPS = 59  # source: asm-generic/socket.h; Python has no name for it
_MOST_GROUPS = 256  # Python asks the kernel for 1024 bytes at most

Ask = Callable[[ActRequest, str], ActAnswer]
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The process at the other end, as the kernel knows it."""

    pid: int
    uid: int
    groups: frozenset[int]

    @property
    def name(self) -> str:
        """Return the user's name with its number; a user that is there only while it runs may have no name."""
        try:
            return f"{printable_line(pwd.getpwuid(self.uid).pw_name)} (uid {self.uid})"
        except KeyError:
            return f"uid {self.uid}"


def read_caller(connection: socket.socket) -> Caller:
    """Return who is at the other end of a unix socket. Raises: OSError."""
    size = struct.calcsize("3i")
    pid, uid, gid = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    groups = b""
    with contextlib.suppress(OSError):  # a kernel of before 2017: its own group is known
        groups = connection.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, 4 * _MOST_GROUPS)
    numbers = struct.unpack(f"{len(groups) // 4}I", groups)
    return Caller(pid=pid, uid=uid, groups=frozenset((gid, *numbers)))


class ControlSocket:
    """A listening control socket, until it is closed. `ask`: carries out a request that was understood."""

    def __init__(self, where: compose.Directories, ask: Ask, say: Say) -> None:
        """Listen. Raises: OSError where that cannot be."""
        self._where, self._ask, self._say = where, ask, say
        self._group = _group_of_callers()
        self._callers = threading.BoundedSemaphore(MOST_CALLERS)
        self._listening = self._listen()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="control", daemon=True)
        self._thread.start()

    def _listen(self) -> socket.socket:
        folder = control_folder(self._where)
        if folder == RUNTIME:
            with contextlib.suppress(FileExistsError):  # systemd made it
                os.mkdir(folder, 0o755)
        mode = 0o600 if self._group is None else 0o660
        with control_address(self._where) as address:
            return listen_in_file(address, mode=mode, group=self._group, backlog=_BACKLOG)

    def close(self) -> None:
        """Listen no more."""
        self._ended.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(_PATIENCE_S)
        with contextlib.suppress(OSError), control_address(self._where) as address:
            os.unlink(address)

    def _serve(self) -> None:
        while not self._ended.is_set():
            try:
                connection, _ = self._listening.accept()
            except OSError:
                if self._ended.wait(0.1):  # else: too many open files, and a moment later fewer
                    return
                continue
            if self._callers.acquire(blocking=False):
                threading.Thread(target=self._answer, args=(connection,), name="control call", daemon=True).start()
            else:
                with connection:
                    _send(connection, _refusal("too many ask at once; ask again in a moment"))

    def _answer(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(_PATIENCE_S)
                _send(connection, self._judge(connection))
        except OSError:
            pass  # it went away, or was too slow
        except Exception as error:  # noqa: BLE001 - one bad call must not end the daemon, nor go unsaid
            self._say(f"control socket: this is a mistake in poolferry: {type(error).__name__}: {error}")
        finally:
            self._callers.release()

    def _judge(self, connection: socket.socket) -> ActAnswer:
        caller = read_caller(connection)
        # Read also of who is refused: an answer that comes before the question is lost in the caller's broken pipe.
        line = read_line(connection, compose.monotonic() + _PATIENCE_S)
        if not self._may_ask(caller):
            self._say(f"control socket: refused {caller.name}, process {caller.pid}")
            return _refusal("you may not ask for acts")
        try:
            request = parse_request(line)
        except ValueError as error:
            return _refusal(f"not understood: {error}")
        if request.order and caller.uid not in (0, os.geteuid()):
            return _refusal("only this machine itself passes on what its centre orders")
        try:
            return self._ask(request, caller.name)
        except OrchestratorError as error:
            return _refusal(error.why)

    def _may_ask(self, caller: Caller) -> bool:
        return caller.uid in (0, os.geteuid()) or (self._group is not None and self._group in caller.groups)


def _group_of_callers() -> int | None:
    """Return the group whose members may ask; None: there is none, and only the daemon's own user may."""
    if os.geteuid() != 0:
        return None
    try:
        return grp.getgrnam(GROUP).gr_gid
    except KeyError:
        return None


def read_line(connection: socket.socket, until: float) -> bytes:
    """Return one line of bounded length. Raises: OSError when it is not there in time. Units: `until` as `compose.monotonic`."""
    said = b""
    while not said.endswith(b"\n") and len(said) <= LONGEST_LINE:
        left = until - compose.monotonic()
        if left <= 0:
            raise TimeoutError("the line did not come in time")
        connection.settimeout(left)
        piece = connection.recv(min(4096, LONGEST_LINE + 1 - len(said)))
        if not piece:
            break
        said += piece
    return said


def _refusal(why: str) -> ActAnswer:
    return ActAnswer(accepted=False, act=None, said=why)


def _send(connection: socket.socket, answer: ActAnswer) -> None:
    with contextlib.suppress(OSError):
        connection.sendall(encode_answer(answer))
