"""Test how fast something goes, and how long it still takes."""

from orchestrator.domain.events import TransferProgress
from orchestrator.planners.throughput import Throughput, ThroughputCounter


def test_a_pace() -> None:
    pace = Throughput(100.0)
    assert (pace.rate, pace.percent, pace.left_s) == (None, None, None)
    pace.moved(101.0, 1 << 20, 10 << 20)
    assert (pace.rate, pace.percent, pace.left_s) == (1 << 20, 10, 9.0)
    assert pace.told() == "10%, 1.0 MiB of 10.0 MiB, 1.0 MiB/s, 9.0 s left"
    pace.moved(102.0, 12 << 20, 10 << 20)
    assert (pace.percent, pace.left_s) == (100, 0.0)
    assert pace.told() == "100%, 12.0 MiB, 6.0 MiB/s", "what was expected was too little, and tells nothing of the end"


def test_a_pace_forgets_what_was_long_ago() -> None:
    pace = Throughput(0.0)
    pace.moved(10.0, 1000_000, None)
    for second in range(11, 60):
        pace.moved(float(second), 1000_000 + (second - 10) * 10, None)
    assert pace.rate is not None
    assert 9 < pace.rate < 11
    assert pace.percent is None


def test_a_pace_that_stands_still_knows_no_end() -> None:
    pace = Throughput(0.0)
    pace.moved(0.0, 5, 10)
    pace.moved(1.0, 0, 10)
    assert pace.told() == "0%, 0 B of 10 B"


def test_a_longer_window_forgets_less() -> None:
    paces = [Throughput(0.0, window) for window in (30.0, 300.0)]
    for pace in paces:
        pace.moved(10.0, 1_000_000, None)
        for second in range(11, 60):
            pace.moved(float(second), 1_000_000, None)
    assert [pace.rate is None for pace in paces] == [True, False]


def test_a_count_begins_anew_with_each_step_unless_it_is_of_the_whole() -> None:
    clock = iter(range(100))
    count = ThroughputCounter(lambda: float(next(clock)))
    assert count.step_begun()
    assert count.moved(TransferProgress(done=50, expected=100)).done == 50
    assert count.step_begun()
    assert count.pace.done == 0
    assert count.moved(TransferProgress(done=10, expected=100, whole=True)).percent == 10
    assert not count.step_begun()
    begun = count.pace.begun
    assert count.moved(TransferProgress(done=20, expected=100, whole=True)).begun == begun
    assert count.moved(TransferProgress(done=5, expected=100, whole=True)).begun > begun, "another attempt"
    begun = count.pace.begun
    assert count.moved(TransferProgress(done=30, expected=100)).begun > begun, "a single step again"
