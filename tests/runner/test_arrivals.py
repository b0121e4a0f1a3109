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
from orchestrator.history.store import open_history
from orchestrator.runner.arrivals import arrival_judge, note_first_sight, remember_look, removals
from orchestrator.runner.run_recorder import begin_run
from tests.engines.prune.builders import job, looks, request
from tests.runner.journals import journal

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


def test_a_run_records_what_it_sees_first_and_what_a_person_accepted(tmp_path: Path) -> None:
    with open_history(str(tmp_path / "history.sqlite")) as history:
        tools = replace(journal(history, tmp_path).tools, engine=ENGINE)
        run = begin_run(job(), tools, "asked by hand")
        world = ENGINE.survey(job(), request(), looks())
        with ledger.open_ledger(str(tmp_path), "laptop") as file:
            file.note([("vault/in/laptop/a", "12.101", NOW - timedelta(days=9)), ("vault/other", "1.1", NOW)])
            file.note(("vault/in/laptop/a", f"{n}.7", NOW) for n in range(500))  # long gone
        note_first_sight(run, world, request())
        note_first_sight(run, world, replace(request(), now=NOW + timedelta(days=1)))
        assert ledger.read_arrivals(str(tmp_path)) == {
            ("vault/in/laptop/a", "11.100"): NOW
            - timedelta(days=9),  # it came before the next one, which a gate recorded
            ("vault/in/laptop/a", "12.101"): NOW - timedelta(days=9),
            ("vault/in/laptop/b", "13.102"): NOW,
            ("vault/other", "1.1"): NOW,
        }
        remember_look(run, world, request())
        assert "arrivals accepted" not in history.memory("in")
        remember_look(run, world, replace(request(), allowed=frozenset({"silent-after"})))
        assert "arrivals accepted" not in history.memory("in")
        remember_look(run, world, replace(request(), allowed=frozenset({"max-changed"})))
        assert (history.memory("in")["arrivals accepted"], history.memory("in")["arrivals looked at"]) == (
            "102",
            NOW.isoformat(),
        )
