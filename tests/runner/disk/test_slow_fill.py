"""A copy that would take too long is told of once, with its figures: in the run, and in the record of the disk's visit."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.events import RunEvent, RunMessage, StepStarted, TransferProgress
from orchestrator.domain.place import Location, Place
from orchestrator.domain.units import Seconds
from orchestrator.history.store import History, open_history
from orchestrator.runner.disk.slow_fill import MEASURED, warn_when_slow
from orchestrator.runner.run_recorder import RunRecorder
from tests.planners.rotation_world import NOW, known
from tests.runner.journals import journal

HOUR, MIB, TIB = 3600.0, 1 << 20, 1 << 40
PLACE = Place(name="red", location=Location(path="/m"), disk="red", device="sdb")
BEGINS = StepStarted(action="send", expected=TIB)


class Ride:
    """A run whose clock the test moves."""

    def __init__(self, history: History, folder: Path) -> None:
        self.history, self.events, self.clock = history, list[RunEvent](), 0.0
        history.disks.keep(known())
        self.visit = history.disks.begin_visit("d1", NOW)
        made = journal(history, folder, self.events)
        made.tools, made.job = replace(made.tools, monotonic=lambda: self.clock), replace(made.job, target=PLACE)
        self.journal: RunRecorder = made

    def goes(
        self, minutes: int, done: int, *, faster: int = MIB, expected: int | None = TIB, whole: bool = False
    ) -> int:
        """So long at so many bytes a second."""
        for _ in range(minutes * 2):
            self.clock += 30
            done += 30 * faster
            self.journal.tools.notify(TransferProgress(done=done, expected=expected, whole=whole))
        return done

    def told(self) -> Sequence[str]:
        assert [event.text for event in self.events if isinstance(event, RunMessage)] == self.journal.warnings
        return self.journal.warnings

    @property
    def slow(self) -> str:
        return self.history.disks.visits("d1", 1)[0].slow


@pytest.fixture
def ride(tmp_path: Path) -> Iterator[Ride]:
    with open_history(str(tmp_path / "history.sqlite")) as history:
        yield Ride(history, tmp_path)


def test_it_is_told_once_after_five_minutes_with_its_figures(ride: Ride) -> None:
    with warn_when_slow(ride.journal, Seconds(24 * HOUR)):
        ride.journal.tools.notify(BEGINS)
        done = ride.goes(4, 0)
        assert (ride.told(), ride.slow) == ([], "")
        done = ride.goes(60, done)
        told = "photos goes at 1.0 MiB/s, and 1023.7 GiB of 1.0 TiB are left: 12 d 3 h at this pace (limit 1 d)"
        assert (ride.told(), ride.slow) == ([f"disk red: {told}"], told)
        ride.journal.tools.notify(StepStarted(action="send more", expected=TIB))
        ride.goes(60, 0)
    assert len(ride.told()) == 1
    assert sum(isinstance(event, TransferProgress) for event in ride.events) == 2 * 124, "all is passed on"


def test_who_goes_fast_enough_or_tells_no_size_is_left_in_peace(ride: Ride) -> None:
    with warn_when_slow(ride.journal, Seconds(24 * HOUR)):
        ride.goes(60, 0, faster=20 * MIB)
        ride.goes(60, 0, expected=None)
    assert (ride.told(), ride.slow) == ([], "")


def test_the_time_before_the_first_byte_counts_for_nothing(ride: Ride) -> None:
    with warn_when_slow(ride.journal, Seconds(24 * HOUR)):
        ride.journal.tools.notify(BEGINS)
        ride.goes(120, 0, faster=0)
        done = ride.goes(4, 1, faster=100)
        ride.goes(60, done, faster=40 * MIB)
    assert ride.told() == []


def test_who_becomes_slow_later_is_told_of_too(ride: Ride) -> None:
    with warn_when_slow(ride.journal, Seconds(24 * HOUR)):
        done = ride.goes(60, 0, faster=40 * MIB, whole=True)
        ride.journal.tools.notify(StepStarted(action="send more", expected=TIB))
        ride.goes(int(MEASURED / 60), done, whole=True)
    assert len(ride.told()) == 1


def test_afterwards_nothing_is_listened_to(ride: Ride) -> None:
    before = ride.journal.tools
    with warn_when_slow(ride.journal, Seconds(HOUR)):
        pass
    assert ride.journal.tools is before


def test_a_visit_that_is_over_is_not_called_slow(ride: Ride) -> None:
    ride.history.disks.visit_ended(ride.visit, jobs=[], outcome="pulled-out", why="", released=None, safe=False)
    with warn_when_slow(ride.journal, Seconds(HOUR)):
        ride.goes(10, 0)
    assert (len(ride.told()), ride.slow) == (1, "")
