"""A history of our schema with values that we never stored: each reader gives a value to work with, or one clear error, soon."""

import sqlite3
import time
import zlib
from binascii import b2a_base64
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.domain.errors import HistoryError
from orchestrator.history.columns import NUMBERS as REAL_NUMBERS
from orchestrator.history.columns import WHOLE_NUMBERS
from orchestrator.history.database import Database
from orchestrator.history.disks import DiskHistory
from orchestrator.history.due_runs import DueRunHistory
from orchestrator.history.views import HistoryReader
from tests.ferry import Ended, Ferry
from tests.history.populated import loosened, populate, readers
from tests.hostile.answers import usable

TEXTS = (
    "in rotation", "", "\0", b"\xff\xfe", None, 7, 1.5, "[" * 20_000, "[[" * 40 + "]]" * 40, "[1e999]", '["a", 5]', "{}", "null",
    '{"lines": 1, "exits": [], "last_words": [], "host": null}', "9" * 5000, "9999-12-31",
    "zlib:", "zlib:AAAA", "zlib:" + b2a_base64(zlib.compress(b"[" * (100 << 20)), newline=False).decode(),
    "zlib:" + b2a_base64(zlib.compress(b'[["a"]' + b', ["a"]' * 100_000 + b"]"), newline=False).decode(),
)  # fmt: skip
NUMBERS = (
    "many", "", b"7", None, -1, (1 << 63) - 1, -(1 << 63), 253_402_300_799_000_000, 1.5, float("inf"), -1e300,
)  # fmt: skip
SOON = 2.0  # seconds of processor time for all readers together


def failure(read: Callable[[], object]) -> Exception | None:
    """Read; return the error, if there is one."""
    try:
        usable(read())
    except Exception as error:  # noqa: BLE001 - of whatever class
        return error
    return None


def tables_read(connection: sqlite3.Connection, read: Callable[[], object]) -> set[str]:
    """Read what is whole; return the tables that were read for it."""
    found = set[str]()

    def note(action: int, table: str | None, *_: object) -> int:
        if action == sqlite3.SQLITE_READ and table is not None:
            found.add(table)
        return sqlite3.SQLITE_OK

    connection.set_authorizer(note)
    try:
        assert read() is not None
    finally:
        connection.set_authorizer(None)
    return found


def columns(connection: sqlite3.Connection) -> list[tuple[str, str, bool]]:
    """Return each table's columns, and whether they hold numbers."""
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return [
        (table, str(name), name in WHOLE_NUMBERS | REAL_NUMBERS or name.endswith("_at"))
        for table in tables if not table.startswith("sqlite_")
        for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")
    ]  # fmt: skip


def test_any_value_in_any_column(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    populate(path)
    with loosened(path) as connection:
        whole, refused = connection.serialize(), set[tuple[str, str]]()
        reading = readers(HistoryReader(Database(connection, str(path))))
        tables = {name: tables_read(connection, read) for name, read in reading.items()}
        for table, column, number in columns(connection):
            for value in NUMBERS if number else TEXTS:
                # A connection of its own: SQLite 3.40 crashes where json_each was used before a history was put in place of another.
                with closing(sqlite3.connect(":memory:", isolation_level=None)) as damaged:
                    damaged.deserialize(whole)
                    try:
                        damaged.execute(f"UPDATE {table} SET {column} = ?", (value,))  # noqa: S608 - the schema's own names
                    except sqlite3.IntegrityError:  # two rows, and one key; or the number of a row
                        continue
                    reading = readers(HistoryReader(Database(damaged, str(path))))
                    concerned = {name: read for name, read in reading.items() if table in tables[name]}
                    began = time.process_time()
                    for name, read in concerned.items():
                        error = failure(read)
                        if error is not None:
                            refused.add((table, column))
                            assert isinstance(error, HistoryError), (table, column, value, name)
                            assert str(path) in error.why, (table, column, value, name)
                            assert f"mv {path}" in error.hint, (table, column, value, name)
                    assert time.process_time() - began < SOON, (table, column, value)
        assert {("disks", "standing"), ("runs", "outcome"), ("problems", "paths"), ("told", "earlier")} <= refused


@pytest.mark.parametrize("reader", [HistoryReader, DueRunHistory, DiskHistory], ids=lambda each: each.__name__)
def test_no_reader_is_left_out(reader: type, tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    populate(path)
    with loosened(path) as connection:
        named = " ".join(readers(HistoryReader(Database(connection, str(path)))))
    for name, member in vars(reader).items():
        if callable(member) and not name.startswith("_") and name not in ("close", "glance"):
            assert name in named


COMMANDS = tuple(
    words.split()
    for words in ("status", "points photos", "history --json", "show 1", "disks list", "verify photos", "plan photos")
)
FORGED = (
    ("UPDATE disks SET standing = 'in rotation'", "disks list"),
    ("UPDATE runs SET outcome = 'splendid'", "history"),
    ("UPDATE attempts SET plan = '[[[['", "show 1 --json"),
    ("UPDATE points SET taken_at = 9223372036854775807", "points photos"),
    ("UPDATE problems SET paths = '[7]'", "status"),
    ("UPDATE readings SET counts = '[[\"splendid\", 1]]'", "points photos"),
    ("UPDATE runs SET took_s = 9e999, moved_bytes = -9223372036854775808", "history"),
    ("UPDATE memory SET value = '[[[['", ""),
    ("UPDATE runs SET job = 'photos' || char(10) || 'x', why = char(27) || '[2J', cure = char(0)", ""),
)


def ended(ferry: Ferry, words: list[str]) -> Ended:
    """A command on the forged history, which ends in a way of its own."""
    found = ferry.run(*words)
    said = found.out + found.err
    assert "mistake in poolferry" not in said, (words, said)
    assert "Traceback" not in said, (words, said)
    return found


@pytest.mark.slow
def test_whole_commands_on_a_forged_history(tmp_path: Path) -> None:
    ferry = Ferry(tmp_path)
    ferry.job()
    assert ferry.run("run", "photos").code == 0
    path = ferry.state / "history.sqlite"
    populate(path, place="photos-copies")
    whole = path.read_bytes()
    for statement, refuses in FORGED:
        path.write_bytes(whole)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement)
        connection.close()
        if not refuses:
            for words in COMMANDS:
                ended(ferry, words)
            continue
        found = ended(ferry, refuses.split())
        assert f"the history {path} holds a value" in found.err + found.out, (statement, found)
        assert f"mv {path}" in found.err + found.out
    # What the hint names: the history is set aside, and all works again.
    path.rename(f"{path}.broken")
    assert ferry.run("run", "photos").code == 0
    assert ferry.run("points", "photos").code == 0
