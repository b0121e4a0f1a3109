"""A run ends when its disk is pulled out."""

from pathlib import Path

from orchestrator.domain.place import Location, Place
from orchestrator.process.stop import StopRequest
from orchestrator.runner.disk.removal_watch import watch_removal

PLACE = Place(name="red", location=Location(path="/m"), disk="red", device="sdx")


def test_a_disk_that_is_pulled_out_stops_the_run(tmp_path: Path) -> None:
    (tmp_path / "sdx").touch()
    stop = StopRequest()
    with watch_removal(PLACE, stop, str(tmp_path)):
        assert not stop.wait(1.0)
        (tmp_path / "sdx").unlink()
        assert stop.wait(20)
    assert stop.reason == "disk red was pulled out"


def test_a_disk_that_stays_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "sdx").touch()
    stop = StopRequest()
    with watch_removal(PLACE, stop, str(tmp_path)):
        pass
    (tmp_path / "sdx").unlink()
    assert not stop.wait(1.0)
