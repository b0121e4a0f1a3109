"""`status` says that a source is lost or being restored, until history remembers that this is over."""

import subprocess
from datetime import UTC, datetime

import pytest

from orchestrator.domain.source_identity import SOURCE_STATE
from orchestrator.domain.source_state import SourceState, SourceStateRecord
from orchestrator.history.store import open_history
from tests.whole.house import House


@pytest.mark.parametrize(
    ("state", "mode"),
    [(SourceState.ANEW, "its runs rest, and no snapshot is taken of it"), (SourceState.WAITING, "its runs go on")],
)
def test_status_shows_the_state_of_a_source(house: House, state: SourceState, mode: str) -> None:
    house.job()
    house.write(house.source / "a", "a")
    house.run()
    told = SourceStateRecord(
        state=state,
        since=datetime(2026, 3, 4, tzinfo=UTC),
        why="the pool was made anew",
        hint="poolferry restore run photos",
    )
    with open_history(str(house.state / "history.sqlite")) as history:
        history.remember("photos", SOURCE_STATE, str(told))
    found = house.call("status")["jobs"][0]["source_state"]
    assert {key: found[key] for key in ("state", "since", "why", "hint")} == {
        "state": state.value, "since": "2026-03-04T00:00:00Z", "why": told.why, "hint": told.hint,
    }  # fmt: skip
    words = [word for word in house.argv("status") if word != "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=house.environment, timeout=60)
    shown = done.stdout.splitlines()
    assert any(f"source {state.value} (since " in line and mode in line for line in shown), shown
    assert "    what to do: poolferry restore run photos" in shown
    with open_history(str(house.state / "history.sqlite")) as history:
        history.remember("photos", SOURCE_STATE, "")
    assert house.call("status")["jobs"][0]["source_state"] is None
