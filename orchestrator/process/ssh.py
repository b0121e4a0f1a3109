"""A command for a host as argv here, and the remote shell for rsync. Pure."""

import shlex

from orchestrator.domain.command import Command
from orchestrator.domain.place import Host

# Never a question: nobody sits at the keyboard. It stands first because ssh keeps the first value it sees.
_FIRM = ("-oBatchMode=yes",)
# A dead peer is noticed within a minute. What is to be compressed is so before: ssh would do it on one slow thread. After
# the job's own options, so that those win.
_USUAL = (
    "-oConnectTimeout=15", "-oServerAliveInterval=15", "-oServerAliveCountMax=4", "-oCompression=no", "-T", "-x",
)  # fmt: skip
_LOCALE = "LC_ALL=C.UTF-8"


def ssh_argv(command: Command, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What to run here for the command: its own argv, or ssh with one remote command line.

    Why: ssh joins all it is given with spaces for the remote login shell, so quoting is ours. `env` sets the variables
    because csh and old fish know no `NAME=value program`.
    """
    host = command.host
    if host is None:
        return command.argv
    user = ("-l", host.user) if host.user else ()
    settings = (f"{name}={value}" for name, value in command.environment)
    remote = shlex.join(("env", _LOCALE, *settings, *command.argv))
    return (*_shell(host, options), *user, "--", host.name, remote)


def rsync_shell(host: Host, options: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The words of rsync's -e for a host; " ".join(words) is its value. Host and user come from rsync's own argument.

    Why: rsync splits -e at spaces and knows quotes but no backslashes; inside quotes the same quote twice is one. So a
    word with a space or a quote is wrapped in single quotes, its single quotes doubled.
    Source: rsync(1), "--rsh=COMMAND, -e". Raises: ValueError for an empty option, which -e cannot carry.
    """
    if "" in options:
        raise ValueError("an empty ssh option")
    return tuple(_rsync_word(word) for word in _shell(host, options))


def _shell(host: Host, options: tuple[str, ...]) -> tuple[str, ...]:
    port = ("-p", str(host.port)) if host.port else ()
    return ("ssh", *_FIRM, *options, *_USUAL, *port)


def _rsync_word(word: str) -> str:
    return "'" + word.replace("'", "''") + "'" if set(word) & set(" '\"") else word
