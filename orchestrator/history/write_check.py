"""The check whether a run could be recorded: as a writer opens a history, but without a change."""

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing

from orchestrator.domain.errors import HistoryError
from orchestrator.history.database import check_pages, look_at_file, refuse_planted
from orchestrator.history.failures import explain, not_ours_alone, out_of_reach
from orchestrator.trees.beneath import writable_by_others


def check_writable(path: str) -> None:
    """Check whether a history that exists could be written, and change nothing: no format, no mode, no lock that a writer waits for.

    One that is locked can be written later. Raises: HistoryError.
    """
    try:
        _refuse_open(os.path.dirname(path) or ".")
        if os.stat(path).st_size and not os.access(path, os.W_OK):
            raise explain(name="SQLITE_READONLY", words="no right to write", path=path)
        look_at_file(path, 0.0, writes=False)
    except OSError as error:
        raise out_of_reach(path=path, words=str(error)) from error
    except HistoryError as error:
        name = getattr(error.__cause__, "sqlite_errorname", "")
        if name.startswith("SQLITE_READONLY_ROLLBACK"):
            _check_cut_write(path)
        elif not name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise


def _refuse_open(folder: str) -> None:
    """Refuse a state directory as a writer does, who closes his own first. Raises: HistoryError · OSError."""
    seen = os.stat(folder)
    closable = seen.st_uid == os.geteuid() and seen.st_mode & 0o022
    if closable:
        refuse_planted(folder)
    judged = os.path.dirname(os.path.abspath(folder)) if closable else folder
    if open_to_others := next(writable_by_others((judged,)), None):
        raise not_ours_alone(open_to_others)


def _check_cut_write(path: str) -> None:
    """Look in a copy whether a history is whole once its cut write is undone: a crash may have torn pages, too. Raises: HistoryError."""
    with tempfile.TemporaryDirectory(prefix="poolferry-") as folder:
        copy = shutil.copy(path, folder)
        shutil.copy(f"{path}-journal", folder)
        with closing(sqlite3.connect(copy)) as connection:
            check_pages(connection, path, whole=False)
