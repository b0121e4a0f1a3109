"""A run that prunes arrivals: it records what it sees first, forgets what is gone, and stops where it cannot know when points came."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.domain.arrival import ReceivedPoint
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.plan import Refusal
from orchestrator.engines.prune import ENGINE
from orchestrator.engines.registry import load_engine
from orchestrator.history import arrivals as ledger
from orchestrator.runner.arrivals import arrival_judge, removals
from tests.engines.prune.builders import job, looks, request

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def points(*days: int) -> tuple[ReceivedPoint, ...]:
    made = ReceivedPoint(series="vault/in/laptop/a", name="x", identity="1", order=1, dated=NOW - timedelta(days=99))
    return tuple(replace(made, name=f"s{day}", identity=f"{day}", order=1000 - day) for day in days)


def test_a_ledger_that_cannot_be_read_prunes_nothing(tmp_path: Path) -> None:
    (tmp_path / ledger.FOLDER).mkdir()
    (tmp_path / ledger.FOLDER / "laptop").symlink_to("/etc/passwd")
    with pytest.raises(OrchestratorError, match="when points came cannot be read") as raised:
        arrival_judge(job(), ENGINE, {}, state=str(tmp_path), now=NOW, allowed=frozenset())
    assert "nothing was pruned" in raised.value.hint


def test_what_is_remembered_and_recorded_decides(tmp_path: Path) -> None:
    state, there = str(tmp_path), points(90, 80, 70, 60, 2, 1, 0)
    with ledger.open_ledger(state, "laptop") as file:
        file.note((each.series, each.mark, NOW - timedelta(days=int(each.identity))) for each in there)

    def going(**facts: str) -> list[str] | Refusal:
        judge = arrival_judge(job(), ENGINE, facts, state=state, now=NOW, allowed=frozenset())
        assert judge is not None
        judged = judge(there)
        return judged if isinstance(judged, Refusal) else [each.point.name for each in judged]

    assert going() == ["s90", "s80", "s70", "s60"]
    later = going(**{"arrivals looked at": (NOW + timedelta(days=2)).isoformat()})
    assert isinstance(later, Refusal)
    assert later.guard == "clock"
    assert going(**{"arrivals looked at": "never", "arrivals accepted": "x"}) == ["s90", "s80", "s70", "s60"]
    assert arrival_judge(job(), load_engine("rsync"), {}, state=state, now=NOW, allowed=frozenset()) is None
    world = ENGINE.survey(job(), request(), looks())
    assert removals(ENGINE, world, request()) == ()
    assert removals(ENGINE, world, request(lambda _: Refusal(why="no", evidence=(), hint="look"))) == ()
