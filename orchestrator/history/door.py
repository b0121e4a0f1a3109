"""One connection, safe for threads: named statements in, decoded rows out, transactions, errors made plain.

Changes things.
"""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from orchestrator.history.failures import broken_off, explain
from orchestrator.history.queries import queries
from orchestrator.history.text import instant, micros, restored, stored

Row = dict[str, Any]


class Door:
    """Speaks to SQLite for History and Views. Every method raises HistoryError for what SQLite refuses."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self.path = path
        self._connection = connection
        self._lock = threading.RLock()
        self._depth = 0

    def close(self) -> None:
        """Lets the file go; a transaction that was not ended is rolled back."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def together(self, kind: str = "IMMEDIATE") -> Iterator[None]:
        """All statements inside as one transaction: all are remembered, or none. Inside another one: part of it."""
        with self._lock:
            self._depth += 1
            try:
                if self._depth > 1:
                    yield
                else:
                    with self._transaction(kind):
                        yield
            finally:
                self._depth -= 1

    def glance(self) -> Any:
        """All reads inside see the same moment."""
        return self.together("DEFERRED")

    def rows(self, statement: str, /, **values: object) -> list[Row]:
        """All rows at once. Why: a look held open would make a writer's commit wait."""
        with self._lock:
            self._require_whole()
            with self._plainly():
                cursor = self._connection.execute(queries()[statement], _bound(values))
                return _rows(cursor.description, cursor.fetchall())

    def first(self, statement: str, /, **values: object) -> Row | None:
        """The first row, if any."""
        return next(iter(self.rows(statement, **values)), None)

    def add(self, statement: str, /, **values: object) -> int:
        """Runs an INSERT; the id of the new row."""
        return self._write(statement, values).lastrowid or 0

    def change(self, statement: str, /, **values: object) -> int:
        """Runs an UPDATE, or an INSERT whose id nobody needs; how many rows it touched."""
        return self._write(statement, values).rowcount

    def _write(self, statement: str, values: dict[str, object]) -> sqlite3.Cursor:
        with self.together():
            self._require_whole()
            with self._plainly():
                return self._connection.execute(queries()[statement], _bound(values))

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
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
        """Raises: HistoryError if SQLite ended our transaction by itself: the rest must not be remembered alone."""
        if self._depth and not self._connection.in_transaction:
            raise broken_off(path=self.path)

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            raise explain(name=name, words=str(error), path=self.path) from error


def _bound(values: dict[str, object]) -> dict[str, object]:
    """What SQLite takes: text as `stored` says, instants as microseconds."""
    return {name: _bindable(value) for name, value in values.items()}


def _bindable(value: object) -> object:
    match value:
        case str():
            return stored(str(value))  # an enum's text, not the enum
        case datetime():
            return micros(value)
        case _:
            return value


def _rows(columns: Sequence[Sequence[object]], found: list[tuple[object, ...]]) -> list[Row]:
    """The rows by column names; columns *_at are instants. `columns`: each name, and what SQLite says of it."""
    names = tuple((name, name.endswith("_at")) for name in (str(column[0]) for column in columns))
    return [
        {name: _column(value, is_instant) for (name, is_instant), value in zip(names, values, strict=True)}
        for values in found
    ]


def _column(value: object, is_instant: bool) -> object:
    return instant(value) if is_instant and isinstance(value, int) else restored(value)
