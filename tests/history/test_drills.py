"""Drills are remembered whole, the newest first."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.domain.drill import DrillResult, UserCheckResult
from orchestrator.domain.run import Outcome, RunType
from orchestrator.history.store import History, open_history

NOW = datetime(2026, 11, 20, tzinfo=UTC)
DRILLED = DrillResult(
    place="red", point="2026", outcome=Outcome.FAILED, why="a\udcffb is rotten", whole=True, self_test=False, seed=2**62,
    files=3, bytes=2**40, of_files=9, of_bytes=2**41, restore_s=1.5, differences=("a\udcffb: rotten", "c: missing"),
    checked=UserCheckResult(argv=("look", "\udcff"), exit=None, output="said\n"),
)  # fmt: skip


def begun(history: History, job: str = "photos") -> int:
    return history.begin(
        job=job, engine="rsync", source="/a", target="/b", now=NOW, pid=1, process_started=1, boot="b", host="h",
        why="drill", kind=RunType.DRILL,
    )  # fmt: skip


def test_what_was_found_comes_back(tmp_path: Path) -> None:
    with open_history(str(tmp_path / "history")) as history:
        runs = [begun(history) for _ in range(3)]
        bare = DrillResult(place="red", point=None, outcome=Outcome.DONE, why="", whole=False, self_test=True, seed=0)
        history.drills.keep(runs[0], "photos", DRILLED, NOW)
        history.drills.keep(runs[1], "photos", bare, NOW + timedelta(days=1))
        history.drills.keep(begun(history, "music"), "music", replace(bare, seed=5), NOW)
        newest, oldest = history.views.drills.of("photos")
        assert (newest.run, newest.drilled, newest.at) == (runs[1], bare, NOW + timedelta(days=1))
        assert (oldest.run, oldest.job, oldest.drilled) == (runs[0], "photos", DRILLED)
        assert history.views.drills.of_run(runs[0]) == oldest
        assert history.views.drills.of_run(runs[2]) is None
        assert history.views.drills.of("photos", limit=1) == (newest,)
