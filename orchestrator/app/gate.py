"""Gates: the answer to one request of a key."""

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NoReturn, cast

from orchestrator import compose
from orchestrator.app.settings import Settings
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.gate import BUSY, HELLO, LINKS, CutStream, Gate, GateRefusal
from orchestrator.domain.names import printable_word, show_name
from orchestrator.domain.plan import Command
from orchestrator.domain.units import show_count, show_size
from orchestrator.trees.beneath import Folder, Untrusted

if TYPE_CHECKING:
    from orchestrator.gate.add_points import PointAddition
    from orchestrator.gate.receive import Reception
    from orchestrator.history.arrivals import ArrivalLedger
    from orchestrator.process.handover import Answer, PutOff
    from orchestrator.process.input_limit import InputLimit

_OF_FOLDERS = ("reads", "adds")
_ASKED_EACH_TIME = "survey.sh"  # the one question of a run with nothing to do; others name snapshots, which change


def answer_request(
    settings: Settings,
    name: str,
    line: str,
    asker: str,
    *,
    later: "Answer | None" = None,
    put_off: "PutOff | None" = None,
    came: bytes = b"",
) -> int:
    """Become the command that answers the request that came through the gate, or feed it and return its exit status.

    `later`: answers the next requests in forks of a process that this one leaves behind. `put_off`: by which such a fork leaves it
    to that process to record what came. `came`: what was read of our input before.

    Raises: GateRefusal for a request that is not admitted, CutStream for a stream that broke off, DeclarationError for a gate that is not declared.
    """
    import syslog

    from orchestrator.gate.admit import admit
    from orchestrator.gate.request import parse_request
    from orchestrator.process.handover import leave_behind

    gate = compose.read_gate(settings.where, name)
    syslog.openlog("poolferry-gate", syslog.LOG_PID, syslog.LOG_AUTH)
    try:
        request = parse_request(line)
        right, answer = ("", None) if request.name == HELLO else admit(request, gate)
        place = _take_place(settings, name, gate.connections)
        if later is not None:
            leave_behind(
                settings.where.state, name, gate.connections, later, judge=partial(judge_request, settings, name),
                prepare=partial(_import_answers, gate), see_to=partial(_note_arrivals, settings, name),
            )  # fmt: skip
        if answer is None:
            return _hello(name, gate, request.values)
        syslog.syslog(syslog.LOG_INFO, f"{name}: {show_name(asker)}: {request}")
        if not isinstance(answer, Command):
            return (
                _add(settings, name, gate, cast("PointAddition", answer))
                if right == "adds"
                else _receive(settings, name, gate, cast("Reception", answer), place, put_off, came)
            )
    except GateRefusal as refusal:
        syslog.syslog(syslog.LOG_WARNING, f"{name}: refused to {show_name(asker)}: {printable_word(refusal.why)}")
        raise
    if request.name == LINKS:
        return _tell_of_links()
    folders = {"reads": gate.reads, "adds": (gate.adds,)}
    if request.name == _ASKED_EACH_TIME:
        _record_question(settings, name, gate, line, str(request), answer)
    return _read(folders[right], answer) if right in folders else _ask_zfs(answer)


def judge_request(settings: Settings, name: str, line: str, came: bytes | None) -> tuple[bytes, str] | None:
    """Judge a request as `answer_request` does; return what its asker needs to become the answer, and what to note once that has ended.

    `GATHER`: its whole input is to be gathered first, and `came` again; None: it takes a process of ours. Raises: GateRefusal and others,
    which that process says.
    """
    from orchestrator.gate.admit import admit
    from orchestrator.gate.request import parse_request
    from orchestrator.process.handover import GATHER
    from orchestrator.process.recorded_answers import answer_message

    gate, request = compose.read_gate(settings.where, name), parse_request(line)
    if request.name in (HELLO, _ASKED_EACH_TIME):
        return None
    right, answer = admit(request, gate)
    if isinstance(answer, Command):
        if right in _OF_FOLDERS:  # one may lie in a mount that hangs, and whoever opens it then, with it
            return None
        return answer_message(answer, most=gate.connections, shown=str(request)), ""
    if right != "receives" or gate.at_most is not None:
        return None
    if came is None:
        return GATHER
    looked = _look_at_stream(cast("Reception", answer), came)
    if looked is None:
        return None
    command, newest = looked
    note = "" if newest is None else _came(newest)
    return answer_message(command, most=gate.connections, shown=str(request)), note


def _look_at_stream(asked: "Reception", whole: bytes) -> tuple[Command, str | None] | None:
    """Look at a whole stream; return what receives it, and the snapshot that it ends with; None: it ends in its head. Raises: GateRefusal."""
    from orchestrator.gate.receive import newest_name
    from orchestrator.gate.stream_head import missing_bytes, parse_head
    from orchestrator.gate.stream_records import RecordWatch

    end = 0
    while missing := missing_bytes(whole[:end]):
        end += missing
        if end > len(whole):
            return None
    parsed = parse_head(whole[:end])
    if parsed.of_several is not None:
        RecordWatch(parsed.of_several, skip=parsed.skip).follow(whole[end:])
    return asked.command(parsed), newest_name(asked.dataset, parsed)


def _record_question(settings: Settings, name: str, gate: Gate, line: str, shown: str, answer: Command) -> None:
    """Record a question and what answers it, so that the same one again needs no Python. Where it cannot be, it needs it again."""
    from orchestrator.config.gates import gate_file
    from orchestrator.process.recorded_answers import (
        GateQuestion,
        is_answered_by_record,
        mark_file,
        questions_file,
        with_question,
    )
    from orchestrator.trees.beneath import new_file_at

    file, asked = gate_file(settings.where.config, name), questions_file(settings.where.state, name)
    with suppress(OSError, ValueError):
        now = compose.now().timestamp()
        mark = mark_file(file, now) if is_answered_by_record(file) else ""
        # Read again: what the mark is of is what admitted the question.
        if not mark or compose.read_gate(settings.where, name) != gate:
            return
        recorded = b""
        with suppress(FileNotFoundError), open(asked, "rb") as held:
            recorded = held.read()
        question = GateQuestion(line=line, shown=shown, file=file, mark=mark, most=gate.connections)
        changed = with_question(recorded, question, answer, now=now)
        if changed != recorded:
            with new_file_at(asked) as new:
                new.write(changed)


def _add(settings: Settings, name: str, gate: Gate, asked: "PointAddition") -> int:
    """Add to the points in the gate's folder; return the exit status. Raises: GateRefusal."""
    from orchestrator.app.gate_folder import add_points, point_marks
    from orchestrator.history.arrivals import note_unknown

    status = add_points(gate.adds, asked, keep_free=gate.keep_free)
    if asked.makes and status == 0:
        with suppress(OSError):  # then it counts as come when it is first seen
            marks = point_marks(gate.adds)
            made = next(mark for point, mark in marks if point == asked.makes)
            note_unknown(settings.where.state, name, gate.adds, [mark for _, mark in marks], compose.now(), again=made)
    return status


def _hello(name: str, gate: Gate, values: tuple[str, ...]) -> int:
    """Print what this gate is and can, and become the command that says the same of its rsync, if that is asked. Raises: GateRefusal."""
    from orchestrator import __version__
    from orchestrator.domain.gate import (
        ALONE,
        PROTOCOLS,
        GateHello,
        common_protocol,
        format_hello,
        parse_hello,
        who_upgrades,
    )
    from orchestrator.engines.rsync.commands import rsync_version_command
    from orchestrator.process.relay import write_output

    try:
        theirs = parse_hello(values[0] if len(values) == 1 or values[1:] == (ALONE,) else "")
    except ValueError as error:
        raise GateRefusal(f"it was greeted with what is no greeting: {error}") from None
    if common_protocol(theirs.protocols) is None:
        raise GateRefusal(who_upgrades(theirs.protocols, here="the machine of this gate", there="the one that asks"))
    write_output(format_hello(GateHello(poolferry=__version__, protocols=PROTOCOLS, gate=name, rights=gate.rights)))
    if values[1:]:
        return 0
    return _read((), rsync_version_command(None))


def _tell_of_links() -> int:
    """Print whether rsync is started here so that no link leads it anywhere, as the script of that question does at a login.

    Why not by that: a gate has a wall of its own, and this process has no other use than to try it.
    """
    from orchestrator.process.confine import close_links
    from orchestrator.process.relay import write_output

    write_output("open" if close_links() is None else "closed")
    return 0


_ANSWERS = {
    "reads": ("gate.read_only",),
    "adds": ("app.gate_folder", "gate.add_points", "history.arrivals", "trees.linked_tree"),
    "sends": ("engines.zfs.recovery.kit", "gate.send"),
    "receives": ("gate.receive", "gate.stream_head", "gate.stream_records", "history.arrivals", "process.input_limit"),
}


def _import_answers(gate: Gate) -> None:
    """Import what answers the requests of this gate, and says what is wrong with one."""
    from importlib import import_module

    of_rights = (module for right in gate.rights for module in _ANSWERS[right])
    for module in (
        "cli.terminal.errors",
        "process.confine",
        "process.recorded_answers",
        "process.relay",
        "views.gate",
        *of_rights,
    ):
        import_module(f"orchestrator.{module}")


def _ask_zfs(command: Command) -> NoReturn:
    """Become a command that asks zfs. Raises: OSError."""
    from orchestrator.process.confine import become_for_datasets

    become_for_datasets(command)


def _read(paths: tuple[str, ...], command: Command) -> NoReturn:
    """Become a command that only reads in these folders. Raises: GateRefusal."""
    from orchestrator.process.confine import ConfinementUnavailable, become

    path = ""
    try:
        with ExitStack() as opened:
            folders: list[int] = []
            for path in paths:
                folder = opened.enter_context(_folder(path))
                folders += [] if folder is None else [folder]
            become(_by_real_path(command), folders=folders)
    except ConfinementUnavailable as error:
        raise GateRefusal(f"this machine cannot shut it into one folder: {error.strerror}") from error
    except Untrusted as error:
        raise GateRefusal(f"{show_name(path)} {error.strerror}") from error


def _take_place(settings: Settings, name: str, most: int) -> tuple[int, int]:
    """Take one of the gate's places until this process and all that it becomes have ended; return their open file, and its number.

    Raises: GateRefusal.
    """
    file = f"{settings.where.state}/gate-{name}.places"
    try:
        os.makedirs(settings.where.state, mode=0o700, exist_ok=True)
        places = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise GateRefusal(f"it cannot count its requests in {show_name(file)}: {error.strerror}") from error
    os.set_inheritable(places, True)
    from orchestrator.process.input_limit import place_taker

    with place_taker(settings.where.state, name) as forget:
        for place in range(most):
            try:
                fcntl.fcntl(places, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0))
            except BlockingIOError:
                continue
            try:
                forget(place)
            except OSError as error:
                file = f"{settings.where.state}/gate-{name}.bytes"
                raise GateRefusal(
                    f"it cannot count what streams bring in {show_name(file)}: {error.strerror}"
                ) from None
            return places, place
    raise GateRefusal(f"{BUSY}{show_count(most, 'request')} of this key may be answered at once")


def _receive(
    settings: Settings,
    name: str,
    gate: Gate,
    asked: "Reception",
    place: tuple[int, int],
    put_off: "PutOff | None",
    came: bytes,
) -> int:
    """Receive a stream as the gate lets it, and record when it came; return the receiver's exit status.

    Raises: GateRefusal, CutStream for one that ended or fell silent before its receiver began.
    """
    from orchestrator.gate.receive import newest_name
    from orchestrator.gate.stream_head import missing_bytes, parse_head
    from orchestrator.gate.stream_records import RecordWatch
    from orchestrator.process.confine import confine_to_datasets
    from orchestrator.process.handover import LITTLE
    from orchestrator.process.relay import InputBegin, SilentInput, TooMuchInput, become_fed, feed

    limit = None if gate.at_most is None else _limit(settings, name, gate.receives, gate.at_most, place)
    try:
        begin = InputBegin(came, asked.patience)
        parsed = parse_head(head := begin.head(missing_bytes))
        command = asked.command(parsed)  # refuses what it does before more is read
        several = parsed.of_several
        watch = None if several is None else RecordWatch(several, skip=parsed.skip)
        data, whole = begin.rest(head, LITTLE, watch)
        if limit is not None and limit.take(len(data)) < len(data):
            raise TooMuchInput
        newest = newest_name(asked.dataset, parsed)
        arrivals = _open_ledger(settings, name) if put_off is None else None
        confine_to_datasets()  # and from here on nothing can be imported or opened
        if whole and put_off is not None:
            if newest is not None:
                put_off(_came(newest), at_end=True)
            become_fed(command, data)
        status = feed(command, data, limit=limit, watch=watch, memory=asked.memory, patience=asked.patience)
    except EOFError:
        raise CutStream("incomplete stream: it ended before it began") from None
    except SilentInput:
        raise CutStream("watchdog timeout: nothing of the stream came, or was received, for too long") from None
    except TooMuchInput:
        raise GateRefusal(
            f"with what is used in {gate.receives}, and what streams bring now, this one is more than at-most allows: {show_size(gate.at_most)}"
        ) from None
    if status == 0 and newest is not None:
        if put_off is not None:
            put_off(_came(newest))
        elif arrivals is not None:
            _write_arrivals(arrivals, [_came(newest)])
    return status


def _came(snapshot: str) -> str:
    """Return the line that says that a snapshot came now."""
    return f"{compose.now().isoformat()}\t{snapshot}"


def _note_arrivals(settings: Settings, name: str, came: list[str]) -> None:
    """Record when snapshots came, each as a time and a whole name. zfs is asked once for all of them."""
    from orchestrator.process.confine import confine_to_datasets

    arrivals = _open_ledger(settings, name)
    if arrivals is not None:
        confine_to_datasets()
        _write_arrivals(arrivals, came)


def _write_arrivals(arrivals: "ArrivalLedger", came: list[str]) -> None:
    """Record when snapshots came; one that is not there any more, or is not recorded, counts as come when it is first seen."""
    from orchestrator.gate.receive import marks_command, parse_marks
    from orchestrator.process.relay import answer_of

    times = {snapshot: datetime.fromisoformat(at) for at, _, snapshot in (each.partition("\t") for each in came[::-1])}
    marks = parse_marks(answer_of(marks_command(tuple(times)), partly=True) or "")
    with suppress(OSError):
        arrivals.note(
            (snapshot.partition("@")[0], mark, times[snapshot]) for snapshot, mark in marks.items() if snapshot in times
        )


def _open_ledger(settings: Settings, name: str) -> "ArrivalLedger | None":
    """Return the ledger of the gate's arrivals; None where it cannot be written: what comes is worth more than when."""
    from orchestrator.history.arrivals import open_ledger

    try:
        return open_ledger(settings.where.state, name)
    except OSError:
        return None


def _limit(settings: Settings, name: str, dataset: str, most: int, place: tuple[int, int]) -> "InputLimit":
    """Return the limit of a stream into the dataset. Raises: GateRefusal where as much is used already as may be."""
    from orchestrator.gate.receive import used_command
    from orchestrator.process.input_limit import InputLimit, open_counters
    from orchestrator.process.relay import answer_of

    try:
        limit = InputLimit(open_counters(settings.where.state, name), *place, at_most=most)
    except OSError as error:
        raise GateRefusal(
            f"it cannot count what comes in {show_name(settings.where.state)}: {error.strerror}"
        ) from error
    used = answer_of(used_command(dataset))
    if used is None or not used.strip().isdigit():
        raise GateRefusal(f"it cannot be seen how much is used in {dataset}")
    limit.begin(used=int(used))
    if int(used) >= most:
        raise GateRefusal(f"{dataset} uses {show_size(int(used))}, and at-most allows {show_size(most)}")
    return limit


def _by_real_path(command: Command) -> Command:
    """Return an rsync's command with the path of its one folder, as it follows no link: not even of ours above it. Raises: Untrusted."""
    folder, _, name = command.argv[-1].rpartition("/")
    if command.argv[0] != "rsync" or not folder.startswith("/") or folder.startswith("/."):
        return command
    with _folder(folder) as opened:
        real = folder if opened is None else os.readlink(f"/proc/self/fd/{opened}")
    return replace(command, argv=(*command.argv[:-1], f"{real.rstrip('/')}/{name}"))


@contextmanager
def _folder(path: str) -> Iterator[int | None]:
    """Yield the open folder; None where it is not there. Raises: Untrusted where another user could lead us elsewhere, OSError."""
    try:
        opened = Folder.at_place(path)
    except FileNotFoundError:
        yield None
    else:
        with opened:
            yield opened.fd
