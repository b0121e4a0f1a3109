"""The schema of the history: numbered scripts, of which number n leads to version n, and the whole of it, with which a new one begins.

A script is never changed once it is released: a history may be of any age. `schema.sql` is what all of them leave, word for word; a
test compares it. A new history begins with it, as the scripts one after the other take more than twice as long.
"""

import functools
import os
import sqlite3

from orchestrator.domain.answers import split_lines

MARK = 0x706F6F6C  # "pool", as SQLite's application_id: a file of another program is never migrated
_HERE = os.path.dirname(__file__)
_MIGRATIONS = os.path.join(_HERE, "migrations")


def newest() -> int:
    """Return the version that this program writes."""
    return len(_names())


@functools.cache
def script(number: int) -> str:
    """Return the script that leads to that version."""
    return _read(os.path.join(_MIGRATIONS, _names()[number - 1]))


def state(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Return a file's application id, its version, and its number of tables and indexes."""
    row = connection.execute(
        "SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)"
        " FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    return int(row[0]), int(row[1]), int(row[2])


def migrate(connection: sqlite3.Connection) -> None:
    """Migrate to the newest version in one transaction, so that no reader sees a version between; do nothing if another was faster."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if state(connection) == (0, 0, 0):
            _run(connection, _read(os.path.join(_HERE, "schema.sql")))
        for number in range(state(connection)[1] + 1, newest() + 1):
            _run(connection, script(number))
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute(f"PRAGMA application_id = {MARK}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def make_version(connection: sqlite3.Connection, version: int) -> None:
    """Make the schema of a version, by its scripts."""
    for number in range(1, version + 1):
        _run(connection, script(number))


def _run(connection: sqlite3.Connection, text: str) -> None:
    """Run a script's statements. Why one by one: sqlite3's executescript commits before it begins."""
    held = ""
    for line in split_lines(text):
        held += f"{line}\n"
        if sqlite3.complete_statement(held):
            connection.execute(held)
            held = ""


@functools.cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(name for name in os.listdir(_MIGRATIONS) if name.endswith(".sql")))


def _read(path: str) -> str:
    with open(path, encoding="utf-8", newline="\n") as file:
        return file.read()
