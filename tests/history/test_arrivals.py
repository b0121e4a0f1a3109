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
