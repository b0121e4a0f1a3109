"""The ledger of arrivals: lines of many writers, what a cut left of them, and what is forgotten."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from orchestrator.history import arrivals

AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_what_several_gates_wrote_is_read_and_the_earlier_time_counts(tmp_path: Path) -> None:
    state = str(tmp_path)
    assert arrivals.read_arrivals(state) == {}
    with arrivals.open_ledger(state, "one") as one, arrivals.open_ledger(state, "two") as two:
        one.note([("vault/a b", "1", AT), ("vault/a b", "2", AT + timedelta(days=2))])
        two.note([("vault/a b", "1", AT + timedelta(days=1)), ("vault/a b", "2", AT)])
    assert arrivals.read_arrivals(state) == {
        ("vault/a b", "1"): AT, ("vault/a b", "2"): AT,
    }  # fmt: skip
    folder = tmp_path / arrivals.FOLDER
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "one")] == [0o700, 0o600]


def test_a_torn_line_and_rubbish_are_not_believed(tmp_path: Path) -> None:
    with arrivals.open_ledger(str(tmp_path), "one") as ledger:
        ledger.note([("vault/a", "1", AT)])
    with open(tmp_path / arrivals.FOLDER / "one", "ab") as file:
        file.write(b"2026-11-20T12:00:00\t3\tvault/a\nx\n\xff\t\t\t\n2026-11-20T12:00:00+00:00\t2\tvault/a")
    assert arrivals.read_arrivals(str(tmp_path)) == {("vault/a", "1"): AT}


def test_what_is_gone_is_forgotten_once_it_is_the_most(tmp_path: Path) -> None:
    state, path = str(tmp_path), tmp_path / arrivals.FOLDER / "one"
    arrivals.forget_arrivals(state, lambda *_: True)
    with arrivals.open_ledger(state, "one") as ledger:
        ledger.note(("vault/a", str(n), AT) for n in range(300))
    size = os.path.getsize(path)
    arrivals.forget_arrivals(state, lambda _, identity: int(identity) < 250)
    assert os.path.getsize(path) == size
    arrivals.forget_arrivals(state, lambda _, identity: int(identity) < 20)
    assert sorted(arrivals.read_arrivals(state)) == sorted(("vault/a", str(n)) for n in range(20))
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_full_takes_no_more(tmp_path: Path) -> None:
    with arrivals.open_ledger(str(tmp_path), "one") as ledger:
        os.truncate(tmp_path / arrivals.FOLDER / "one", 64 << 20)
        ledger.note([("vault/a", "1", AT)])
    assert os.path.getsize(tmp_path / arrivals.FOLDER / "one") == 64 << 20


def test_points_that_are_folders_are_numbered_in_the_order_in_which_they_came(tmp_path: Path) -> None:
    """Whatever the clock said; and one that came again, surely, counts from then."""
    state, later = str(tmp_path), AT + timedelta(days=1)
    arrivals.note_unknown(state, "laptop", "/in", ["a.1"], later)
    arrivals.note_unknown(state, arrivals.SEEN, "/in", ["a.1", "b.2", "c.3"], AT)
    arrivals.note_unknown(state, "laptop", "/other", ["a.1"], AT)
    assert arrivals.read_numbers(state, "/in") == {"a.1": 1, "b.2": 2, "c.3": 3}
    arrivals.note_unknown(state, "laptop", "/in", ["c.3", "a.1"], AT, again="a.1")
    assert arrivals.read_numbers(state, "/in") == {"a.1": 4, "b.2": 2, "c.3": 3}
    assert arrivals.read_arrivals(state)[("/in", "a.1")] == AT
    with arrivals.open_ledger(state, "laptop") as ledger:
        ledger.note_numbered("/in", [str(n) for n in range(300)], AT, after=10)
    arrivals.forget_arrivals(state, lambda _, mark: mark == "a.1")
    assert arrivals.read_numbers(state, "/in") == {"a.1": 4, "b.2": 2, "c.3": 3}
