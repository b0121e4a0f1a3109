"""Programs that people put before another one, such as nice and ssh, taken off; and what is lost with them."""

import re
from collections.abc import Callable
from itertools import pairwise

from orchestrator.config.migrate.result import Lost
from orchestrator.domain.fast_dataclass import dataclass

_NO_NOTE = ("command", "exec", "time", "nohup", "setsid", "stdbuf", "unbuffer", "chronic", "cronic", "systemd-cat")
_SHELLS = ("sh", "bash", "dash", "ash", "ksh", "zsh")
# Options that have their value in the next word.
_VALUED = {
    "sudo": "ugpChrtTD", "doas": "uC", "nice": "n", "ionice": "cnpPu", "flock": "wE", "timeout": "ks", "env": "uSC",
    "ssh": "bcDEeFIiJLlmOopQRSWw", "stdbuf": "ioe", "systemd-cat": "tp", "exec": "a", "chrt": "TPD", "time": "of",
}  # fmt: skip
_MOST = 40  # more than any person puts before one command
_SETTING = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_USUAL = re.compile(r"(PATH|LANG|LC_\w+|TZ|HOME|SHELL|TERM)=.*", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnwrappedCommand:
    """A command without what stood before it. `host`: where it runs instead of here; `text`: shell text in place of words."""

    words: tuple[str, ...]
    notes: tuple[str, ...] = ()
    host: str = ""
    text: str = ""


def program_of(words: tuple[str, ...]) -> str:
    """Return the name of the program that these words call."""
    return words[0].rpartition("/")[2] if words else ""


def unwrap(words: tuple[str, ...]) -> UnwrappedCommand:
    """Take off all programs before the one that is meant, and settings of its environment."""
    notes: list[str] = []
    for _ in range(_MOST):
        if not words:
            break
        program = program_of(words)
        if _SETTING.fullmatch(words[0]):
            notes += (
                [] if _USUAL.fullmatch(words[0]) else [Lost(f"{words[0]} is not carried over: jobs have no variables")]
            )
            words = words[1:]
        elif program == "ssh":
            options, rest = _after_options(words)
            return UnwrappedCommand(words=rest[1:], notes=tuple(notes), host=" ".join(rest[:1]), text=_remote(rest[1:]))
        elif program in _SHELLS and (text := _shell_text(words)) is not None:
            return UnwrappedCommand(words=words, notes=tuple(notes), text=text)
        elif program in _TAKEN_OFF:
            options, rest = _after_options(words)
            note = _TAKEN_OFF[program](options, rest)
            rest = rest[1:] if program in ("timeout", "flock", "chrt") else rest
            if program == "flock" and rest[:1] == ("-c",):
                return UnwrappedCommand(words=words, notes=(*notes, note), text=" ".join(rest[1:2]))
            notes += [note] if note else []
            words = rest
        else:
            break
    return UnwrappedCommand(words=words, notes=tuple(notes))


def _remote(words: tuple[str, ...]) -> str:
    """Return what a far shell is given: ssh puts its words together."""
    return " ".join(words)


def _after_options(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split the options of the first word from what follows them."""
    valued = _VALUED.get(program_of(words), "")
    at = 1
    while at < len(words) and len(words[at]) > 1 and words[at].startswith("-"):
        word = words[at]
        at += 1
        if word == "--":
            break
        if word == "-c" and program_of(words) == "flock":
            return words[1 : at - 1], words[at - 1 :]
        at += not word.startswith("--") and word[-1] in valued and not any(each in valued for each in word[1:-1])
    return words[1:at], words[at:]


def _shell_text(words: tuple[str, ...]) -> str | None:
    """Return the text of `sh -c TEXT`; None where a shell runs a file."""
    for at, word in enumerate(words[1:], start=1):
        if re.fullmatch(r"-[a-z]*c", word) and at + 1 < len(words):
            return words[at + 1]
        if not word.startswith("-"):
            return None
    return None


_Note = Callable[[tuple[str, ...], tuple[str, ...]], str]


def _none(*_: object) -> str:
    return ""


def _sudo(options: tuple[str, ...], _: tuple[str, ...]) -> str:
    user = next((after for word, after in pairwise(options) if word == "-u"), "root")
    return "" if user == "root" else f"ran as the user {user}: poolferry's jobs run as whoever calls poolferry"


def _lower(program: str) -> _Note:
    def note(options: tuple[str, ...], _: tuple[str, ...]) -> str:
        return Lost(
            f"{' '.join((program, *options))} is not carried over: a job has no such key; Nice= and IOSchedulingClass= in "
            "`systemctl edit poolferry` hold for all runs"
        )

    return note


def _timeout(_: tuple[str, ...], rest: tuple[str, ...]) -> str:
    return Lost(
        f"timeout {' '.join(rest[:1])} is not carried over: [pipe] stall-after ends a transfer that stands still, stop-at ends a run "
        "at a time of day"
    )


def _lock(_: tuple[str, ...], rest: tuple[str, ...]) -> str:
    return f"flock {' '.join(rest[:1])} is not needed: one run at a time goes into a place"


def _inhibit(*_: object) -> str:
    return "systemd-inhibit is not needed: the daemon keeps the machine awake while runs go on"


_TAKEN_OFF: dict[str, _Note] = {
    **dict.fromkeys(_NO_NOTE, _none), "env": _none, "sudo": _sudo, "doas": _sudo, "nice": _lower("nice"),
    "ionice": _lower("ionice"), "chrt": _lower("chrt"), "timeout": _timeout, "flock": _lock, "systemd-inhibit": _inhibit,
}  # fmt: skip
