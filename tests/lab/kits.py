"""A history in which jobs have a recovery kit of today: what a test is not about, its machine need not make.

Changes things: in a folder of its own.
"""

import functools
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.domain.kit import Kit
from orchestrator.history.store import open_history

EMPTY = Kit(content="{}", layout="", recovery="", guids="")


@functools.cache
def history_with_kits(*jobs: str) -> bytes:
    """The file, new but for a kit of each job."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "history.sqlite")
        with open_history(str(path)) as history:
            for job in jobs:
                history.kits.keep(job, EMPTY, datetime.now(UTC))
        return path.read_bytes()
