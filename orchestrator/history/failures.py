"""Plain messages for SQLite's errors: what happened to the history, what it means, and the hint."""

import shlex

from orchestrator.domain.errors import ConfigMistake, HistoryError
from orchestrator.domain.names import printable_word

_ASIDE = (
    "set it aside (mv {quoted} {quoted}.broken; also {path}-journal, if it is there) and run again: a new one begins. "
    "Nothing but the past is lost; or put back the copy that lies beside a target's points"
)
# By the first part after SQLITE_; the longer, more exact names come first.
_WORDS: tuple[tuple[str, str, str], ...] = (
    (
        "READONLY_ROLLBACK",
        "was left in the middle of a write, and only one who may write can put it right",
        "run any poolferry command as the owner of the file: opening it is enough",
    ),
    (
        "READONLY",
        "may only be read, so nothing can be remembered and nothing is done",
        "run as the owner of {path}, or see whether its filesystem is mounted read-only; a restore works meanwhile",
    ),
    (
        "BUSY",
        "is locked by another process that has not finished in time",
        "look for a program that holds it open (fuser -v {quoted}), end it, and run again",
    ),
    (
        "FULL",
        "has no space: its disk is full",
        "free some space on the filesystem of {path}; what was recorded before is whole, and a restore works meanwhile",
    ),
    ("NOTADB", "is not an SQLite database, or was overwritten", _ASIDE),
    ("CORRUPT", "is damaged", _ASIDE),
    (
        "CANTOPEN",
        "cannot be opened: its directory is missing, or it may not be read",
        "see whether {path} can be reached and read by this user, or name another place with --state",
    ),
    ("PERM", "may not be opened by this user", "run as the owner of {path}"),
    (
        "IOERR",
        "could not be read or written: its disk reports an error",
        "look at the kernel's messages (dmesg) for the disk of {path}, and at its free space",
    ),
    ("TOOBIG", "refuses a value that is too large", "report this: poolferry should have cut it short"),
)
_ALIASES = {"LOCKED": "BUSY", "AUTH": "PERM", "NOLFS": "IOERR", "PROTOCOL": "BUSY"}


def explain(*, name: str, words: str, path: str) -> HistoryError:
    """Build the error for SQLite's error `name` (such as SQLITE_BUSY; empty if it has none) and its message."""
    kind = name.removeprefix("SQLITE_")
    kind = _ALIASES.get(kind.split("_")[0], kind)
    for start, meaning, hint in _WORDS:
        if f"{kind}_".startswith(f"{start}_"):
            said = f"{words}, {name}" if name else words
            return HistoryError(
                f"the history {path} {meaning} ({said})", hint=hint.format(path=path, quoted=shlex.quote(path))
            )
    return HistoryError(
        f"the history {path} does not accept a setting ({name or 'no code'}: {words})",
        hint=f"it may be of another program or version; if it should be ours, {_ASIDE.format(path=path, quoted=shlex.quote(path))}",
    )


def damaged_value(*, path: str, what: str, error: Exception) -> HistoryError:
    """Build the error for a value that no poolferry stored. `what`: the statement that read it, or the key of a fact."""
    said = printable_word(f"{error}" if isinstance(error, ValueError) else f"{type(error).__name__}: {error}")[:200]
    return HistoryError(
        f"the history {path} holds a value that poolferry does not store, so it is damaged ({printable_word(what)}: {said})",
        hint=_ASIDE.format(path=path, quoted=shlex.quote(path)),
    )


def too_new(*, path: str, version: int, known: int) -> HistoryError:
    """Build the error for a database that a newer poolferry wrote."""
    return HistoryError(
        f"the history {path} was written by a newer poolferry (its format is {version}, this one knows {known})",
        hint="use the newer poolferry, or name another place with --state",
    )


def of_another(*, path: str) -> HistoryError:
    """Build the error for a valid SQLite database of another program."""
    return HistoryError(
        f"{path} is an SQLite database of another program, not a history", hint="name another place with --state"
    )


def out_of_reach(*, path: str, words: str) -> HistoryError:
    """Build the error for an access to the file that the operating system refused."""
    return HistoryError(
        f"the history cannot use {path} ({words})",
        hint=f"see whether {path} exists, may be written and has space, or name another place with --state",
    )


def not_ours_alone(found: ConfigMistake) -> HistoryError:
    """Build the error for a state directory that another user may write, or may exchange for a link."""
    return HistoryError(
        f"{found.file} {found.what}: whoever writes there could have the files of the state directory lead elsewhere",
        hint=f"{found.expected}; or keep the state elsewhere with --state",
    )


def planted(*, path: str, folder: str) -> HistoryError:
    """Build the error for an entry that another user may have laid into a state directory that all may write."""
    return HistoryError(
        f"others may write the state directory {folder}, and {path} is not poolferry's own file",
        hint=f"look what it is, and remove it; then close the directory: chmod go-w {shlex.quote(folder)}",
    )


def not_there(*, path: str, what: str) -> HistoryError:
    """Build the error for a record that belongs to something missing in the history."""
    return HistoryError(
        f"the history {path} knows nothing of {what}",
        hint=f"report this; {_ASIDE.format(path=path, quoted=shlex.quote(path))}",
    )


def broken_off(*, path: str) -> HistoryError:
    """Build the error for a write in a transaction that SQLite has already rolled back."""
    return HistoryError(
        f"the history {path} rolled back what belonged together, after the error before this one",
        hint="see the error before this one",
    )
