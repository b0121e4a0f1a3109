"""A history from another machine, such as a kit's: it is checked before anything in it is trusted.

Its schema must be identical to ours, so that no foreign view, trigger or table ever runs a statement here; and each read has a
budget of steps, so that no content makes it endless.
"""

import os
import sqlite3

from orchestrator.domain.errors import HistoryError
from orchestrator.history.schema import MARK, make_version, newest

LARGEST = 512 << 20  # bytes; 100,000 runs take 200 MB
_CURE = "take another kit; a history is only the past: copies are restored without it"
# Virtual machine instructions of SQLite; a check of the largest history takes a tenth of it.
_BUDGET, _EACH = 4_000_000_000, 10_000_000
_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name"


def check_foreign(path: str) -> None:
    """Refuse a history whose schema is not exactly ours. `path`: a local copy that no process writes. Raises: HistoryError."""
    left = [_BUDGET // _EACH]

    def count() -> bool:
        left[0] -= 1
        return left[0] < 0

    whole = "".join(f"%{byte:02x}" for byte in os.fsencode(os.path.abspath(path)))
    connection = sqlite3.connect(f"file:{whole}?mode=ro&immutable=1", uri=True, isolation_level=None)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 64 << 20)
        connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, 1 << 20)
        connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.set_progress_handler(count, _EACH)
        _require_our_schema(connection, path)
        damage = [row[0] for row in connection.execute("PRAGMA integrity_check(3)")]
    except (sqlite3.Error, MemoryError, UnicodeError) as error:
        raise HistoryError(f"the history in the kit cannot be read: {error}", hint=_CURE) from error
    finally:
        connection.close()
    if damage != ["ok"]:
        raise HistoryError(f"the history in the kit is damaged: {damage[0]}", hint=_CURE)


def _require_our_schema(connection: sqlite3.Connection, path: str) -> None:
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if mark != MARK or not 0 < version <= newest():
        raise HistoryError(f"{os.path.basename(path)} in the kit is no history that this poolferry knows", hint=_CURE)
    if connection.execute(_OBJECTS).fetchall() != our_schema(version):
        raise HistoryError("the history in the kit holds tables, views or triggers that are not ours", hint=_CURE)


def our_schema(version: int) -> list[tuple[str, str, str, str]]:
    """Return the schema of a history of that format: type, name, table and statement of each object."""
    ours = sqlite3.connect(":memory:", isolation_level=None)
    try:
        make_version(ours, version)
        return ours.execute(_OBJECTS).fetchall()
    finally:
        ours.close()
