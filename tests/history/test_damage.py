"""Damaged pages of the history are found: after an end that was not clean, and on a rhythm."""

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.domain.errors import HistoryError
from orchestrator.history.store import open_history

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def filled(path: Path) -> None:
    """A history of many pages."""
    with open_history(str(path)) as history:
        history.check_when_due(NOON)
        with history.together():
            for number in range(2000):
                history.remember("photos", f"key {number}", "x" * 200)


def garble(path: Path) -> None:
    """A page in the middle, of a table that is read by few, is zeroed."""
    with closing(sqlite3.connect(path)) as found, found:
        size = found.execute("PRAGMA page_size").fetchone()[0]
        (root,) = found.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'memory'").fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(bytes(size))


def test_it_is_looked_through_once_a_week(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    filled(path)
    with closing(sqlite3.connect(path)) as found, found:
        found.execute("CREATE INDEX extra ON memory (value)")
        found.execute("PRAGMA writable_schema = ON")
        found.execute("UPDATE sqlite_schema SET sql = 'CREATE INDEX extra ON memory (key)' WHERE name = 'extra'")
    with open_history(str(path)) as history:
        history.check_when_due(NOON + timedelta(days=6))
        with pytest.raises(HistoryError, match="is damaged"):
            history.check_when_due(NOON + timedelta(days=8))
        with pytest.raises(HistoryError, match="is damaged"):
            history.check_when_due(NOON + timedelta(days=8))


def test_it_is_looked_through_when_a_write_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    filled(path)
    garble(path)
    Path(f"{path}-journal").write_bytes(b"what a crash left, and no journal that SQLite would roll back")
    with pytest.raises(HistoryError, match="is damaged") as caught:
        open_history(str(path))
    assert f"mv {path}" in caught.value.hint


def test_it_is_looked_through_when_a_run_was_killed(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    filled(path)
    with open_history(str(path)) as history:
        history.begin(
            job="photos", engine="rsync", source="a", target="b", now=NOON, pid=1, process_started=1, boot="x", host="h",
            why="a test",
        )  # fmt: skip
    garble(path)
    with open_history(str(path)) as history, pytest.raises(HistoryError, match="is damaged"):
        history.heal(lambda *_: False, NOON)
