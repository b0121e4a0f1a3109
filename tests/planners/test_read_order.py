"""Test what is read again first; nothing is left out for ever, however small each budget is."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.planners.read_order import ReadItem, choose_next_read, oldest_read

NOW = datetime(2026, 11, 20, tzinfo=UTC)


def unit(name: str, days: float | None, *, suspect: bool = False) -> ReadItem:
    return ReadItem(name=name, read_at=None if days is None else NOW - timedelta(days=days), suspect=suspect)


def test_suspects_come_first_then_what_was_never_read_then_the_oldest() -> None:
    units = [unit("a", 1), unit("b", 30), unit("c", None), unit("d", 2, suspect=True), unit("e", None)]
    turn = []
    while (found := choose_next_read(units, NOW)) is not None:
        turn.append(found.name)
        units = [
            ReadItem(name=each.name, read_at=NOW, suspect=each.suspect) if each == found else each for each in units
        ]
    assert turn == ["d", "c", "e", "b", "a"]


def test_since_when_all_was_read() -> None:
    assert oldest_read([unit("a", 1), unit("b", 30)]) == NOW - timedelta(days=30)
    assert oldest_read([unit("a", 1), unit("c", None)]) is None
    assert oldest_read([]) is None


@given(st.lists(st.none() | st.integers(0, 1000), min_size=1, max_size=8, unique=True))
def test_one_unit_in_each_visit_reads_all_in_as_many_visits_as_there_are_units(days: list[int | None]) -> None:
    units = {str(number): unit(str(number), age) for number, age in enumerate(days)}
    for visit in range(len(units)):
        now = NOW + timedelta(days=visit + 1)
        found = choose_next_read(units.values(), now)
        assert found is not None
        units[found.name] = ReadItem(name=found.name, read_at=now)
    assert oldest_read(units.values()) == NOW + timedelta(days=1), "none waited longer than one round"
