"""A reader's copy of a history of an older format, renewed: kept beside the history until a run renews that itself.

Why: a reader changes nothing, and after an upgrade people look first. Each look would copy and migrate all of a large history again.
"""

import os
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing, suppress

from orchestrator.domain.hashes import sha256

_NAME, _PART = "renewed-history-", ".part"
_LONGEST_COPY = 3600  # seconds without a write, after which nobody makes this part any more
Migrate = Callable[[sqlite3.Connection], None]


def renewed_copy(
    connection: sqlite3.Connection, path: str, mark: Callable[[str], tuple[int, ...]], *, version: int, migrate: Migrate
) -> sqlite3.Connection:
    """Return a connection to a migrated copy of the history; close `connection`. `mark`: returns what each write to a file changes.

    The copy is kept in the notes of a state directory that is this user's alone; else it goes with its connection. Source:
    sqlite.org/inmemorydb.html, temporary databases.
    """
    with closing(connection):
        kept = _kept_path(path, mark(path), version)
        if kept is not None:
            with suppress(sqlite3.Error, OSError):  # a full disk, or a reader that another one was faster than
                return _opened(kept, version) or _kept(connection, kept, migrate)
        copy = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        try:
            connection.backup(copy)
            migrate(copy)
            copy.execute("PRAGMA query_only = ON")
        except BaseException:
            copy.close()
            raise
    return copy


def drop_renewed_copies(path: str, *, but: str = "") -> None:
    """Remove the copies of the history at `path`, which has the newest format now; or all but one."""
    folder = os.path.join(os.path.dirname(path), "notes")
    with suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            if name.startswith(_NAME) and name != but and not (but and _is_being_made(path, os.path.join(folder, but))):
                os.unlink(path)


def _is_being_made(path: str, made: str) -> bool:
    """Return True for the part of another reader that goes on. `made`: a copy that was made just now, whose time is the present."""
    return path.endswith(_PART) and os.stat(made).st_mtime - os.stat(path).st_mtime < _LONGEST_COPY


def _kept_path(path: str, mark: tuple[int, ...], version: int) -> str | None:
    """Return where the copy of this very state is kept; None where others may write, or this user may not."""
    state = os.path.dirname(path)
    folder = os.path.join(state, "notes")
    try:
        seen = (os.stat(state), os.lstat(folder))
    except OSError:
        return None
    own = all(each.st_uid == os.geteuid() and not each.st_mode & 0o022 for each in seen)
    if not (own and mark and stat.S_ISDIR(seen[1].st_mode) and os.access(folder, os.W_OK)):
        return None
    name = sha256(repr((os.path.basename(path), mark, version)).encode()).hexdigest()[:32]
    return os.path.join(folder, f"{_NAME}{name}.sqlite")


def _opened(kept: str, version: int) -> sqlite3.Connection | None:
    """Open a kept copy; None: there is none of this format."""
    if not os.path.exists(kept):
        return None
    found = _connected(kept, "ro")
    try:
        if found.execute("PRAGMA user_version").fetchone() == (version,):
            return found
    except sqlite3.Error:
        pass
    found.close()
    return None


def _kept(connection: sqlite3.Connection, kept: str, migrate: Migrate) -> sqlite3.Connection:
    """Copy, migrate and keep a history under its name, which says of which state it is; open it."""
    part = f"{kept}.{os.urandom(8).hex()}{_PART}"  # threads of one process make copies at once
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        with closing(_connected(part, "rw")) as copy:
            copy.execute("PRAGMA synchronous = OFF")  # one that a crash tears is not renamed
            copy.execute("PRAGMA journal_mode = OFF")
            connection.backup(copy)
            migrate(copy)
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        os.replace(part, kept)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(part)
    drop_renewed_copies(os.path.join(os.path.dirname(os.path.dirname(kept)), ""), but=os.path.basename(kept))
    return _connected(kept, "ro")


def _connected(path: str, mode: str) -> sqlite3.Connection:
    whole = "".join(f"%{byte:02x}" for byte in os.fsencode(os.path.abspath(path)))
    return sqlite3.connect(f"file:{whole}?mode={mode}", uri=True, isolation_level=None, check_same_thread=False)
