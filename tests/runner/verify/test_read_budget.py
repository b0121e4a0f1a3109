"""Datasets that are read again within a budget: a scrub of their pool counts for those that had been read before it."""

from datetime import timedelta
from pathlib import Path

from orchestrator.history.store import open_history
from orchestrator.runner.disk.state import READING, SCRUBBED
from orchestrator.runner.verify.read_budget import _sent
from tests.engines.zfs.sides import NOW
from tests.runner.journals import journal


def test_a_scrub_reads_what_had_been_read_before_it(tmp_path: Path) -> None:
    """Of a dataset that was never read nobody knows whether it was there; a later reading stays."""
    with open_history(str(tmp_path / "history.sqlite")) as history:
        made = journal(history, tmp_path)
        place = made.job.target.name
        for name, days in (("old", -9), ("new", -1)):
            read = NOW + timedelta(days=days)
            history.remember(made.job.name, f"{READING}{place} {name}", read.isoformat())
        history.remember(made.job.name, SCRUBBED + place, (NOW - timedelta(days=3)).isoformat())
        found = {name: item.read_at for name, item in _sent(made, dict.fromkeys(("old", "new", "never"))).items()}
    assert found == {"old": NOW - timedelta(days=3), "new": NOW - timedelta(days=1), "never": None}
