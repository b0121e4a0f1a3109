"""Gates: the answer to one request of a key, and the set-up of a key that can do this one thing."""

import fcntl
import os
import re
import shlex
import stat
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, NoReturn, cast

from orchestrator import compose
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.gate import BUSY, HELLO, CutStream, Gate, GateRefusal
from orchestrator.domain.names import JOB_NAME, printable_word, show_name
from orchestrator.domain.plan import Command
from orchestrator.domain.units import show_count, show_size
from orchestrator.trees.beneath import Folder, Untrusted

if TYPE_CHECKING:
    from orchestrator.gate.add_points import PointAddition
    from orchestrator.gate.receive import Reception
    from orchestrator.history.arrivals import ArrivalLedger
    from orchestrator.process.handover import Answer, PutOff
    from orchestrator.process.input_limit import InputLimit

USUAL_KEYS = "~/.ssh/authorized_keys"
_LITTLE = 256 << 10  # bytes of a stream that are read, and looked at, before its receiver begins
_ASKED_EACH_TIME = "survey.sh"  # the one question of a run with nothing to do; others name snapshots, which change
# Source: sshd(8), AUTHORIZED_KEYS FILE FORMAT; a key with options of its own would not get those of the gate.
# Compiled only where a key is set up: it takes 4 ms, a tenth of what a request costs before its program starts.
_KEY = r"((?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+) ([A-Za-z0-9+/]{40,20000}={0,2})(?: ([ -~]{0,200}))?"


def answer_request(
    settings: Settings,
    name: str,
    line: str,
    asker: str,
    *,
    later: "Answer | None" = None,
    put_off: "PutOff | None" = None,
) -> int:
    """Become the command that answers the request that came through the gate, or feed it and return its exit status.

    `later`: answers the next requests in forks of a process that this one leaves behind. `put_off`: by which such a fork leaves it
    to that process to record what came.

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
            prepare, see_to = partial(_import_answers, gate), partial(_note_arrivals, settings, name)
            leave_behind(settings.where.state, name, gate.connections, later, prepare=prepare, see_to=see_to)
        if answer is None:
            return _hello(name, gate, request.values)
        syslog.syslog(syslog.LOG_INFO, f"{name}: {show_name(asker)}: {request}")
        if not isinstance(answer, Command):
            return (
                _add(settings, name, gate, cast("PointAddition", answer))
                if right == "adds"
                else _receive(settings, name, gate, cast("Reception", answer), place, put_off)
            )
    except GateRefusal as refusal:
        syslog.syslog(syslog.LOG_WARNING, f"{name}: refused to {show_name(asker)}: {printable_word(refusal.why)}")
        raise
    folders = {"reads": gate.reads, "adds": (gate.adds,)}
    if request.name == _ASKED_EACH_TIME:
        _record_question(settings, name, gate, line, str(request), answer)
    return _read(folders[right], answer) if right in folders else _ask_zfs(answer)


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
    for module in ("cli.terminal.errors", "process.confine", "process.relay", "views.gate", *of_rights):
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
            forget(place)
            return places, place
    raise GateRefusal(f"{BUSY}{show_count(most, 'request')} of this key may be answered at once")


def _receive(
    settings: Settings, name: str, gate: Gate, asked: "Reception", place: tuple[int, int], put_off: "PutOff | None"
) -> int:
    """Receive a stream as the gate lets it, and record when it came; return the receiver's exit status.

    Raises: GateRefusal, CutStream for one that ended or fell silent before its receiver began.
    """
    from orchestrator.gate.receive import newest_name
    from orchestrator.gate.stream_head import missing_bytes, parse_head
    from orchestrator.gate.stream_records import RecordWatch
    from orchestrator.process.confine import confine_to_datasets
    from orchestrator.process.relay import SilentInput, TooMuchInput, become_fed, feed, read_head, read_on

    limit = None if gate.at_most is None else _limit(settings, name, gate.receives, gate.at_most, place)
    try:
        parsed = parse_head(head := read_head(missing_bytes, asked.patience))
        asked.command(parsed, whole=True)  # refuses what it does before more is read
        several = parsed.of_several
        watch = None if several is None else RecordWatch(several, skip=parsed.skip)
        data, whole = read_on(head, _LITTLE, watch, asked.patience)
        if limit is not None and limit.take(len(data)) < len(data):
            raise TooMuchInput
        command, newest = asked.command(parsed, whole=whole), newest_name(asked.dataset, parsed)
        arrivals = _open_ledger(settings, name) if put_off is None else None
        confine_to_datasets()  # and from here on nothing can be imported or opened
        if whole and put_off is not None:
            if newest is not None:
                put_off(_came(newest), at_end=True)
            become_fed(command, data)
        status = feed(command, data, limit=limit, watch=watch)
    except EOFError:
        raise CutStream("incomplete stream: it ended before it began") from None
    except SilentInput:
        raise CutStream("watchdog timeout: nothing more of the stream came for too long") from None
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


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSetup:
    """A gate to set up or, with `remove`, to take away. `keys`: the file of authorized keys; `key`: a public key."""

    name: str
    keys: str = USUAL_KEYS
    reads: tuple[str, ...] = ()
    sends: str = ""
    receives: str = ""
    adds: str = ""
    at_most: str = ""
    keep_free: str = ""
    key: str = ""
    remove: bool = False

    @property
    def keys_file(self) -> str:
        """Return the absolute path of the file of keys."""
        return os.path.abspath(os.path.expanduser(self.keys))


def install_gate(settings: Settings, request: GateSetup) -> tuple[str, ...]:
    """Write the gate's file and the key's line; return the paths written. Raises: WrongRequest, OSError."""
    from orchestrator.config.gates import gate_file

    if JOB_NAME.fullmatch(request.name) is None:
        raise WrongRequest(
            f"{show_name(request.name)} is no name of a gate, expected letters, digits, '.', '_' and '-'"
        )
    text = _gate_text(request)
    key = _parse_key(request.key)
    file = gate_file(settings.where.config, request.name)
    os.makedirs(os.path.dirname(file), mode=0o755, exist_ok=True)
    with _alone(os.path.dirname(file)):
        kept = _other_keys(request)
        _refuse_twice(key, kept, request.keys_file)
        _install(settings, request, text, key, kept)
    return file, request.keys_file


def _gate_text(request: GateSetup) -> str:
    """Return the text of the gate's file. Raises: WrongRequest."""
    from orchestrator.domain.gate import parse_gate_dataset, parse_gate_folder
    from orchestrator.domain.units import parse_size

    lines = [f"# What the key of another machine may do here, through `poolferry gate {request.name}`."]
    for name, text, parse in (
        *(("reads", folder, parse_gate_folder) for folder in request.reads), ("sends", request.sends, parse_gate_dataset),
        ("receives", request.receives, parse_gate_dataset), ("adds", request.adds, parse_gate_folder), ("at-most", request.at_most, parse_size),
        ("keep-free", request.keep_free, parse_size),
    ):  # fmt: skip
        if text:
            try:
                parse(text)
            except ValueError as error:
                raise WrongRequest(f"{show_name(text)} does not fit, expected {error}") from None
            lines += [] if name == "reads" else [f"{name} = {_toml(text)}"]
    if request.reads:
        folders = ", ".join(map(_toml, request.reads))
        lines.insert(1, f"reads = [{folders}]" if len(request.reads) > 1 else f"reads = {folders}")
    if request.at_most and not request.receives:
        raise WrongRequest(
            "--at-most limits what comes into a dataset, so it goes with --receives; --keep-free goes with --adds"
        )
    if request.keep_free and not request.adds:
        raise WrongRequest(
            "--keep-free limits what comes into a folder, so it goes with --adds; --at-most goes with --receives"
        )
    return "".join(f"{line}\n" for line in lines)


def _install(settings: Settings, request: GateSetup, text: str, key: str, kept: list[str]) -> None:
    from orchestrator.app.systemd_state import program_here
    from orchestrator.config.gates import gate_file
    from orchestrator.process.handover import forced_command

    program = shlex.join(forced_command([program_here(), "gate", request.name, *_directories(settings)]))
    options = f'command="{program.replace(chr(92), chr(92) * 2).replace(chr(34), chr(92) + chr(34))}",restrict'
    os.makedirs(os.path.dirname(request.keys_file), mode=0o700, exist_ok=True)
    if request.adds:
        _make_private(request.adds)
    _write(gate_file(settings.where.config, request.name), text, mode=0o644)
    _write_keys(request.keys_file, [*kept, f"{options} {key}"])


def _make_private(path: str) -> None:
    """Make the folder to which a key adds, for nobody but us. Raises: WrongRequest for another user's, OSError."""
    with Folder.at_place(os.path.dirname(path)) as above:
        try:
            with above.make_folder(os.path.basename(path)) as folder:
                folder.make_private()
        except Untrusted as error:
            raise WrongRequest(f"{show_name(path)} {error.strerror}") from None


@contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Let no other set-up of a gate change the keys meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def describe_receiver(dataset: str, user: str) -> tuple[str, ...]:
    """Return what root must allow a plain user here, so that it can add to copies, and what ZFS here holds it to then."""
    from orchestrator.domain.plan import Effect
    from orchestrator.engines.zfs.commands.commands import CommandHost, zfs_command
    from orchestrator.engines.zfs.survey.parse import parse_version
    from orchestrator.engines.zfs.system_check import adding_rights
    from orchestrator.process.relay import answer_of

    try:
        said = answer_of(zfs_command("version", effect=Effect.READS, where=CommandHost())) or ""
    except FileNotFoundError:
        said = ""
    version = parse_version(said.partition("zfs-kmod-")[2])
    rights = adding_rights(version)
    shown = f"ZFS {'.'.join(map(str, version))}" if version else "ZFS, which does not answer here,"
    holds = (
        f"{shown} itself refuses {user} `receive -F` then, by whatever way it comes in."
        if "receive:append" in rights
        else f"{shown} has no receive:append (2.3.9 has): it lets {user} remove newer snapshots by `receive -F`, so the gate is "
        "the only wall, and there must be no other way in."
    )
    allow = shlex.join(("zfs", "allow", user, ",".join(rights), dataset))
    return f"Here, as root, so that {user} can receive:", f"  {allow}", f"  {holds}"


def remove_gate(settings: Settings, request: GateSetup) -> tuple[str, ...]:
    """Remove the key's lines, then the gate's file; return the paths changed. Raises: OSError."""
    from orchestrator.config.gates import gate_file

    changed: list[str] = []
    file = gate_file(settings.where.config, request.name)
    if not os.path.isdir(os.path.dirname(file)):
        return ()
    with _alone(os.path.dirname(file)):
        kept = _other_keys(request)
        if kept != _key_lines(request.keys_file):
            _write_keys(request.keys_file, kept)
            changed.append(request.keys_file)
        if os.path.lexists(file):
            os.unlink(file)
            changed.append(file)
    return tuple(changed)


def _parse_key(text: str) -> str:
    """Return a public key as one line. Raises: WrongRequest."""
    line = text.strip()
    if re.fullmatch(_KEY, line) is None:
        raise WrongRequest("the key is no public key, expected one line such as `ssh-ed25519 AAAA… name`")
    return line


def _key_lines(path: str) -> list[str]:
    """Return the lines of a file of keys. Raises: WrongRequest for one that is not ours to write, OSError."""
    try:
        about = os.lstat(path)
    except FileNotFoundError:
        return []
    if stat.S_ISLNK(about.st_mode):
        real = shlex.quote(os.path.realpath(path))
        raise WrongRequest(f"{path} is a link, which would be replaced by a file: add `--into {real}`")
    if about.st_uid != os.geteuid():
        raise WrongRequest(
            f"{path} belongs to another user: run this command as that user, who then is the one that reads"
        )
    with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n") if about.st_size else []


def _write_keys(path: str, lines: list[str]) -> None:
    """Write the keys, with the mode that the file had."""
    mode = stat.S_IMODE(os.lstat(path).st_mode) if os.path.lexists(path) else 0o600
    _write(path, "".join(f"{line}\n" for line in lines), mode=mode)


def _other_keys(request: GateSetup) -> list[str]:
    """Return the lines of keys that do not go through this gate."""
    own = re.compile(rf'command="[^"]* gate {re.escape(request.name)}(?: [^"]*)?",restrict ')
    return [line for line in _key_lines(request.keys_file) if not own.match(line)]


def _refuse_twice(key: str, lines: list[str], path: str) -> None:
    """Raises: WrongRequest when the key has another line already: sshd takes the first one."""
    blob = key.split()[1]
    for number, line in enumerate(lines, 1):
        if blob in line.split() and not line.lstrip().startswith("#"):
            raise WrongRequest(
                f"{path}:{number} has this key already, and sshd takes the first line of a key; remove that line first: "
                f"`sed -i.old {number}d {shlex.quote(path)}`"
            )


def _directories(settings: Settings) -> tuple[str, ...]:
    """Return the options that name the directories which are not the usual ones."""
    usual, where = compose.find_directories(None, None, {}, root=os.geteuid() == 0), settings.where
    config = () if where.config == usual.config else ("--config", where.config)
    return config if where.state == usual.state else (*config, "--state", where.state)


def _toml(text: str) -> str:
    return '"' + "".join(f"\\{sign}" if sign in '"\\' else sign for sign in text) + '"'


def _write(path: str, text: str, *, mode: int) -> None:
    from orchestrator.trees.beneath import new_file_at

    with new_file_at(path, mode=mode) as file:
        file.write(text.encode("utf-8", "surrogateescape"))
