"""One process that answers the requests of a gate one after another, so that each of a run need not start its own.

The first request leaves it behind, and listens for it from its own beginning: what asks meanwhile waits. The later ones start as little
as can be (`scripts/hand-over.pl`), hand their descriptors and their line over to it. Most requests it only judges, by the gate's file as
it is then: it says what answers them, and the perl that asked shuts itself in and becomes that. A little stream is gathered by perl
first, so that all of it is looked at. For the others, and for all that opens a folder, it forks, and perl waits for the end; the fork
answers as a process of its own would: it reads the gate's file anew, takes one of its places, and ends when whoever waits for it is
ended. The process that stays ends when nobody has asked for some seconds, and after some minutes at the latest. Why no channel of its own
for requests: what a key may ask enters by one door alone, and streams pass by the same way as all else.
"""

import gc
import os
import sys
from collections.abc import Callable

TYPE_CHECKING = False  # as typing has it, whose import is a fifth of what a request takes that is handed over
if TYPE_CHECKING:
    import socket
    from typing import NoReturn, Protocol

_SOON, _MANY = (
    15.0,
    100,
)  # seconds after which what was put off is seen to, or so many lines: each time costs a fork, and asks zfs
IDLE, LONGEST = 15.0, 600.0  # seconds; the first as long as a shared connection of ssh stays open
_MOST = 200_000  # bytes of a request: of the words that a system call hands on, one has 128 KiB at most
_MOST_WAITING = 64
_TAKEN = b"taken"
_BECOMES = "becomes"  # the last word of a request of hand-over.pl, which can become what answers it
_BECOME, _GATHER, _WHOLE = b"become", b"gather", b"whole"
LITTLE = (
    256 << 10
)  # bytes of a stream that are gathered, and looked at, before its receiver begins; as `hand-over.pl` has it
_LOST = 255  # exit status, as ssh's own for a connection that is lost
_PATIENCE = 2.0  # seconds in which who connects must say what it wants
# What admits and answers, of this package; `hand-over.pl` has the same. A "/" at the end: the modules there. Not the folder, in which
# Python may make one of its own; where there are only scripts, it is looked at itself.
_ANSWERING = (
    "__init__.py", "app/gate.py", "config/", "domain/gate.py", "domain/names.py", "domain/place.py", "domain/plan.py",
    "engines/zfs/commands/", "engines/zfs/scripts", "gate/", "process/", "process/scripts", "trees/",
)  # fmt: skip

PERL = "/usr/bin/perl"
HAND_OVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts", "hand-over.pl")
"""What hands a request over as `hand_over` does, and starts quicker than Python; not there where this is one file (zipapp)."""
if TYPE_CHECKING:

    class PutOff(Protocol):
        """Leaves a line to the process that stays, which sees to several at once, and soon; it is lost where that is killed before.

        `at_end`: only once the process that leaves it, or what it becomes, has ended well.
        """

        def __call__(self, line: str, *, at_end: bool = False) -> None: ...


Answer = Callable[[str, str, "PutOff", bytes], int]
"""Answers a request in this process: its line, and who asks, as sshd tells both, and what came of its input; returns the exit status."""
Judge = Callable[[str, bytes | None], tuple[bytes, str] | None]
"""Judges a request by its line: how perl becomes its answer, and the line to see to once that has ended; None: a fork answers it.

The bytes are the whole input, for a request of which that is looked at: for one, `GATHER` was returned before.
"""
GATHER = b"", ""
Claim = tuple[int, int]
"""The open files of a lock, which who listens for a gate holds, and of the listener."""
Handed = tuple[str, str, bool]
"""A request as it is handed over: its line, who asks, and whether whoever hands it over can become its answer."""
_BY_PERL = "do shift; exec {$ARGV[0]} @ARGV"


def forced_command(program: list[str]) -> list[str]:
    """Return the words that sshd runs for each request of a gate, from those that start the program for it.

    Perl starts in a fifth of Python's time. Its words become the program where the script that hands over is not there, or does not
    fit perl: so the line of a key holds for an older version, too.
    """
    if not (os.access(PERL, os.X_OK) and os.path.isfile(HAND_OVER)):
        return program
    return [PERL, "-e", _BY_PERL, HAND_OVER, *program]


def hand_over(words: list[str]) -> int | None:
    """Let the process that is left of an earlier request answer `gate NAME`; return its exit status, or None where there is none."""
    state = state_of(words)
    if state is None or words[:1] != ["gate"] or len(words) < 2 or "/" in words[1]:
        return None
    # The module beneath, as `socket` itself takes a third of the time that all this takes.
    from _socket import AF_UNIX, SCM_RIGHTS, SO_PEERCRED, SOCK_CLOEXEC, SOCK_SEQPACKET, SOL_SOCKET, socket
    from struct import pack, unpack

    try:
        folder = os.open(state, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    server = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC)
    try:
        if server.connect_ex(f"/proc/self/fd/{folder}/{_name(words[1])}"):
            _claims[words[1]] = _claim(folder, words[1])
            return None
        if unpack("3i", server.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))[1] != os.geteuid():
            return None
        line, asker = os.environ.get("SSH_ORIGINAL_COMMAND", ""), os.environ.get("SSH_CONNECTION", "")
        request = os.fsencode("\0".join((program_identity(), asker.partition(" ")[0], line)))
        server.sendmsg([request], [(SOL_SOCKET, SCM_RIGHTS, pack("3i", 0, 1, 2))])
        if server.recv(len(_TAKEN)) != _TAKEN:
            return None
    except OSError:
        return None
    finally:
        os.close(folder)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):  # they end where the request ends
        os.dup2(nothing, number)
    try:
        said = server.recv(8)
    except OSError:
        said = b""
    return int(said) if said.isdigit() else _LOST


_claims: "dict[str, Claim | None]" = {}  # by the gate; what this process has claimed, and nobody took over yet


def _claim(folder: int, gate: str) -> "Claim | None":
    """Begin to listen for a gate in its open state directory; return what is open for that; None: another listens, or nobody can.

    Why before it can answer: whoever asks meanwhile, as the other stream of a run that has two at once, waits for that, in place of a
    start of its own. Where this process ends before, the kernel tells them, and each starts its own.
    """
    import fcntl
    from _socket import AF_UNIX, SOCK_CLOEXEC, SOCK_SEQPACKET, socket

    lock, path = -1, f"/proc/self/fd/{folder}/{_name(gate)}"
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC)
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        lock = os.open(f"gate-{gate}.lock", flags, 0o600, dir_fd=folder)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.lexists(path):
            os.unlink(path)
        before = os.umask(0o077)
        try:
            listener.bind(path)
        finally:
            os.umask(before)
        listener.listen(_MOST_WAITING)
    except OSError:
        listener.close()
        if lock >= 0:
            os.close(lock)
        return None
    return lock, listener.detach()


def state_of(words: list[str]) -> str | None:
    """Return the state directory that the words name, or the usual one; None: it takes more to find it, or the configuration."""
    if "--config" not in words and not {"POOLFERRY_CONFIG", "XDG_CONFIG_HOME"}.isdisjoint(os.environ):
        return None
    if "--state" in words:
        return words[words.index("--state") + 1] if words[-1] != "--state" else None
    if not {"POOLFERRY_STATE", "XDG_STATE_HOME"}.isdisjoint(os.environ):
        return None
    return f"{os.environ.get('HOME', '')}/.local/state/poolferry" if os.geteuid() else "/var/lib/poolferry"


def _name(gate: str) -> str:
    return f"gate-{gate}.session"


def program_identity() -> str:
    """Return what tells this very program from another version of it, and from one for other directories; as `hand-over.pl` has it.

    Of the program, a link is followed: where it leads changes with an upgrade. Raises: OSError.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return "\1".join((*sys.argv[1:], _mark(sys.argv[0]), *(_mark(f"{package}/{place}") for place in _ANSWERING)))


def _mark(path: str) -> str:
    """Return what changes with a file, or with any module of a folder."""
    seen = os.stat(path)
    files = [seen]
    if path.endswith("/"):
        files = [os.stat(path + name) for name in os.listdir(path) if name.endswith(".py")]
    sums = (sum(map(int, each)) for each in zip(*((at.st_size, at.st_mtime, at.st_ctime) for at in files), strict=True))
    return " ".join(map(str, (seen.st_ino, len(files), *sums)))


def leave_behind(
    state: str,
    gate: str,
    most: int,
    answer: Answer,
    *,
    judge: Judge,
    prepare: Callable[[], None],
    see_to: Callable[[list[str]], None],
) -> None:
    """Leave a process behind that answers the next requests of this gate, unless one is there; `most` at once.

    `answer`: does so in a fork; `judge`: says without one what answers. `prepare`: imports there what answers need, so that no
    fork has to. `see_to`: sees, in a fork, to the lines that answers put off.
    """
    claimed = _claims.pop(gate, None)
    if claimed is None:
        try:
            folder = os.open(state, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return
        claimed = _claim(folder, gate)
        os.close(folder)
    if claimed is None:
        return
    child = os.fork()
    if child:
        for each in claimed:
            os.close(each)
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        server = _GateServer(state, gate, most, answer, judge, see_to, claimed)
        prepare()
        gc.freeze()
        server.serve()
    except BaseException:  # noqa: BLE001  # without it each request starts its own process, as before
        os._exit(1)


class _GateServer:
    """The process that stays: it listens, judges each request or forks for it, and tells each asker how its request ended."""

    def __init__(
        self,
        state: str,
        gate: str,
        most: int,
        answer: Answer,
        judge: Judge,
        see_to: Callable[[list[str]], None],
        claimed: Claim,
    ) -> None:
        import fcntl
        import select
        import signal
        import socket
        import syslog

        self._identity = os.fsencode(program_identity())
        syslog.closelog()  # its descriptor goes, and would be another file's
        lock, listener = (fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 5) for each in claimed)
        kept = os.dup2(lock, 3)
        self._listener = socket.socket(fileno=os.dup2(listener, 4, inheritable=False))
        self._listener.listen(_MOST_WAITING)  # once more: so it is this process that askers see
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        os.closerange(5, os.sysconf("SC_OPEN_MAX"))
        os.chdir("/")
        folder = os.open(state, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._path = f"/proc/self/fd/{folder}/{_name(gate)}"
        self._kept, self._most, self._answer, self._judge, self._see_to = kept, most, answer, judge, see_to
        self._children: dict[int, socket.socket | None] = {}  # None: it answers nobody
        self._gathering: dict[int, tuple[socket.socket, Handed, list[int]]] = {}  # by the asker's descriptor
        self._became: dict[int, tuple[socket.socket, str]] = {}  # likewise; the line to see to once it has ended
        self._later = _LaterLines()
        self._poll = select.poll()
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wakeup = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(self._wakeup[1], warn_on_full_buffer=False)

    def serve(self) -> "NoReturn":
        """Answer requests until none has come for some seconds. What is under way then, is waited for."""
        import contextlib
        import select
        import time

        begun = asked = time.monotonic()
        poll = self._poll
        poll.register(self._listener, select.POLLIN)
        poll.register(self._wakeup[0], select.POLLIN)
        listens = True
        while listens or self._under_way or self._later.waiting:
            ready = {descriptor for descriptor, _ in poll.poll(1000)}
            now = time.monotonic()
            self._hear_stops(ready)
            self._hear_askers(ready)
            if self._wakeup[0] in ready:
                os.read(self._wakeup[0], 4096)
                self._reap()
            if lines := self._later.due(now, soon=not listens and not self._under_way):
                self._see_to_later(lines)
            if self._listener.fileno() in ready:
                asked = now if self._take(self._listener.accept()[0]) else asked
            if listens and (now - begun > LONGEST or (not self._under_way and now - asked > IDLE)):
                listens = False
                poll.unregister(self._listener)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path)
                os.close(self._kept)  # the next request may leave another one behind
                while _is_ready(self._listener):
                    self._take(self._listener.accept()[0])
                self._listener.close()
        os._exit(0)

    def _reap(self) -> None:
        while self._children:
            child, status = os.waitpid(-1, os.WNOHANG)
            if not child:
                return
            code = os.waitstatus_to_exitcode(status)
            self._later.note_end(child, code)
            asker = self._children.pop(child)
            if asker is not None:
                self._leave(asker)
                _tell(asker, str(code if code >= 0 else 128 - code).encode())
                asker.close()

    @property
    def _under_way(self) -> int:
        return len(self._children) + len(self._gathering) + len(self._became)

    def _take(self, asker: "socket.socket") -> bool:
        """Take one request; return whether it was one. One that is not ours, or one too many, is told nothing: it starts its own process."""
        received = self._receive(asker) if self._under_way < self._most else None
        if received is None:
            asker.close()
            return False
        if not (received[0][2] and self._judged(asker, *received, None)):
            self._answer_in_fork(asker, *received, b"")
        return True

    def _judged(self, asker: "socket.socket", request: Handed, descriptors: list[int], came: bytes | None) -> bool:
        """Judge a request here, and tell the asker what it becomes; return whether that is done. `came`: all of its input, where that was gathered."""
        import select

        try:
            verdict = self._judge(request[0], came)
        except Exception:  # noqa: BLE001  # the fork meets the same, and says so
            return False
        if verdict == GATHER and came is None:
            self._gathering[asker.fileno()] = asker, request, descriptors
            self._poll.register(asker, select.POLLIN)
            _tell(asker, _GATHER)
            return True
        try:
            if verdict is None or not asker.send(_BECOME + verdict[0]):
                return False
        except OSError:  # more than a message holds
            return False
        for descriptor in descriptors:
            os.close(descriptor)
        self._became[asker.fileno()] = asker, verdict[1]
        self._poll.register(asker, 0)  # it says nothing more; that it ended is heard
        return True

    def _answer_in_fork(self, asker: "socket.socket", request: Handed, descriptors: list[int], came: bytes) -> None:
        child = os.fork()
        if not child:
            self._become(request, descriptors, came)
        for descriptor in descriptors:
            os.close(descriptor)
        self._children[child] = asker
        self._poll.register(asker, 0)
        _tell(asker, _TAKEN)

    def _hear_askers(self, ready: set[int]) -> None:
        """Go on with requests of which the input was gathered, and see to what waited for the end of others."""
        for number in ready & self._became.keys():
            asker, line = self._became.pop(number)
            self._leave(asker)
            asker.close()
            self._later.add(line)
        for number in ready & self._gathering.keys():
            asker, request, descriptors = self._gathering.pop(number)
            self._leave(asker)
            came = self._gathered(asker)
            if came is None:
                for descriptor in descriptors:
                    os.close(descriptor)
                asker.close()
            elif not (came[1] and self._judged(asker, request, descriptors, came[0])):
                self._answer_in_fork(asker, request, descriptors, came[0])

    def _gathered(self, asker: "socket.socket") -> tuple[bytes, bool] | None:
        """Return what an asker gathered of its input, and whether that is all; None: it ended before."""
        import socket

        try:
            said, descriptors, _, _ = socket.recv_fds(asker, len(_WHOLE), 1)
        except OSError:
            return None
        try:
            return (os.pread(descriptors[0], LITTLE, 0), said == _WHOLE) if descriptors else None
        except OSError:
            return None
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _hear_stops(self, ready: set[int]) -> None:
        """End the answers to those who were ended themselves before: by SIGTERM, or with the session of sshd's."""
        import contextlib
        import signal

        for child, asker in self._children.items():
            if asker is not None and asker.fileno() in ready:
                self._leave(asker)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGTERM)
                    os.killpg(child, signal.SIGTERM)

    def _leave(self, asker: "socket.socket") -> None:
        import contextlib

        with contextlib.suppress(KeyError):  # its end was heard before
            self._poll.unregister(asker)

    def _receive(self, asker: "socket.socket") -> tuple[Handed, list[int]] | None:
        import socket
        import struct

        *_, user, _ = struct.unpack("3i", asker.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if user != os.geteuid():
            return None
        asker.settimeout(_PATIENCE)
        descriptors: list[int] = []
        try:
            said, descriptors, flags, _ = socket.recv_fds(asker, _MOST, 3)
            request = parse_handover(said, self._identity)
        except (OSError, ValueError):
            request, flags = None, 0
        if request is None or len(descriptors) != 3 or flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
            for descriptor in descriptors:
                os.close(descriptor)
            return None
        return request, descriptors

    def _become(self, request: Handed, descriptors: list[int], came: bytes) -> "NoReturn":
        """Answer as the process that sshd started would."""
        import signal

        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
            put_off = self._later.keep_only_this(3)
            code = self._answer(*request[:2], put_off, came)
        finally:
            os._exit(code)

    def _see_to_later(self, lines: list[str]) -> None:
        import signal

        child = os.fork()
        if child:
            self._children[child] = None
            return
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.closerange(3, os.sysconf("SC_OPEN_MAX"))
            self._see_to(lines)
            code = 0
        finally:
            os._exit(code)


class _LaterLines:
    """Gathers the lines that answers put off: they come through a pipe from the forks, of which none waits, whatever becomes of its line."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._rest, self._lines = b"", list[str]()
        self._since: float | None = None  # when the first of them was seen
        self._at_end: dict[int, str] = {}  # by the process for whose good end they wait

    @property
    def waiting(self) -> bool:
        """Return whether there are lines that nobody has seen to."""
        return bool(self._lines)

    def due(self, now: float, *, soon: bool) -> list[str]:
        """Take what came; return all of it once it has waited long enough, or `soon`."""
        self._take()
        if not self._lines:
            return []
        self._since = now if self._since is None else self._since
        if not (soon or now - self._since > _SOON or len(self._lines) >= _MANY):
            return []
        lines, self._lines, self._since = self._lines, [], None
        return lines

    def add(self, line: str) -> None:
        """Take a line."""
        self._lines += [line] if line else []

    def note_end(self, process: int, code: int) -> None:
        """Take what waited for the end of a process, where it ended well."""
        self._take()
        line = self._at_end.pop(process, None)
        self._lines += [line] if line is not None and code == 0 else []

    def _take(self) -> None:
        import contextlib

        with contextlib.suppress(BlockingIOError):
            self._rest += os.read(self._read, 1 << 20)
        *whole, self._rest = self._rest.split(b"\n")
        for process, _, line in (each.partition(b" ") for each in whole):
            if process == b"0":
                self._lines.append(os.fsdecode(line))
            else:
                self._at_end[int(process)] = os.fsdecode(line)

    def keep_only_this(self, at: int) -> "PutOff":
        """Close all descriptors from `at` on, but for the way to put lines off; return that."""
        import contextlib

        os.dup2(self._write, at, inheritable=False)
        os.closerange(at + 1, os.sysconf("SC_OPEN_MAX"))

        def put_off(line: str, *, at_end: bool = False) -> None:
            with contextlib.suppress(OSError):  # more than the pipe holds, or nobody is there any more
                os.write(at, b"%d %s\n" % (os.getpid() if at_end else 0, os.fsencode(line)))

        return put_off


def parse_handover(said: bytes, identity: bytes) -> Handed | None:
    """Return a request; None: it is another program's."""
    whose, *words = said.split(b"\0")
    if whose != identity or len(words) not in (2, 3) or words[2:] not in ([], [_BECOMES.encode()]):
        return None
    return os.fsdecode(words[1]), os.fsdecode(words[0]), len(words) == 3


def _is_ready(listener: "socket.socket") -> bool:
    import select

    return bool(select.select([listener], [], [], 0)[0])


def _tell(asker: "socket.socket", words: bytes) -> None:
    import contextlib

    with contextlib.suppress(OSError):  # it has gone, and its request ends by itself
        asker.send(words)
