"""The answer to a request that adds to the points in a gate's folder: kept apart from others, shut in, then carried out."""

import contextlib
import fcntl
import os
import shlex
import stat
import time
from collections.abc import Callable, Iterator

from orchestrator.domain.arrival import folder_mark
from orchestrator.domain.gate import ADDING, APPEND_ONLY, BUSY, CutStream, GateRefusal
from orchestrator.domain.names import POINT_NAME, show_name
from orchestrator.domain.plan import Command
from orchestrator.domain.units import show_size
from orchestrator.engines.rsync.model import OURS, WORK
from orchestrator.gate.add_points import ALONE, LINKED, POINTS, PointAddition
from orchestrator.process.confine import (
    ConfinementUnavailable,
    become_shut_in,
    enter_own_mounts,
    run_apart,
    shut_into,
)
from orchestrator.process.forks import ForkedHelpers
from orchestrator.process.relay import SilentInput, TooMuchInput, feed, read_input, write_output
from orchestrator.trees.beneath import Folder, Untrusted
from orchestrator.trees.linked_tree import LinkedTree

_PAUSE = 0.05  # seconds between two looks whether others have ended
_FASTEST, _SHORTEST, _LONGEST = (
    4e9,
    0.05,
    5.0,
)  # bytes a second that no disk takes; seconds between two looks at what is free
_TOLD = 10.0  # seconds between two lines that say how many entries are linked
_SILENCE = 300.0  # seconds in which nothing of names or of a small file comes, as from a machine that lost its power
_MOST_NAMES = 512 << 20  # bytes of paths that are not linked


def add_points(root: str, asked: PointAddition, *, keep_free: int | None = None) -> int:
    """Carry out a request that writes; return its exit status, where this process does not become a program. `keep_free`: in bytes.

    Raises: GateRefusal for a folder that is not ours alone, for what could change a point, and where too little is free.
    """
    try:
        with _opened(root) as folder, folder.make_folder(OURS) as ours:
            folder.make_private()
            ours.make_private()
            _wait(ours, asked)
            _require(folder, ours, asked)
            if asked.fills and keep_free is not None:
                _require_free(root, keep_free)
            if asked.prepares:
                _tidy(folder, ours)
            if asked.links:
                ours.write_file(LINKED, b"")
            if asked.parts:
                return _part(folder, ours, asked, keep_free)
            same = os.fstat(folder.fd)
        if asked.fills and keep_free is not None:
            return _watched(root, same, asked, keep_free)
        if asked.makes:  # and then this process records that it came
            return run_apart(lambda: _carry_out(root, same, asked))
        return _carry_out(root, same, asked)
    except ConfinementUnavailable as error:
        raise GateRefusal(f"this machine cannot shut it into one folder: {error.strerror}") from error
    except Untrusted as error:
        raise GateRefusal(f"{show_name(str(error.filename or root))} {error.strerror}") from error


def point_marks(root: str) -> tuple[tuple[str, str], ...]:
    """Return name and mark of each point in the gate's folder, in the order in which they got their names here. Raises: OSError."""
    with Folder.at_place(root) as folder, folder.enter(POINTS) as points:
        found = [(name, points.status(name)) for name in os.listdir(points.fd) if POINT_NAME.fullmatch(name)]
    there = sorted((seen.st_ctime_ns, name, seen.st_ino) for name, seen in found if stat.S_ISDIR(seen.st_mode))
    return tuple((name, folder_mark(name, number)) for _, name, number in there)


@contextlib.contextmanager
def _opened(root: str) -> Iterator[Folder]:
    try:
        folder = Folder.at_place(root)
    except FileNotFoundError:
        hint = f"`install -d -m 700 {shlex.quote(root)}` makes it"
        raise GateRefusal(f"{show_name(root)} is not there: {hint}") from None
    with folder:
        yield folder


def _wait(ours: Folder, asked: PointAddition) -> None:
    """Keep this process, and all that it becomes, apart from others of the gate. Raises: GateRefusal when they do not end in time."""
    try:
        lock = ours.open_file(ADDING, change=True)
    except FileNotFoundError:
        with contextlib.suppress(FileExistsError):
            ours.create_file(ADDING, b"")
        lock = ours.open_file(ADDING, change=True)
    os.set_inheritable(lock, True)
    how = fcntl.LOCK_EX if asked.lock == ALONE else fcntl.LOCK_SH
    until = time.monotonic() + asked.patience
    while True:
        try:
            fcntl.flock(lock, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise GateRefusal(f"{BUSY}another request of this key writes there still") from None
            time.sleep(_PAUSE)
            continue
        return


def _require(folder: Folder, ours: Folder, asked: PointAddition) -> None:
    """Raises: GateRefusal for what could change a point that is there."""
    if asked.streams and _kind(ours, LINKED):
        raise GateRefusal(
            f"{APPEND_ONLY}the work tree shares files with a point, and takes no copy until it is parted from it"
        )
    if asked.makes and (
        _kind(folder, f"{POINTS}/{asked.makes}") or _kind(folder, f"{POINTS}/{asked.makes}.manifest.gz")
    ):
        raise GateRefusal(f"{APPEND_ONLY}the point {asked.makes} is there already")
    if asked.links and _kind(folder, f"{POINTS}/{asked.links}") != stat.S_IFDIR:
        raise GateRefusal(f"there is no point {asked.links}")


def _tidy(folder: Folder, ours: Folder) -> None:
    """Remove what a cut publishing left: the note on a work tree that is a point by now, and manifests whose tree never came."""
    if not _kind(folder, WORK) and _kind(ours, LINKED):
        ours.remove_file(LINKED)
    if _kind(folder, POINTS) != stat.S_IFDIR:
        return
    with folder.enter(POINTS) as points:
        for name in os.listdir(points.fd):
            tree = name.removesuffix(".manifest.gz")
            if tree != name and not _kind(points, tree) and _kind(points, name) == stat.S_IFREG:
                points.remove_file(name)


def _kind(folder: Folder, name: str) -> int:
    """Return the kind of an entry, as stat tells it; 0: there is none."""
    try:
        return stat.S_IFMT(folder.status(name).st_mode)
    except FileNotFoundError:
        return 0


def _require_free(root: str, keep: int) -> None:
    """Raises: GateRefusal where less is free than has to stay so."""
    if (free := _free(root)) < keep:
        raise GateRefusal(f"{show_size(free)} are free where {root} lies, and keep-free holds {show_size(keep)} back")


def _free(root: str) -> int:
    seen = os.statvfs(root)
    return seen.f_bavail * seen.f_frsize


def _watched(root: str, same: os.stat_result, asked: PointAddition, keep: int | None) -> int:
    """Carry out a request in a process of its own, which ends where too little stays free. Raises: GateRefusal."""
    if keep is None:
        return run_apart(lambda: _carry_out(root, same, asked))

    def may_go_on() -> float:
        left = _free(root) - keep
        return 0 if left < 0 else min(max(left / _FASTEST, _SHORTEST), _LONGEST)

    status = run_apart(lambda: _carry_out(root, same, asked), may_go_on=may_go_on)
    if status:
        _require_free(root, keep)
    return status


def _part(folder: Folder, ours: Folder, asked: PointAddition, keep: int | None) -> int:
    """Part the work tree from the points in a process of its own, then take back the note that it shares files with one."""
    same = os.fstat(folder.fd)
    status = _watched(folder.shown, same, asked, keep)
    if not status and _kind(ours, LINKED):
        ours.remove_file(LINKED)
    return status


def _carry_out(root: str, same: os.stat_result, asked: PointAddition) -> int:
    """Shut this process into the folder, and become the command, or link what is unchanged."""
    names = _read_names() if asked.links else frozenset()
    enter_own_mounts((root, *(asked.command.argv if asked.command is not None else ())))
    with Folder.at_place(root) as folder:
        if not os.path.samestat(os.fstat(folder.fd), same):
            raise GateRefusal(f"{show_name(root)} was exchanged just now")
        if asked.command is not None:
            shut_into(folder.fd, asked.area)
            if asked.stores:
                return _store(asked.command)
            become_shut_in(asked.command)
        return _link(folder, asked, names)


def _store(command: Command) -> int:
    """Run the command that stores our input. Raises: CutStream where nothing comes: all others of the key wait meanwhile."""
    try:
        return feed(command, b"", limit=None, patience=_SILENCE)
    except SilentInput:
        raise CutStream("watchdog timeout: nothing of the file came for too long") from None


def _read_names() -> frozenset[str]:
    """Return the paths on our input, NUL-terminated.

    Raises: GateRefusal for more than the memory should hold, CutStream where nothing comes: all others of the key wait meanwhile.
    """
    try:
        text = read_input(at_most=_MOST_NAMES, patience=_SILENCE)
    except TooMuchInput:
        raise GateRefusal("more names that differ than it can hold") from None
    except SilentInput:
        raise CutStream("watchdog timeout: nothing of the names came for too long") from None
    return frozenset(os.fsdecode(name.removeprefix(b"./")) for name in text.split(b"\0"))


def _link(folder: Folder, asked: PointAddition, names: frozenset[str]) -> int:
    """Link into the work tree what the point has, the work tree has not, and no name names as different; print now and then how many are."""
    shut_into(folder.fd, "")
    here = Folder(".")
    with here, here.enter(f"{POINTS}/{asked.links}") as old, here.enter(WORK) as new:
        LinkedTree(names, over=True, tells=_teller(), start=ForkedHelpers.start).make(old, new)
    return 0


def _teller() -> Callable[[int], None]:
    """Return what prints a number to our output, where some time has passed since the last one. Raises OSError where nobody hears it any more."""
    last = time.monotonic()

    def tell(count: int) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= _TOLD:
            last = now
            write_output(str(count))

    return tell
