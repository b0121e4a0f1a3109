"""The reading promise, from a history that is written as runs write it."""

from datetime import timedelta

from orchestrator.app.read_status import survey_reading
from orchestrator.app.settings import Settings
from orchestrator.domain.units import Seconds
from orchestrator.history.store import open_history
from tests.ferry import Ferry
from tests.history.records import NOON, begin, reading


def test_what_was_only_written_or_read_in_part_was_not_read(ferry: Ferry) -> None:
    ferry.job(more='[verify]\nevery = "10d"\n')
    settings = Settings(config=str(ferry.config), state=str(ferry.state))
    with open_history(settings.where.history) as history:
        run = begin(history)
        for name, scope, days in (
            ("never", "", 0),
            ("part", "sample", 3),
            ("whole", "whole", 3),
            ("long ago", "whole", 20),
        ):
            made = NOON - timedelta(days=30)
            history.point_made("photos", "photos-copies", name, run, entries=8, bytes=100, taken=made, now=made)
            if scope:
                at = NOON - timedelta(days=days)
                history.verified("photos", "photos-copies", name, reading=reading(), now=at, scope=scope)
    (found,) = survey_reading(settings, NOON)
    assert (found.job, found.place, found.limit, found.promised) == (
        "photos",
        "photos-copies",
        Seconds(10 * 86400.0),
        True,
    )
    status = found.status
    assert (status.points, status.never, status.share, status.by_bytes) == (4, 2, 0.25, True)
    assert status.oldest == NOON - timedelta(days=30)
    with open_history(settings.where.history) as history:
        names = history.point_names("photos", "photos-copies")
        history.points_seen("photos", "photos-copies", {**dict.fromkeys(names), "found": None}, NOON)
        history.verified("photos", "photos-copies", "never", reading=reading(), now=NOON, scope="whole")
        history.point_made("removed", "old-copies", "a", run, entries=8, bytes=100, taken=NOON, now=NOON)
    (found,) = survey_reading(settings, NOON)
    assert (found.status.points, found.status.never, found.status.share) == (5, 2, 0.4)
    assert (found.status.by_bytes, found.status.oldest) == (False, None), (
        "of what was found neither size nor age is known"
    )
