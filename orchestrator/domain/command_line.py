"""Command lines as they run: as text that a person can paste into a shell, and as argv through ssh."""

import os
import re
import shlex

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.names import UNSAFE_WORD
from orchestrator.domain.place import Host
from orchestrator.domain.plan import Command, Pipeline

# BatchMode: nobody is there to answer a question. No forwarding: an attacker may control the host one day and must not use the
# keys in our agent, our display, or a port that leads to us. These options are first because ssh keeps the first value it
# reads: neither ~/.ssh/config nor a job's own ssh-options can switch forwarding on. A shared connection is no forwarding.
_FIRM = ("-oBatchMode=yes", "-oForwardAgent=no", "-oForwardX11=no", "-oClearAllForwardings=yes")
# A dead peer is noticed within a minute. Streams are compressed before ssh, which would do it in one slow thread. These come
# after the job's own options, so that those win; but of -A and -a, and of -X and -x, the last one wins, so -a and -x come here
# again.
_SSH_OPTIONS = (
    "-oConnectTimeout=15", "-oServerAliveInterval=15", "-oServerAliveCountMax=4", "-oCompression=no", "-T", "-x", "-a",
)  # fmt: skip
_FIRST, _LAST = " ".join(("ssh", *_FIRM)), " ".join(_SSH_OPTIONS)
_LOCALE = "LC_ALL=C.UTF-8"


def ssh_argv(command: Command, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the argv to run here for the command: its own argv, or ssh with one remote command line.

    An rsync with an ssh of its own goes through the connection that `options` share, as any command at the host.

    Why: ssh joins all its arguments with spaces for the remote login shell, so poolferry must quote them. `env` sets the
    variables because csh and old fish know no `NAME=value program`.
    """
    host = command.host
    if host is None:
        return _join_connection(command.argv, options)
    user = ("-l", host.user) if host.user else ()
    settings = (f"{name}={value}" for name, value in command.environment)
    remote = shlex.join(("env", _LOCALE, *settings, *pack_script(command)))
    if host.here:
        return ("sh", "-c", remote)
    return (*_shell(host, options), *user, "--", host.name, remote)


SCRIPT_WORDS = 'text=$1; shift; eval "$(printf %b "$text")"'


def pack_script(command: Command) -> tuple[str, ...]:
    r"""Return the argv with a script packed into one line, which sh unpacks there.

    Why: the login shell reads it first. csh accepts no newline inside quotes, and reads ! there as its history; fish reads \\
    inside them as \, so a backslash is sent by its number.
    """
    if not is_script(command):
        return command.argv
    at = _shell_index(command)
    packed = command.argv[at + 2]
    if "\n" not in packed:
        return command.argv
    for sign in "\\\n!":
        packed = packed.replace(sign, f"\\0{ord(sign):03o}")
    return (*command.argv[: at + 2], SCRIPT_WORDS, command.argv[at + 3], packed, *command.argv[at + 4 :])


def rsync_shell(host: Host, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the parts of rsync's -e for a host; " ".join(parts) is its value. rsync adds host and user from its own argument.

    Why: rsync splits -e at spaces and knows quotes but no backslashes; inside quotes the same quote twice is one. So a
    word with a space or a quote is wrapped in single quotes, its single quotes doubled.
    Why errors alone: a host's banner would stand among rsync's lines, of which each is judged when files were left out.
    Source: rsync(1), "--rsh=COMMAND, -e". Raises: ValueError for an empty option, which -e cannot carry.
    """
    if "" in options:
        raise ValueError("an empty ssh option")
    return tuple(_rsync_word(word) for word in _shell(host, (*options, "-oLogLevel=ERROR")))


# Seconds that a connection stays open after its last command when poolferry was killed. Why few: if this machine then loses
# power, the other side notices nothing and keeps the session for hours. A longer pause within a run costs one more login.
_SHARING = "-oControlMaster=auto", "-oControlPath={}/%C", "-oControlPersist=15"


def sharing_options(options: tuple[str, ...], folder: str) -> tuple[str, ...]:
    """Return ssh options with which commands share a connection to each host, by sockets in a folder that only we may enter.

    `options` come first, so that a ControlPath of the owner's own wins.
    """
    return (*options, *(word.format(folder) for word in _SHARING))


def _join_connection(argv: tuple[str, ...], options: tuple[str, ...]) -> tuple[str, ...]:
    """Return the argv with the shared connection of `options` in each `rsync_shell`; an ssh that finds none there logs in by itself.

    Why it never makes one (ControlMaster=no): that would outlive its rsync within the mounts of that alone (`process/link_wall.py`),
    and keep a disk busy.
    """
    if options[-1:] != _SHARING[-1:]:
        return argv
    words = " ".join(map(_rsync_word, ("-oControlMaster=no", options[-2])))
    return tuple(
        word.replace(f" {_LAST}", f" {words} {_LAST}") if before == "-e" and word.startswith(_FIRST) else word
        for before, word in zip(("", *argv), argv, strict=False)
    )


# As ssh: the first argument names the host, and a shell reads the others, joined with spaces; our open files are not handed on.
_CLOSE = "exec " + " ".join(f"{number}>&-" for number in range(3, 10))
_OWN_SHELL = ("sh", "-c", f'shift; {_CLOSE}; exec sh -c "$*"', "-")


def _shell(host: Host, options: tuple[str, ...]) -> tuple[str, ...]:
    if host.here:
        return _OWN_SHELL
    port = ("-p", str(host.port)) if host.port else ()
    return ("ssh", *_FIRM, *options, *_SSH_OPTIONS, *port)


def _rsync_word(word: str) -> str:
    return "'" + word.replace("'", "''") + "'" if set(word) & set(" '\"") else word


_SECRET = r"PASSWORD|PASSPHRASE|SECRET"


def pipeline_line(pipeline: Pipeline, ssh_options: tuple[str, ...] = ()) -> str:
    """Return the whole pipeline as one line, with ssh and its options."""
    head = f" < {quoted(pipeline.reads)}" if pipeline.reads else ""
    tail = f" >> {quoted(pipeline.keeps)}" if pipeline.keeps else ""
    first, *rest = (command_line(stage, ssh_options) for stage in pipeline.stages)
    return " | ".join((first + head, *rest)) + tail


def evidence_line(command: Command, ssh_options: tuple[str, ...] = ()) -> str:
    """Return one command as a failure shows it: whole, but for a script, of which the text explains nothing.

    A script at a host is shown after the ssh that reaches it: pasted up to the colon, it tries the login. By a connection of its own: the
    folder of the shared one is gone with the run, and without it ssh fails before it logs in.
    """
    ssh_options = ssh_options[: -len(_SHARING)] if ssh_options[-1:] == _SHARING[-1:] else ssh_options
    if not is_script(command):
        return command_line(command, ssh_options)
    if command.host is None:
        return _brief(command)
    login = ssh_argv(command, ssh_options)[:-1]
    return " ".join(map(quoted, login)) + ": " + _brief(replace(command, host=None))


_WIDEST = 200 - len("     runs: ")  # a plan prints this before it


def brief_line(pipeline: Pipeline) -> str:
    """Return the pipeline as one line that fits a plan of 200 columns: scripts by their names, long lists of arguments cut."""
    tail = f" >> {quoted(pipeline.keeps)}" if pipeline.keeps else ""
    line = " | ".join(map(_brief, pipeline.stages)) + tail
    return cut_line(line)


_SCRIPT = r"sh -c (?:\$'(?:[^'\\]|\\.)*'|'[^']*') (?=[\w-]+\.sh\b)"


def brief_text(line: str) -> str:
    """Return a line that `pipeline_line` made as `brief_line` shows a pipeline, as far as its text shows the scripts."""
    return cut_line(re.sub(_SCRIPT, "", line))


def cut_line(line: str) -> str:
    """Return the line, cut to what fits a plan."""
    return line if len(line) <= _WIDEST else line[: _WIDEST - 1] + "…"


def _brief(command: Command) -> str:
    """Return one command without ssh's own options. A script is shown as its name and its arguments."""
    words = command.argv
    if is_script(command):
        at = _shell_index(command)
        words = (*words[:at], *words[at + 3 :])
    where = f"{command.host}: " if command.host else ""
    return where + " ".join(quoted(word) for word in words)


_MOST_BEFORE = 8  # words of sudo and unshare, and the shell itself


def is_script(command: Command) -> bool:
    """Return whether the command is a script of the package, which `process.scripts` has made."""
    at = _shell_index(command)
    return command.argv[at : at + 2] == ("sh", "-c") and "".join(command.argv[at + 3 : at + 4]).endswith(".sh")


def _shell_index(command: Command) -> int:
    """Return the index of the shell in the argv, behind programs such as unshare; 0 without a shell."""
    return command.argv.index("sh") if "sh" in command.argv[:_MOST_BEFORE] else 0


def command_line(command: Command, ssh_options: tuple[str, ...] = ()) -> str:
    """Return one command as a line; values of variables named like secrets are masked."""
    masked = tuple((name, "***" if re.search(_SECRET, name) else value) for name, value in command.environment)
    shown = Command(argv=command.argv, effect=command.effect, host=command.host, environment=masked)
    settings = [] if command.host else [f"{name}={quoted(value)}" for name, value in masked]
    return " ".join([*settings, *(quoted(word) for word in ssh_argv(shown, ssh_options))])


def quoted(word: str) -> str:
    r"""Quote a word for a shell as shlex does, with unprintable bytes as $'\xff', which bash, zsh and ksh read back."""
    if word.isprintable() or not re.search(UNSAFE_WORD, word):
        return shlex.quote(word)
    return "$'" + re.sub(UNSAFE_WORD, _escaped, word.replace("\\", "\\\\").replace("'", "\\'")) + "'"


def _escaped(match: re.Match[str]) -> str:
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(match[0]))
