"""The status of a late job whose runs were all good: it says what ends that."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.app.settings import Settings
from orchestrator.domain.run import Outcome
from orchestrator.history.store import open_history
from tests.ferry import Ferry
from tests.history.records import begin, report


@pytest.mark.parametrize(
    ("days", "why", "hint"),
    [
        (-3, "3 d old", "poolferry run photos; `poolferry schedule photos` says when it runs by itself"),
        (400, "after now", "see that the clock is right (`timedatectl`), then poolferry run photos"),
    ],
)
def test_a_late_job_says_what_ends_it(ferry: Ferry, days: int, why: str, hint: str) -> None:
    ferry.job(more='late-after = "26h"\n')
    at = datetime.now(UTC) + timedelta(days=days)
    with open_history(Settings(config=str(ferry.config), state=str(ferry.state)).where.history) as history:
        run = begin(history, now=at, pid=1)
        history.point_made("photos", "photos-copies", "p", run, entries=3, bytes=30, taken=at, now=at)
        history.point_verified("photos", "photos-copies", "p", run, at)
        history.ended(run, report(run, outcome=Outcome.DONE), at)
    (job,) = ferry.run("status", "--json").value["jobs"]
    assert (job["state"], job["hint"]) == ("late", hint)
    assert why in job["why"]
    assert ferry.run("run", "photos").code == 0
    (job,) = ferry.run("status", "--json").value["jobs"]
    assert job["state"] != "late", "only the point is missed that never was"
