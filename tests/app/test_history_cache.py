"""Values of history and configuration are kept for many who look, until one of these changed, and for some seconds."""

import pytest

from orchestrator import compose
from orchestrator.app.history_cache import HistoryCache
from orchestrator.app.settings import Settings
from orchestrator.history.store import open_history
from tests.ferry import Ferry


def test_a_value_is_kept_until_something_was_written_and_for_some_seconds(
    ferry: Ferry, monkeypatch: pytest.MonkeyPatch
) -> None:
    ferry.job()
    settings = Settings(config=str(ferry.config), state=str(ferry.state))
    kept, made, clock = HistoryCache[int](settings), list[str](), [0.0]
    monkeypatch.setattr(compose, "monotonic", lambda: clock[0])

    def asked(name: str = "a") -> int:
        def make() -> int:
            made.append(name)
            return len(made)

        return kept.get(name, make)

    assert (asked(), asked(), asked("b"), asked()) == (1, 1, 2, 1)
    with open_history(settings.where.history) as history:
        assert asked() == 3
        history.remember("photos", "a", "fact")
        assert (asked(), asked()) == (4, 4)
    ferry.job("music")
    assert (asked(), asked()) == (5, 5)
    clock[0] = 9.9
    assert asked() == 5
    clock[0] = 10.1
    assert (asked(), asked()) == (6, 6)
    for number in range(16):
        asked(f"other {number}")
    assert asked() == 23, "of many, those that were made last"


def test_what_cannot_be_made_is_not_kept(ferry: Ferry) -> None:
    ferry.job()
    kept = HistoryCache[int](Settings(config=str(ferry.config), state=str(ferry.state)))
    with pytest.raises(ZeroDivisionError):
        kept.get("a", lambda: 1 // 0)
    assert kept.get("a", lambda: 7) == 7
