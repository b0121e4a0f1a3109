"""The set-up of a gate: its file, and the line of a key that can go through it and do nothing else."""

import fcntl
import os
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator import compose
from orchestrator.app.config_files import remove_files
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import JOB_NAME, show_name
from orchestrator.domain.units import Seconds
from orchestrator.trees.beneath import Folder, Untrusted

USUAL_KEYS = "~/.ssh/authorized_keys"
# Source: sshd(8), AUTHORIZED_KEYS FILE FORMAT; a key with options of its own would not get those of the gate.
_KEY = r"((?:ssh|ecdsa|sk-ssh|sk-ecdsa)-[a-z0-9@.-]+) ([A-Za-z0-9+/]{40,20000}={0,2})(?: ([ -~]{0,200}))?"

_SSHD_PATIENCE = Seconds(20)


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
    """Make the folder to which a key adds, for nobody but us. Raises: WrongRequest for another user's, or in none; OSError."""
    place = os.path.dirname(path)
    if not os.path.lexists(place):
        made = shlex.join(("mkdir", "-p", place))
        raise WrongRequest(
            f"{show_name(place)} is not there, the folder above the one to which the key is to add",
            f"attach the disk that it is to be on, or make it: `{made}`; then type the same again",
        )
    with Folder.at_place(place) as above:
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


def warn_of_variables(user: str) -> str:
    """Return a warning of what sshd takes from its clients besides their language, or that this cannot be seen; empty where all is well."""
    from orchestrator.domain.plan import Pipeline
    from orchestrator.gate.login_variables import (
        accepted_warning,
        parse_accepted_variables,
        sshd_settings_command,
        unseen_warning,
    )
    from orchestrator.process.executor import Reader

    result = Reader().read(Pipeline(stages=(sshd_settings_command(user),)), timeout=_SSHD_PATIENCE)
    try:
        if not result.well:
            raise ValueError(result.last_output[0].partition("\n")[0] or f"sshd -T ended with {result.exits[0]}")
        return accepted_warning(parse_accepted_variables(result.stdout))
    except ValueError as error:
        return unseen_warning(str(error))


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
            remove_files((file,))
            changed.append(file)
    return tuple(changed)


def warn_of_left_key(settings: Settings, request: GateSetup, changed: tuple[str, ...]) -> str:
    """Return a warning where no key of a removed gate was found; empty where one was. `changed`: what `remove_gate` did.

    Why it matters: the line that stays opens nothing, until a gate of that name is set up for another key.
    """
    if request.keys_file in changed:
        return ""
    again = settings.repeat(f"setup gate {shlex.quote(request.name)} --remove --into FILE")
    return (
        f"no line of {request.keys_file} goes through a gate {request.name}; where its key was written into another file, it stands there still, and "
        f"opens the next gate of this name: `{again}` removes it, with that file's name"
    )


def _parse_key(text: str) -> str:
    """Return a public key as one line. Raises: WrongRequest."""
    line = text.strip()
    if re.fullmatch(_KEY, line) is None:
        if os.path.isfile(line):
            raise WrongRequest(
                "the key is the name of a file, expected what is in it", f'--key "$(cat {shlex.quote(line)})"'
            )
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
        raise WrongRequest(f"{path} is a link, which would be replaced by a file", f"add `--into {real}`")
    if about.st_uid != os.geteuid():
        raise WrongRequest(
            f"{path} belongs to another user", "run this command as that user, who then is the one that reads"
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
                f"{path}:{number} has this key already, and sshd takes the first line of a key",
                f"remove that line first: `sed -i.old {number}d {shlex.quote(path)}`",
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
