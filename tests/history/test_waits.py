"""Runs that wait for a disk that is away do not fill the history: the first and the newest are kept."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator.domain.run import Outcome, RunReport
from orchestrator.history.store import History, open_history
from tests.history.records import begin
from tests.planners.rotation_world import NOW


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


def ran(history: History, hour: int, outcome: Outcome, why: str, job: str = "photos") -> int:
    run = begin(history, job, now=NOW + timedelta(hours=hour))
    report = RunReport(
        run=run, job=job, outcome=outcome, why=why, hint="", moved_bytes=0, took_s=0.0, resumed=False, attempts=0, steps=(),
        points=(), warnings=(),
    )  # fmt: skip
    history.ended(run, report, NOW + timedelta(hours=hour))
    if outcome is Outcome.WAITING:
        history.fold_waits(report)
    return run


def kept(history: History, job: str = "photos") -> list[int]:
    return [run.id for run in reversed(history.views.runs(job, 100))]


def test_of_many_waits_the_first_and_the_newest_are_kept(history: History) -> None:
    runs = [ran(history, hour, Outcome.WAITING, "no disk of the set offsite is here") for hour in range(6)]
    assert kept(history) == [runs[0], runs[-1]]
    assert history.views.health_facts("photos").first_begun == NOW, "since when it waits is not forgotten"


def test_waits_for_something_else_and_other_jobs_and_other_ends_stay(history: History) -> None:
    away, other = "no disk is here", "disk red is locked"
    runs = [
        ran(history, 1, Outcome.WAITING, away), ran(history, 2, Outcome.WAITING, other), ran(history, 3, Outcome.WAITING, away),
        ran(history, 4, Outcome.DONE, "done"), ran(history, 5, Outcome.WAITING, away),
    ]  # fmt: skip
    mail = [ran(history, 6, Outcome.WAITING, away, "mail"), ran(history, 7, Outcome.WAITING, away, "mail")]
    again = [ran(history, 8, Outcome.WAITING, away), ran(history, 9, Outcome.WAITING, away)]
    assert kept(history) == [*runs, again[-1]]
    assert kept(history, "mail") == mail
