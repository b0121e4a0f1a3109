"""The schema with which a new history begins is, word for word, what its scripts leave."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path

from orchestrator.history import schema

TEXT = Path(schema.__file__).parent / "schema.sql"
HEAD = """\
-- The whole schema of the history: what the scripts in migrations/ leave, one after the other, word for word. A new history begins with
-- it. Why each table and column is there, the scripts say.
"""


def made(make: Callable[[sqlite3.Connection], object]) -> tuple[list[tuple[str, ...]], list[tuple[object, ...]]]:
    """Returns what a file holds after this: its objects in their order; its columns, rows and version."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        make(connection)
        objects = connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema").fetchall()
        tables = [name for kind, name, *_ in objects if kind == "table"]
        columns = [connection.execute(f"PRAGMA table_xinfo({name})").fetchall() for name in tables]
        rows = [connection.execute(f"SELECT count(*) FROM {name}").fetchall() for name in tables]  # noqa: S608  # our own names
        return objects, [*chain(*columns), *chain(*rows), *connection.execute("PRAGMA user_version")]


def by_scripts(connection: sqlite3.Connection) -> None:
    schema.make_version(connection, schema.newest())
    connection.execute(f"PRAGMA user_version = {schema.newest()}")


def as_text() -> Iterator[str]:
    """Yields the text that the file must have."""
    yield HEAD
    for kind, name, _, sql in made(by_scripts)[0]:
        if sql and not name.startswith("sqlite_"):
            yield f"\n{sql};\n" if kind != "index" else f"{sql};\n"
    yield f"\nPRAGMA user_version = {schema.newest()};\n"


def test_the_schema_is_what_its_scripts_leave(tmp_path: Path) -> None:
    wanted = tmp_path / "schema.sql"
    wanted.write_text("".join(as_text()))
    assert TEXT.read_text() == wanted.read_text(), f"a new script? see what changed, then: cp {wanted} {TEXT}"


def test_a_new_history_is_the_same_by_either_way() -> None:
    assert made(schema.migrate) == made(by_scripts)
