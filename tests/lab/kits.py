"""A history in which jobs have a recovery kit of today, and so have their places: what a test is not about, no machine makes."""

import functools
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.domain.kit import KitContents
from orchestrator.history.store import History, open_history

EMPTY = KitContents(content="{}", layout="", recovery="", guids="")


def keep_kit(history: History, job: str, places: Iterable[str], made: datetime | None = None) -> None:
    """As if the job's kit had been made and carried to these places just now, or when it is told."""
    now = made or datetime.now(UTC)
    history.kits.keep(job, EMPTY, now)
    for place in places:
        history.remember(job, f"kit at {place}", now.isoformat())


@functools.cache
def history_with_kits(jobs: tuple[str, ...], places: tuple[str, ...], made: datetime | None = None) -> bytes:
    """The file, new but for a kit of each job at each place, of now or of when it is told."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "history.sqlite")
        with open_history(str(path)) as history:
            for job in jobs:
                keep_kit(history, job, places, made)
        return path.read_bytes()
