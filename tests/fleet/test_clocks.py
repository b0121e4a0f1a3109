"""Clocks that jump by a year, of a host and of the centre: nothing is late or well by that, nothing is hidden, and no row is lost."""

from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.fast_dataclass import replace
from orchestrator.fleet.connection import CentreSession
from orchestrator.fleet.cross_checks import find_wrong_clock, remove_old_rows
from orchestrator.fleet.overview import find_runs, survey_fleet
from tests.fleet.centres import Centre
from tests.fleet.hosts import HOUR, BeatingHost, told

YEAR = timedelta(days=365)
RUN = (
    "INSERT INTO poolferry.runs (host, incarnation, id, seq, born, job, engine, source, target, type, begun_at, begun_why, outcome)"
    " SELECT id, 1, n, 1, 1, 'photos', 'rsync', 's', 't', 'run', %s, '', 'done' FROM poolferry.hosts CROSS JOIN generate_series(1, %s) AS n WHERE name = %s"
)


def late(session: CentreSession, at: datetime) -> list[str]:
    """The jobs that are late by the centre's clock at that time."""
    return sorted(job.job for job in survey_fleet(session, now=at).bad)


def set_clock(session: CentreSession, by: timedelta) -> None:
    """Set the centre's clock back: all that it noted is from so much later."""
    session.change("ALTER TABLE poolferry.beats DISABLE TRIGGER USER")
    session.change("ALTER TABLE poolferry.jobs DISABLE TRIGGER USER")
    session.change("UPDATE poolferry.beats SET seen_at = seen_at + %s", (by,))
    session.change("UPDATE poolferry.jobs SET changed_at = changed_at + %s, late_at = late_at + %s", (by, by))
    session.change("ALTER TABLE poolferry.jobs ENABLE TRIGGER USER")
    session.change("ALTER TABLE poolferry.beats ENABLE TRIGGER USER")


@pytest.mark.parametrize("jump", [YEAR, -YEAR], ids=["ahead", "back"])
def test_a_host_whose_clock_jumps_after_a_copy_is_late_when_it_would_have_been(centre: Centre, jump: timedelta) -> None:
    """Seen: of a clock that was set back by a year, the copy of before seemed a year younger, and its job was well for so long."""
    now = datetime.now(UTC)
    job, host = told("photos", copied=now - HOUR), BeatingHost(centre, "web-1")
    host.beat(job)
    host.beat(replace(job, next_at=now + jump + HOUR), clock=jump)
    with centre.administrator() as session:
        assert late(session, now + timedelta(minutes=50)) == []
        assert late(session, now + timedelta(minutes=70)) == ["photos"]
        host.beat(replace(job, late_after_s=10_800.0), clock=jump)
        assert late(session, now + timedelta(minutes=70)) == [], "its limit was changed"
        assert late(session, now + timedelta(minutes=130)) == ["photos"]
        host.beat(replace(job, copied_at=now + jump), clock=jump)
        assert (late(session, now + timedelta(minutes=110)), late(session, now + timedelta(minutes=130))) == (
            [],
            ["photos"],
        )


def test_no_copy_is_newer_than_its_news(centre: Centre) -> None:
    """A clock that was set back between a copy and the visit that tells of it."""
    now, host = datetime.now(UTC), BeatingHost(centre, "web-1")
    host.beat(told("photos", copied=now), clock=-YEAR)
    with centre.administrator() as session:
        assert late(session, now + timedelta(minutes=130)) == ["photos"]


def test_what_a_centre_was_told_while_its_clock_was_ahead_is_judged_by_the_right_time(centre: Centre) -> None:
    now, host = datetime.now(UTC), BeatingHost(centre, "web-1")
    jobs = [told("photos", copied=now - HOUR), told("mail", copied=None, late_after=None)]
    host.beat(*jobs)
    with centre.administrator() as session:
        set_clock(session, YEAR)
        host.beat(*jobs)
        assert late(session, now + timedelta(minutes=50)) == []
        assert late(session, now + timedelta(minutes=70)) == ["photos"]


def test_runs_of_a_host_whose_clock_is_ahead_stand_where_they_came(centre: Centre) -> None:
    """Seen: fifty runs of one host from next year, and `fleet runs` and its page showed no other run for a year."""
    now = datetime.now(UTC)
    for name in ("ahead", "web-1"):
        centre.join(name)
    with centre.administrator() as session:
        session.change(RUN, (now + YEAR, 60, "ahead"))
        session.change("ALTER TABLE poolferry.runs DISABLE TRIGGER USER")
        session.change("UPDATE poolferry.runs SET arrived_at = now() - interval '1 day'")
        session.change(RUN, (now, 2, "web-1"))
        found = find_runs(session, host=None, job=None, outcome=None)
        assert [each.host for each in found[:3]] == ["web-1", "web-1", "ahead"]
        assert len(found) == 50
        assert len(find_runs(session, host="ahead", job="photos", outcome="done", limit=7)) == 7
        assert find_runs(session, host="web-1", job=None, outcome="failed") == ()


def test_a_centre_whose_clock_is_wrong_removes_nothing_and_says_so(centre: Centre) -> None:
    """Seen: its clock was three years ahead for some minutes, and the look of the watch removed all runs of all hosts."""
    keep, hosts = timedelta(days=730), [BeatingHost(centre, name) for name in ("web-1", "web-2", "web-3")]
    with centre.administrator() as session:
        session.change(RUN, (datetime.now(UTC) - 3 * YEAR, 4, "web-1"))
        session.change("ALTER TABLE poolferry.runs DISABLE TRIGGER USER")
        session.change("UPDATE poolferry.runs SET arrived_at = begun_at")
        assert remove_old_rows(session, keep) == 0, "nobody was heard: who knows which time it is"
        for host in hosts:
            host.beat(clock=-3 * YEAR)
        assert remove_old_rows(session, keep) == 0
        (found,) = find_wrong_clock(session)
        assert (found.about, found.bad) == ("the centre's clock", True)
        assert "3 of 3 hosts heard lately say that it is 1095 d ahead, so no old row is removed" in found.why
        for host in hosts:
            host.beat(clock=timedelta(minutes=6))
        (found,) = find_wrong_clock(session)
        assert found.why == "3 of 3 hosts heard lately say that it is 6 min behind"
        assert remove_old_rows(session, keep) == 4
        hosts[0].beat(clock=-3 * YEAR)
        hosts[1].beat()
        hosts[2].beat()
        assert find_wrong_clock(session) == (), "one host that lies keeps nothing"
