"""The clean environment of child processes, and the search for their programs."""

import os

from orchestrator.domain.plan import Command

# A service or a cron job may have a PATH without sbin, where zfs and mount are.
_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_PASSED_ON = ("SSH_AUTH_SOCK", "TMPDIR")
_SETPRIV = "/usr/bin/setpriv"


def environment(command: Command) -> dict[str, str]:
    """Build the clean environment of the child. A remote command's own variables travel in its remote line."""
    ours = [folder for folder in os.environ.get("PATH", "").split(":") if folder]
    clean = {
        "PATH": ":".join(dict.fromkeys((*ours, *_PATH))),
        "HOME": os.environ.get("HOME") or os.path.expanduser("~"),
        "LC_ALL": "C.UTF-8",
    }
    clean |= {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return clean if command.host else clean | dict(command.environment)


def is_missing(program: str, variables: dict[str, str]) -> bool:
    """Return True when no such program can be run in the child's PATH. Why not shutil.which: its import costs each start 2 ms."""
    places = [program] if "/" in program else [f"{folder}/{program}" for folder in variables["PATH"].split(":")]
    return not any(os.path.isfile(place) and os.access(place, os.X_OK) for place in places)


def leash() -> tuple[str, ...]:
    """Return the argv prefix by which the kernel signals the child to end when the thread that started it dies.

    Why: after a kill -9 nobody is left to stop the sender. The kernel forgets it for programs that gain privileges
    (sudo) and for the child's own children, which end by their closed pipes.
    """
    return (_SETPRIV, "--pdeathsig", "TERM", "--") if os.access(_SETPRIV, os.X_OK) else ()
