"""The report of a month, from a history that is written as runs write it."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.app.month_report import longest_gap, report_month
from orchestrator.app.settings import Settings
from orchestrator.domain.act import ActVerb
from orchestrator.domain.point import Finding, Verdict
from orchestrator.domain.run import Outcome
from orchestrator.domain.units import Seconds
from orchestrator.history.store import open_history
from tests.ferry import Ferry
from tests.history.records import begin, reading, report

FIRST = datetime(2026, 10, 1, tzinfo=UTC)


def day(number: float) -> datetime:
    """An instant in October; 1 is its first midnight, in UTC."""
    return FIRST + timedelta(days=number - 1)


@pytest.fixture
def settings(ferry: Ferry) -> Settings:
    ferry.job(more='late-after = "26h"\n')
    ferry.job("music", more='late-after = "26h"\n')
    ferry.job("quiet")
    ferry.job("broken", more='late-after = "26h"\n')
    return Settings(config=str(ferry.config), state=str(ferry.state))


def test_a_month_says_what_was_promised_kept_and_looked_at(settings: Settings) -> None:
    with open_history(settings.where.history) as history:
        for number in range(-3, 36):
            for job in ("photos", "music"):
                at = day(number + 0.1)
                run = begin(history, job=job, now=at, pid=1)
                bad = job == "music" and number in (10, 11)
                outcome = Outcome.FAILED if bad else Outcome.DONE
                history.ended(run, report(run, job=job, outcome=outcome, moved_bytes=100), at + timedelta(minutes=5))
        failed = begin(history, job="broken", now=day(5), pid=1)
        history.ended(failed, report(failed, job="broken", outcome=Outcome.FAILED), day(5))
        history.point_made("photos", "photos-copies", "p", run, entries=3, bytes=30, taken=day(3), now=day(3))
        rotten = Finding(path=b"a", verdict=Verdict.ROTTEN, detail="")
        for number, read in ((4, reading()), (5, reading(rotten)), (6, reading()), (45, reading(rotten))):
            history.verified("photos", "photos-copies", "p", reading=read, now=day(number), scope="whole")
        act = history.acts.asked(ActVerb.ACKNOWLEDGE, "music", "", "ann", day(12))
        history.acts.ended(act, well=True, said="seen as failing", now=day(12))
        history.acts.asked(ActVerb.RUN, "music", "", "ann", day(40))
    found = report_month(settings, 2026, 10, day(60))
    order = ["photos", "music", "quiet", "broken"]
    photos, music, quiet, broken = sorted(found.jobs, key=lambda each: order.index(each.job.name))
    assert (photos.kept, photos.badly, photos.moved_bytes // 100) == (True, 0, photos.well)
    assert 30 <= photos.well <= 32, "the month is the machine's own, in its zone"
    assert (music.kept, music.badly) == (False, 2)
    assert music.gap == Seconds(3 * 86400.0)
    assert (quiet.kept, quiet.gap, quiet.well) == (None, None, 0)
    assert (broken.kept, broken.gap, broken.badly) == (False, None, 1), "no run ended well, so nothing was kept"
    assert (photos.points, photos.readings, photos.unsound) == (1, 3, 1)
    assert [each.who for each in found.acts] == ["ann"]
    assert found.ended
    running = report_month(settings, 2026, 10, day(9))
    assert not running.ended
    assert running.jobs[0].well < 10


def test_what_failed_before_the_first_good_run_counts() -> None:
    assert longest_gap((day(9), day(10)), day(2), day(11)) == Seconds(7 * 86400.0)
    assert longest_gap((day(-1), day(1)), day(1), day(2)) == Seconds(2 * 86400.0)
    assert longest_gap((), day(2), day(11)) is None
