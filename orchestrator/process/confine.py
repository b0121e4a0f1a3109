"""Confinement: this process is shut into what it may read, for ever, with all that it starts; then another program takes its place.

The kernel's Landlock does it, for root too. Source: landlock(7), linux/landlock.h.
"""

import ctypes
import errno
import fcntl
import functools
import os
import select
import signal
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NoReturn

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.plan import Command
from orchestrator.process.other_disks import let_go_of_disks
from orchestrator.process.program_path import SYSTEM_PATH, is_missing

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same on every architecture
_VERSION_FLAG, _BENEATH = 1, 1
_NO_NEW_PRIVS = 38
_IOCTL = 1 << 15
_EXECUTE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 2, 1 << 3
READABLE = _READ_FILE | _READ_DIR
_WRITE_FILE = 1 << 1
_OF_FILES = _EXECUTE | _READ_FILE | _WRITE_FILE | _IOCTL
_SINCE_MOVES = 2  # the first version that lets a confined process rename into another folder
# Mounts of our own. Source: mount_setattr(2), open_tree(2), move_mount(2); the numbers are the same on every architecture.
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_NEW_MOUNTS, _SLAVE_MOUNTS = 0x20000, 1 << 19
_HERE, _EMPTY_PATH, _RECURSIVE, _CLONE, _BY_DESCRIPTORS = -100, 0x1000, 0x8000, 0x80001, 0x44
_MOUNT_READ_ONLY, _MOUNT_PLAIN = 0x1, 0x20000E  # the second: no setuid, no devices, no programs, no link followed
_MOUNT_NO_LINKS, _FROM_ITSELF = 0x200000, 0x4
# What each version of the interface can forbid: files since 1, moving to another folder since 2, truncating since 3, devices
# since 5; the network since 4, signals and abstract sockets of others since 6.
_FILES = {1: (1 << 13) - 1, 2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
_NETWORK, _SCOPES = {4: 0b11}, {6: 0b11}
_STOPS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
_LAST_WORDS = 5.0  # seconds in which a program that is asked to end may say why
_PROGRAMS = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
_SYSTEM = ("/etc/ld.so.cache", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/alternatives")
# What zfs, zpool and the scripts that ask them look at; of these, only the door to the kernel's part is more than read.
_ZFS_DOOR = "/dev/zfs"
DATASET_VARIABLES = {"PATH": ":".join(SYSTEM_PATH), "LC_ALL": "C.UTF-8"}
_OF_DATASETS = ("/proc", "/sys", "/etc/zfs", "/etc/hostid", "/etc/mtab", "/dev/disk")
_OF_SIGNALS = 0b10
_ENDS_OTHERS = "end-receive.sh"  # the one script that signals what an earlier request of the gate became


class ConfinementUnavailable(OSError):
    """A kernel without Landlock, or one in which it is switched off."""


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Rule(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def become(command: Command, *, folders: Sequence[int]) -> NoReturn:
    """Go into an open folder, shut this process into reading these and the system's programs, and become the command.

    `folders` empty: there is none, which is for the command to tell. Raises: ConfinementUnavailable · FileNotFoundError for a program
    that is not installed · OSError. Looked for before, as a confined process cannot import what a message needs. An rsync follows no
    link in what it reads, where the kernel lets this user make mounts of its own.
    """
    variables = {"PATH": ":".join(SYSTEM_PATH), "LC_ALL": "C.UTF-8", **dict(command.environment)}
    if is_missing(command.argv[0], variables):
        raise FileNotFoundError(errno.ENOENT, "command not found", command.argv[0])
    os.chdir(folders[0] if folders else "/")
    if command.argv[0] == "rsync" and "." in command.argv:
        command = _wall_off(command)
    confine(folders)
    os.execvpe(command.argv[0], command.argv, variables)  # noqa: S606 - no shell is wanted


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("user", ctypes.c_uint64),
    )


def _wall_off(command: Command) -> Command:
    """Return the far half of an rsync with its paths in a second "/" that follows no link; where there can be none, as it is."""
    from orchestrator.process.link_wall import FAR_ROOT

    root = close_links(command.argv)
    if root is None:
        return command
    at = command.argv.index(".") + 1
    inside = f"/proc/self/fd/{fcntl.fcntl(root, fcntl.F_DUPFD, FAR_ROOT)}"
    return replace(command, argv=(*command.argv[:at], *(inside + path for path in command.argv[at:])))


def close_links(words: Collection[str] = ()) -> int | None:
    """Give this process mounts of its own, and a second "/" that follows no link; return its descriptor, None where that cannot be.

    `words`: with the paths that it works on; of other disks it lets go.

    As `without-links.pl` makes one. Why not by that: a confined process may mount nothing.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        _checked(libc.unshare(_NEW_MOUNTS))
        _set_mount(libc, _HERE, b"/", _RECURSIVE, _MountAttributes(propagation=_SLAVE_MOUNTS))
        let_go_of_disks(libc, words)
        root = _checked(libc.syscall(_OPEN_TREE, _HERE, b"/", _CLONE | _RECURSIVE))
        _set_mount(libc, root, b"", _EMPTY_PATH | _RECURSIVE, _MountAttributes(set=_MOUNT_NO_LINKS))
        _checked(libc.syscall(_MOVE_MOUNT, root, b"", _HERE, b"/", _FROM_ITSELF))
    except OSError:
        return None
    return root


def enter_own_mounts(words: Collection[str]) -> None:
    """Give this process mounts of its own, in which all is read-only. What was opened before is not. Raises: ConfinementUnavailable.

    `words`: with the paths that it works on; of other disks it lets go.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        _checked(libc.unshare(_NEW_MOUNTS))
        _set_mount(libc, _HERE, b"/", _RECURSIVE, _MountAttributes(propagation=_SLAVE_MOUNTS))
        let_go_of_disks(libc, words)
        _set_mount(libc, _HERE, b"/", _RECURSIVE, _MountAttributes(set=_MOUNT_READ_ONLY))
    except OSError as error:
        raise ConfinementUnavailable(error.errno, "only root can have mounts of its own, since Linux 5.12") from error


def shut_into(folder: int, area: str) -> int:
    """Shut this process into reading an open folder, and writing in what lies at `area` below it; return that, open.

    No link is followed below the folder, and no mode, owner or time outside of the area can be changed, as it is mounted read-only.
    After `enter_own_mounts`. Raises: ConfinementUnavailable · OSError.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    whole = _mounted_again(libc, folder, _MountAttributes(set=_MOUNT_PLAIN | _MOUNT_READ_ONLY))
    inner = os.open(".", os.O_PATH | os.O_CLOEXEC, dir_fd=whole)
    for part in filter(None, area.split("/")):
        inner = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inner)
    writable = _mounted_again(libc, inner, _MountAttributes(set=_MOUNT_PLAIN, clear=_MOUNT_READ_ONLY))
    os.fchdir(writable)
    confine((whole if area else writable,), writable=(writable,))
    return writable


def _mounted_again(libc: ctypes.CDLL, folder: int, attributes: _MountAttributes) -> int:
    """Mount an open folder over itself; return the new mount, open."""
    mount = _checked(libc.syscall(_OPEN_TREE, folder, b"", _CLONE | _EMPTY_PATH))
    _set_mount(libc, mount, b"", _EMPTY_PATH, attributes)
    _checked(libc.syscall(_MOVE_MOUNT, mount, b"", folder, b"", _BY_DESCRIPTORS))
    return mount


def _set_mount(libc: ctypes.CDLL, at: int, path: bytes, flags: int, attributes: _MountAttributes) -> None:
    _checked(libc.syscall(_MOUNT_SETATTR, at, path, flags, ctypes.byref(attributes), ctypes.sizeof(attributes)))


def run_apart(action: Callable[[], int], *, may_go_on: Callable[[], float] | None = None) -> int:
    """Return the exit status of an action, in a process of its own, which may become a program.

    `may_go_on`: returns the seconds until it is to be asked again; 0 ends the process, with all that it started. A stop of ours does, too.
    """
    stopped = _hear_stops() if may_go_on is not None else -1
    child = os.fork()
    if not child:
        try:
            if may_go_on is not None:
                for number in _STOPS:
                    signal.signal(number, signal.SIG_DFL)
                os.setsid()
            os._exit(action())
        except BaseException as error:  # noqa: BLE001  # a child never goes on as its parent
            os.write(2, f"{error}\n".encode("utf-8", "backslashreplace"))
            os._exit(1)
    if may_go_on is not None:
        _watch(child, may_go_on, stopped)
        os.close(stopped)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if status >= 0 else 128 - status


def _hear_stops() -> int:
    """Return a descriptor that can be read once we are asked to end. Why no exception: it could come before anybody expects it."""
    stopped, says = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def say(*_: object) -> None:
        with suppress(BlockingIOError):
            os.write(says, b".")

    for number in _STOPS:
        signal.signal(number, say)
    return stopped


def _watch(child: int, may_go_on: Callable[[], float], stopped: int) -> None:
    """Wait for the end of a child, and end it with its session where it may not go on, or where we are asked to end."""
    ended = os.pidfd_open(child)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(stopped, select.POLLIN)
    try:
        pause = may_go_on()
        while pause and not (ready := [each for each, _ in poll.poll(1000 * pause)]):
            pause = may_go_on()
        if pause and ended not in ready:
            pause = 0
        poll.unregister(stopped)
        for number in () if pause else (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(child, number)
            if poll.poll(1000 * _LAST_WORDS):
                break
        if not pause:  # what it started and left behind
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
    finally:
        os.close(ended)


def become_shut_in(command: Command) -> NoReturn:
    """Become the command, in the folder that `shut_into` left this process in. Raises: OSError."""
    variables = {"PATH": ":".join(SYSTEM_PATH), "LC_ALL": "C.UTF-8", **dict(command.environment)}
    os.execvpe(command.argv[0], command.argv, variables)  # noqa: S606 - no shell is wanted


def become_for_datasets(command: Command) -> NoReturn:
    """Shut this process into asking zfs, where the kernel can, and become the command. Raises: OSError."""
    confine_to_datasets(signals=ends_others(command))
    os.execvpe(command.argv[0], command.argv, DATASET_VARIABLES)  # noqa: S606 - no shell is wanted


def ends_others(command: Command) -> bool:
    """Return whether a command is the script that ends a receive, which is a process that was shut in by itself."""
    return command.argv[:2] == ("sh", "-c") and command.argv[3:4] == (_ENDS_OTHERS,)


def confine_to_datasets(*, signals: bool = False) -> None:
    """Shut this process into asking zfs, and reading the programs of the system, where the kernel can. Raises: OSError.

    `signals`: it may end processes that it did not start.
    Why not refused elsewhere: what zfs may do is held by the words that it gets, of which none is a path.
    """
    os.chdir("/")
    with suppress(ConfinementUnavailable):
        confine((), datasets=True, signals=signals)


def confine(
    readable: Iterable[int], *, datasets: bool = False, writable: Iterable[int] = (), signals: bool = False
) -> None:
    """Shut this process into reading these open folders, and the programs of the system. Raises: ConfinementUnavailable · OSError.

    `datasets`: and into what zfs needs. `writable`: and into changing what is in these. `signals`: others may be signalled.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    version = _version(libc)
    if version < 1:
        raise ConfinementUnavailable(ctypes.get_errno(), "the kernel has no Landlock, or it is switched off")
    if writable and version < _SINCE_MOVES:
        raise ConfinementUnavailable(errno.ENOSYS, "the kernel's Landlock is older than Linux 5.19")
    handled = _sum(_FILES, version)
    ruleset = _ruleset(version, signals=signals)
    rules = _checked(libc.syscall(_CREATE_RULESET, ruleset, len(ruleset), 0))
    try:
        for folder in readable:
            _add(libc, rules, folder, READABLE)
        for folder in writable:
            _add(libc, rules, folder, handled & ~(_EXECUTE | _IOCTL))
        for path, rights in _system_rules(handled, datasets=datasets):
            _allow(libc, rules, path, rights)
        _checked(libc.prctl(_NO_NEW_PRIVS, 1, 0, 0, 0))
        _checked(libc.syscall(_RESTRICT_SELF, rules, 0))
    finally:
        os.close(rules)


@functools.cache
def confinement_to_datasets(*, signals: bool) -> tuple[int, bytes, tuple[tuple[str, int, int], ...]]:
    """Return what `confine_to_datasets` does here, for another program to do the same: the version of Landlock, 0 where there is none; its
    ruleset; and of each path what is allowed in it where it is a folder, and of it where it is a file.
    """
    version = max(0, _version(ctypes.CDLL(None, use_errno=True)))
    if not version:
        return 0, b"", ()
    rules = _system_rules(_sum(_FILES, version), datasets=True)
    return (
        version,
        _ruleset(version, signals=signals),
        tuple((path, rights, rights & _OF_FILES) for path, rights in rules),
    )


def _version(libc: ctypes.CDLL) -> int:
    return int(libc.syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG))


def _ruleset(version: int, *, signals: bool) -> bytes:
    """Return what the kernel is told to forbid, as long as this version of its interface has it."""
    scopes = _sum(_SCOPES, version) & ~(_OF_SIGNALS if signals else 0)
    whole = _Ruleset(_sum(_FILES, version), _sum(_NETWORK, version), scopes)
    return bytes(whole)[: 8 if version < 4 else 16 if version < 6 else 24]


def _system_rules(handled: int, *, datasets: bool) -> Iterator[tuple[str, int]]:
    """Yield the paths of the system that stay open, and what is allowed below them."""
    for path in _PROGRAMS:
        yield path, READABLE | _EXECUTE
    for path in _SYSTEM:
        yield path, READABLE
    yield "/dev/null", _READ_FILE | _WRITE_FILE
    if datasets:
        for path in _OF_DATASETS:
            yield path, READABLE
        yield _ZFS_DOOR, _READ_FILE | _WRITE_FILE | (_IOCTL & handled)


def _sum(rights: dict[int, int], version: int) -> int:
    return sum(bits for since, bits in rights.items() if since <= version)


def _allow(libc: ctypes.CDLL, rules: int, path: str, rights: int) -> None:
    """Allow the rights below the path, where there is one; of a file only those that a file has."""
    with suppress(FileNotFoundError):
        at = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            single = not stat.S_ISDIR(os.fstat(at).st_mode)
            _add(libc, rules, at, rights & _OF_FILES if single else rights)
        finally:
            os.close(at)


def _add(libc: ctypes.CDLL, rules: int, at: int, rights: int) -> None:
    rule = _Rule(rights, at)
    _checked(libc.syscall(_ADD_RULE, rules, _BENEATH, ctypes.byref(rule), 0))


def _checked(result: int) -> int:
    """Return the result of a system call. Raises: OSError."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
