"""The newest reading of a whole point at a place, which says when the next one is due."""

from pathlib import Path

from orchestrator.history.store import open_history
from orchestrator.history.views import open_reader
from tests.history.populated import populate

JOB, PLACE = "photos", "photos-copies"


def test_it_is_that_of_the_points_there(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    populate(path, place=PLACE)
    with open_history(str(path)) as history, open_reader(str(path)) as views:
        known = [point.whole_at for point in views.points(JOB) if point.place == PLACE and point.whole_at]
        assert known
        assert history.newest_whole_reading(JOB, PLACE) == max(known)
        assert history.newest_whole_reading(JOB, "elsewhere") is None
        assert history.newest_whole_reading("music", PLACE) is None
