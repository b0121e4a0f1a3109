"""Details of old runs are removed, their lines stay."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from orchestrator.domain.run import Outcome
from orchestrator.history import store
from orchestrator.history.store import History, open_history
from orchestrator.views.run_history import run_details_lines
from tests.history.records import NOON, begin, later, report

YEAR = timedelta(days=365)


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


def recorded(history: History, *, ends: bool = True) -> int:
    """Return a run with all that a run leaves."""
    run = begin(history)
    history.attempt_begun(run, 1, NOON)
    history.step_begun(run, 1, 0, action="copy", why="new", worker="", commands=("rsync",), expected=None, now=NOON)
    history.attempt_ended(run, 1, NOON, None, None)
    history.said(run, NOON, "warning", "one file vanished")
    history.hook_called(run, "done", ("/hooks/mail",), 0, 0.5, "sent", NOON)
    if ends:
        history.ended(run, report(run, outcome=Outcome.DONE), later(seconds=1))
    return run


def details(history: History, run: int) -> tuple[int, int, int]:
    story = history.views.run(run)
    assert story is not None
    return len(story.attempts), len(story.events), len(story.hooks)


def test_only_what_is_older_goes_and_never_of_an_open_run(history: History) -> None:
    still, old = recorded(history, ends=False), recorded(history)
    history.thin(NOON - YEAR)
    assert details(history, old) == (1, 1, 1)
    history.thin(NOON + YEAR)
    assert (details(history, still), details(history, old)) == ((1, 1, 1), (0, 0, 0))
    story = history.views.run(old)
    assert story is not None
    assert (story.run.outcome, story.run.attempts) == (Outcome.DONE, 1)
    assert any("[history] keep" in line for line in run_details_lines(story, now=NOON))
    kept = history.views.run(still)
    assert kept is not None
    assert not any("[history] keep" in line for line in run_details_lines(kept, now=NOON))


def test_a_long_history_goes_piece_by_piece(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_THINNED", 2)
    runs = [recorded(history) for _ in range(5)]
    for left in (3, 1, 0, 0):
        history.thin(NOON + YEAR)
        assert sum(details(history, run)[0] for run in runs) == left
    assert len(history.views.runs("photos", 10)) == 5
