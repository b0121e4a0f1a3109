"""A consistent copy of the history, such as the one that lies beside a target's points.

Changes things.
"""

import os
import sqlite3
from contextlib import suppress

from orchestrator.history.failures import explain, out_of_reach
from orchestrator.history.opening import connect_existing


def backup(source: str, target: str, wait_s: float) -> None:
    """Copies what is committed at `source` to `target`: written aside, synced, renamed. Raises: HistoryError.

    Why by a connection of its own: a transaction that is going on is not part of the copy.
    """
    part = f"{target}.{os.getpid()}.part"
    try:
        with suppress(FileNotFoundError):
            os.unlink(part)
        try:
            _copy(source, part, wait_s)
            _sync(part)
            os.replace(part, target)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part)
        _sync(os.path.dirname(target) or ".")
    except OSError as error:
        raise out_of_reach(path=target, words=str(error)) from error


def _copy(source: str, target: str, wait_s: float) -> None:
    origin = connect_existing(source, wait_s)
    try:
        into = sqlite3.connect(target, isolation_level=None)
        try:
            into.execute("PRAGMA synchronous = OFF")  # synced once, when it is whole
            into.execute("PRAGMA journal_mode = OFF")
            origin.backup(into)
        finally:
            into.close()
    except sqlite3.Error as error:
        raise explain(name=getattr(error, "sqlite_errorname", ""), words=str(error), path=target) from error
    finally:
        origin.close()


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
