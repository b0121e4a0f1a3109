r"""The connection to the history: thread-safe, with named statements, decoded rows, transactions, clear errors, and backups.

The writer creates and migrates the file, the reader changes nothing. Instants, lists and any text are read back as they were
stored. Text is stored as TEXT; text that is no valid Unicode (a file name in another encoding arrives as surrogates) as the BLOB
of its bytes, so ordinary text stays readable with any SQLite tool. Columns that may hold such text have the type ANY; lists are
JSON in ASCII, where a surrogate is \udcff, and have the type TEXT; those of plans and commands are packed where they are long.
Instants are INTEGER microseconds since 1970 in UTC, in columns whose names end in `_at`.
"""

import functools
import json
import math
import os
import re
import sqlite3
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from orchestrator.domain.answers import NOT_READ
from orchestrator.domain.errors import Evidence, HistoryError
from orchestrator.history import schema
from orchestrator.history.columns import check_column, to_microseconds
from orchestrator.history.failures import (
    broken_off,
    damaged_value,
    explain,
    not_ours_alone,
    of_another,
    out_of_reach,
    planted,
    too_new,
)
from orchestrator.history.older_copy import drop_renewed_copies, renewed_copy
from orchestrator.trees.beneath import writable_by_others

if TYPE_CHECKING:
    from orchestrator.history.reserve import Reserve

_STATE = frozenset(
    "history.sqlite history.sqlite-journal authentication.key fleet.key fleet-away notes locks running arrivals drill hooks sanoid"
    " last-good daemon.pid control.sock web.sock".split()
)
_OF_GATES = re.compile(r"gate-.+\.(?:lock|places|session)", re.DOTALL)


def is_write_open(path: str) -> bool:
    """Return whether a write to a history goes on, or was cut: else its journal, which stays beside it, is empty."""
    try:
        return os.lstat(f"{path}-journal").st_size > 0
    except OSError:
        return False  # there is none, or who opens the history learns why


def connect_writer(path: str, wait_s: float) -> sqlite3.Connection:
    """Connect to the history at `path` for writing; create or migrate it where needed. Raises: HistoryError."""
    try:
        folder = os.path.dirname(path) or "."
        if os.path.isdir(folder):
            _close(folder)
        if open_to_others := next(writable_by_others((folder,)), None):
            raise not_ours_alone(open_to_others)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        if not os.path.lexists(path):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        cut = is_write_open(path)
    except OSError as error:
        raise out_of_reach(path=path, words=str(error)) from error
    connection = _opened(path, wait_s, writes=True)
    if cut:  # a write was going on, or was cut: by a crash that may have torn pages, too
        try:
            check_pages(connection, path, whole=False)
        except HistoryError:
            connection.close()
            raise
    return connection


def check_pages(connection: sqlite3.Connection, path: str, *, whole: bool) -> None:
    """Look through all pages of the file; `whole`: also whether indexes and tables agree. Raises: HistoryError."""
    try:
        found = connection.execute(f"PRAGMA {'integrity_check' if whole else 'quick_check'}(1)").fetchone()[0]
    except sqlite3.Error as error:
        raise explain(name=getattr(error, "sqlite_errorname", ""), words=str(error), path=path) from error
    except UnicodeError as error:
        raise explain(name="SQLITE_CORRUPT", words=str(error), path=path) from error
    if found != "ok":
        words = " ".join(str(found).split())[:200]
        raise explain(name="SQLITE_CORRUPT", words=words, path=path)


def _close(folder: str) -> None:
    """Restrict the state directory to its owner, as it holds names and digests and an older version left it open.

    In a directory that holds other files too, only our own files are restricted.
    """
    seen = os.stat(folder)
    if not seen.st_mode & 0o077 or seen.st_uid != os.geteuid():
        return
    if seen.st_mode & 0o022:
        refuse_planted(folder)
    names = set(os.listdir(folder))
    ours = {name for name in names if name in _STATE or _OF_GATES.fullmatch(name)}
    if names == ours:
        os.chmod(folder, 0o700)
    for name in ours:
        path = os.path.join(folder, name)
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            os.chmod(path, 0o700 if stat.S_ISDIR(mode) else 0o600)


def refuse_planted(folder: str) -> None:
    """Refuse what somebody else laid into a directory that all may write. Raises: HistoryError."""
    for above, folders, files in os.walk(folder):
        for path in (os.path.join(above, name) for name in (*folders, *files)):
            found = os.lstat(path)
            if found.st_uid != os.geteuid() or stat.S_ISLNK(found.st_mode):
                raise planted(path=path, folder=folder)


def connect_reader(path: str, wait_s: float) -> sqlite3.Connection:
    """Connect read-only; without a history yet, to an empty one in memory. Raises: HistoryError.

    Why: before the first run every job's state is "never", which is a result, not a failure.
    """
    try:
        if os.stat(path).st_size == 0:
            return _opened(":memory:", wait_s, writes=True)
    except FileNotFoundError:
        return _opened(":memory:", wait_s, writes=True)
    except OSError as error:
        raise out_of_reach(path=path, words=str(error)) from error
    return connect_existing(path, wait_s)


def history_mark(path: str) -> tuple[int, ...]:
    """Return a value that changes with each write to the file at `path`; empty: there is none. It asks for no lock.

    Source: sqlite.org/fileformat.html, 1.3.7: the counter at offset 24 grows with each transaction.
    """
    try:
        with open(path, "rb") as file:
            head, seen = file.read(28), os.fstat(file.fileno())
    except OSError:
        return ()
    return (int.from_bytes(head[24:28], "big"), seen.st_mtime_ns, seen.st_size, seen.st_ino)


def connect_existing(path: str, wait_s: float) -> sqlite3.Connection:
    """Connect read-only to a history that must exist. Raises: HistoryError.

    A write that a crash interrupted is rolled back first, if this user may.
    """
    try:
        return _opened(path, wait_s, writes=False)
    except HistoryError as error:
        half = getattr(error.__cause__, "sqlite_errorname", "") == "SQLITE_READONLY_ROLLBACK"
        if not (half and os.access(path, os.W_OK)):
            raise
    look_at_file(path, wait_s, writes=True)
    return _opened(path, wait_s, writes=False)


def look_at_file(path: str, wait_s: float, *, writes: bool) -> None:
    """Open and close the file, and leave its format: an older version may be in use. `writes`: SQLite undoes a write that was cut."""
    try:
        with closing(_connected(path, wait_s, writes=writes)) as connection:
            _require_ours(connection, path)
    except sqlite3.Error as error:
        raise explain(name=getattr(error, "sqlite_errorname", ""), words=str(error), path=path) from error


def _opened(path: str, wait_s: float, *, writes: bool) -> sqlite3.Connection:
    """Open a connection of the right version and set it up; close it again if anything is wrong."""
    connection: sqlite3.Connection | None = None
    try:
        connection = _connected(path, wait_s, writes=writes)
        older = _require_ours(connection, path) < schema.newest()
        if writes:
            _set_up(connection)
            if older:
                schema.migrate(connection)
            if path != ":memory:":
                drop_renewed_copies(path)  # also what a run left that died after it migrated
        elif older:
            connection = renewed_copy(connection, path, history_mark, version=schema.newest(), migrate=schema.migrate)
    except BaseException as error:
        if connection:
            connection.close()
        if isinstance(error, sqlite3.Error):
            raise explain(name=getattr(error, "sqlite_errorname", ""), words=str(error), path=path) from error
        if isinstance(error, UnicodeError):  # SQLite quotes damaged data, which Python cannot decode
            raise explain(name="SQLITE_CORRUPT", words=str(error), path=path) from error
        raise
    return connection


def _connected(path: str, wait_s: float, *, writes: bool) -> sqlite3.Connection:
    if path == ":memory:":
        name = path
    else:
        # Every byte written as %xx: urllib would leave some unchanged, with the same meaning, but its import costs each start 3
        # ms.
        whole = "".join(f"%{byte:02x}" for byte in os.fsencode(os.path.abspath(path)))
        name = f"file:{whole}?mode={'rwc' if writes else 'ro'}"
    # Workers record from threads of their own; the lock of `Database` separates them.
    return sqlite3.connect(name, uri=True, timeout=wait_s, isolation_level=None, check_same_thread=False)


def _set_up(connection: sqlite3.Connection) -> None:
    """Set the pragmas of a connection that writes. Why these: see the docstring of the package."""
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA journal_mode = TRUNCATE")
    connection.execute("PRAGMA synchronous = FULL")


def _require_ours(connection: sqlite3.Connection, path: str) -> int:
    """Return the file's version. Raises: HistoryError if another program, or a newer poolferry, wrote it.

    Why before anything else: a file that is not ours is not changed.
    """
    mark, version, tables = schema.state(connection)
    known = schema.newest()
    if mark != schema.MARK and (mark, version, tables) != (0, 0, 0):
        raise of_another(path=path)
    if version > known:
        raise too_new(path=path, version=version, known=known)
    return version


Row = dict[str, Any]
_Value = TypeVar("_Value")


class Database:
    """Database session for History and Views. Every method raises HistoryError when SQLite refuses."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()
        self._depth = 0
        self._writer: int | None = None  # the thread in a transaction
        self._later: list[Callable[[], None]] = []
        self._reserve: Reserve | None = None

    def close(self) -> None:
        """Close the file; an unfinished transaction is rolled back."""
        with self._lock:
            self._connection.close()
            if self._reserve is not None:
                self._reserve.give_up()

    def keep_reserve(self) -> None:
        """Keep room for what is written from now on, until the file is closed."""
        from orchestrator.history.reserve import Reserve

        with self._lock:
            if self._reserve is None:
                self._reserve = Reserve(os.path.dirname(self.path))
            self._reserve.keep()

    def check(self, *, whole: bool) -> None:
        """Look through all pages. Raises: HistoryError when the file is damaged."""
        with self._lock:
            check_pages(self._connection, self.path, whole=whole)

    @contextmanager
    def together(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        """Run all statements inside as one transaction: all are stored, or none. An inner one is a part of the outer one."""
        later: list[Callable[[], None]] = []
        try:
            with self._lock:
                self._depth += 1
                self._writer = threading.get_ident()
                try:
                    if self._depth > 1:
                        yield
                    else:
                        with self._transaction(kind):
                            yield
                finally:
                    self._depth -= 1
                    if not self._depth:
                        self._writer, later, self._later = None, self._later, []
        finally:
            for each in later:
                each()

    def afterwards(self, show: Callable[[], None]) -> None:
        """Call `show` now; or where this thread is in a transaction, once it has ended, however it did: who shows something may wait for a terminal."""
        if self._writer == threading.get_ident():
            self._later.append(show)
        else:
            show()

    def glance(self) -> Any:
        """Open a read transaction: all reads inside see the same moment."""
        return self.together("DEFERRED")

    def rows(self, statement: str, /, **values: object) -> list[Row]:
        """Return all rows at once, each column of its type. Why at once: an open read would make a writer's commit wait."""
        with self._lock:
            self._require_whole()
            with self._plainly(), self.understood(statement):
                cursor = self._connection.execute(load_queries()[statement], _bound(values))
                return _rows(cursor.description, cursor.fetchall())

    def first(self, statement: str, /, **values: object) -> Row | None:
        """Return the first row, or None."""
        return next(iter(self.rows(statement, **values)), None)

    def values(self, statement: str, decode: Callable[[Row], _Value], /, **values: object) -> tuple[_Value, ...]:
        """Return all rows as values. `decode`: what makes one of a row; where it fails, the history is damaged."""
        found = self.rows(statement, **values)
        with self.understood(statement):
            return tuple(map(decode, found))

    def value(self, statement: str, decode: Callable[[Row], _Value], /, **values: object) -> _Value | None:
        """Return the first row as a value, or None."""
        found = self.first(statement, **values)
        if found is None:
            return None
        with self.understood(statement):
            return decode(found)

    def by_job(
        self,
        statement: str,
        decode: Callable[[Row], _Value],
        jobs: Iterable[str] | Mapping[str, int],
        /,
        **values: object,
    ) -> dict[str, list[_Value]]:
        """Return the values of many jobs by one statement, by job; empty for one without any. `jobs`: names, or a number of each."""
        asked = json.dumps(jobs if isinstance(jobs, Mapping) else list(jobs))
        found: dict[str, list[_Value]] = {job: [] for job in jobs}
        rows = self.rows(statement, jobs=asked, **values) if found else ()
        with self.understood(statement):
            for row in rows:
                found[row["job"]].append(decode(row))
        return found

    @contextmanager
    def understood(self, what: str) -> Iterator[None]:
        """Raise HistoryError where anything stored is not what we store. `what`: the statement that read it, or a fact's key."""
        try:
            yield
        except NOT_READ as error:
            raise damaged_value(path=self.path, what=what, error=error) from error

    def add(self, statement: str, /, **values: object) -> int:
        """Run an INSERT and return the id of the new row."""
        return self._write(statement, values).lastrowid or 0

    def change(self, statement: str, /, **values: object) -> int:
        """Run an UPDATE, or an INSERT whose id is not needed; return the number of changed rows."""
        return self._write(statement, values).rowcount

    def _write(self, statement: str, values: dict[str, object]) -> sqlite3.Cursor:
        with self.together():
            self._require_whole()
            with self._plainly():
                return self._connection.execute(load_queries()[statement], _bound(values))

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        if self._reserve is not None and kind != "DEFERRED":
            self._reserve.make_room()
        with self._plainly():
            self._connection.execute(f"BEGIN {kind}")
        try:
            yield
            self._require_whole()
            with self._plainly():
                self._connection.execute("COMMIT")
        except BaseException:
            with self._plainly():
                if self._connection.in_transaction:  # a full disk makes SQLite roll back by itself
                    self._connection.execute("ROLLBACK")
            raise

    def _require_whole(self) -> None:
        """Check our transaction. Raises: HistoryError if SQLite ended it: the rest must not be stored alone."""
        if self._depth and not self._connection.in_transaction:
            raise broken_off(path=self.path)

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            if isinstance(error, sqlite3.OperationalError) and name in (
                "",
                "SQLITE_ERROR",
            ):  # sums, and text of no encoding
                raise damaged_value(path=self.path, what="a statement", error=error) from error
            raise explain(name=name, words=str(error), path=self.path) from error


def _bound(values: dict[str, object]) -> dict[str, object]:
    """Convert values for SQLite: text by `encode_text`, instants to microseconds."""
    return {name: _bindable(value) for name, value in values.items()}


def _bindable(value: object) -> object:
    match value:
        case str():
            return encode_text(str(value))  # an enum's text, not the enum
        case datetime():
            return to_microseconds(value)
        case _:
            return value


def _rows(columns: Sequence[Sequence[object]], found: list[tuple[object, ...]]) -> list[Row]:
    """Build rows by column name; columns *_at become instants. `columns`: each name, and SQLite's description of it."""
    names = tuple(str(column[0]) for column in columns)
    return [{name: check_column(name, value) for name, value in zip(names, values, strict=True)} for values in found]


def backup(source: str, target: str, wait_s: float) -> None:
    """Copy the committed data at `source` to `target`: written aside, renamed, not synced. Raises: HistoryError.

    Why by a connection of its own: a transaction that is going on is not part of the copy. Why not synced: who keeps it stores it elsewhere.
    """
    part = f"{target}.{os.getpid()}.part"
    try:
        with suppress(FileNotFoundError):
            os.unlink(part)
        try:
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            _copy(source, part, wait_s)
            os.replace(part, target)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part)
    except OSError as error:
        raise out_of_reach(path=target, words=str(error)) from error


def _copy(source: str, target: str, wait_s: float) -> None:
    origin = connect_existing(source, wait_s)
    try:
        into = sqlite3.connect(target, isolation_level=None)
        try:
            into.execute("PRAGMA synchronous = OFF")
            into.execute("PRAGMA journal_mode = OFF")
            origin.backup(into)
        finally:
            into.close()
    except sqlite3.Error as error:
        raise explain(name=getattr(error, "sqlite_errorname", ""), words=str(error), path=target) from error
    finally:
        origin.close()


_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@functools.cache
def load_queries() -> dict[str, str]:
    """Return all statements of queries.sql."""
    with open(os.path.join(os.path.dirname(__file__), "queries.sql"), encoding="utf-8", newline="\n") as file:
        parts = _NAME.split(file.read())
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def encode_text(text: str) -> str | bytes:
    """Return the value that a column of type ANY stores for this text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _raw(text)
    return text


def tail_of_output(output: str | bytes, limit: int) -> str:
    """Return the last `limit` bytes of an output, begun at a whole character."""
    raw = output if isinstance(output, bytes) else _raw(output)
    if len(raw) <= limit:
        return raw.decode("utf-8", "surrogateescape")
    last = raw[-limit:]
    begun = next((at for at in range(min(4, len(last))) if last[at] & 0xC0 != 0x80), 0)
    return last[begun:].decode("utf-8", "surrogateescape")


def encode_list(values: Iterable[object]) -> str:
    """Return a list as JSON; ASCII, so that any text survives."""
    return json.dumps(list(values))


def decode_list(text: str | None) -> tuple[str, ...]:
    """Return the texts of a stored list; none when none were stored. Raises: ValueError for anything else."""
    return _texts(parse_stored(text)) if text is not None else ()


def decode_exits(text: str | None) -> tuple[int | None, ...]:
    """Return the exit statuses of a stored list; None: still unknown when it ended. Raises: ValueError for anything else."""
    return _exits(parse_stored(text)) if text is not None else ()


def _texts(found: object) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise ValueError("not a list of texts")
    return tuple(found)


def _exits(found: object) -> tuple[int | None, ...]:
    if not isinstance(found, list) or not all(each is None or type(each) is int for each in found):
        raise ValueError("not a list of numbers")
    return tuple(found)


_DEEPEST = 50  # lists in lists; what is stored has five


def parse_stored(text: str) -> Any:
    """Parse JSON of a column. Raises: ValueError, also for what cannot be written as JSON again."""
    found = json.loads(text)
    _check_depth(found, 0)
    return found


def _check_depth(found: object, depth: int) -> None:
    if depth > _DEEPEST or (isinstance(found, float) and not math.isfinite(found)):
        raise ValueError("JSON that nobody here has written")
    for each in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        _check_depth(each, depth + 1)


def encode_evidence(evidence: Evidence | None) -> str | None:
    """Return the evidence as JSON."""
    if evidence is None:
        return None
    # "last_words": the field's name in the first histories.
    return json.dumps(
        {"lines": evidence.lines, "exits": evidence.exits, "last_words": evidence.last_output, "host": evidence.host}
    )


def decode_evidence(text: str | None) -> Evidence | None:
    """Parse the evidence that `encode_evidence` wrote."""
    if text is None:
        return None
    held = parse_stored(text)
    if not isinstance(held["host"], str | None):
        raise ValueError("a host without a name")
    return Evidence(
        lines=_texts(held["lines"]),
        exits=_exits(held["exits"]),
        last_output=_texts(held["last_words"]),
        host=held["host"],
    )


def _raw(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a surrogate that stands for no byte, as JSON may contain
        return text.encode("utf-8", "surrogatepass")
