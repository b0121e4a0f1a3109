"""The fleet as its centre sees it: silent and late by its own clock, whatever the clocks of hosts say; by the real commands."""

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.fleet_status import HostState
from orchestrator.domain.heartbeat import HostBeat
from orchestrator.domain.run import Outcome
from orchestrator.fleet.beats import store_beat
from orchestrator.fleet.connection import CentreSession
from orchestrator.fleet.enrolment import forget_host, leave_centre
from orchestrator.fleet.overview import find_hosts, find_pools, survey_fleet
from tests.fleet.centres import Centre
from tests.fleet.hosts import HOUR, FleetHost, beat, told


def test_silent_and_late_are_the_centres_own_words(centre: Centre) -> None:
    now = datetime.now(UTC)
    beat(centre, "web-1", told("photos", copied=now - HOUR), told("mail", copied=now, state="failing"))
    with centre.administrator() as session:
        found = survey_fleet(session)
        assert (found.hosts, found.silent, [job.job for job in found.bad]) == ((("heard", 1),), (), ["mail"])
        assert [each.state for each in find_hosts(session, now=now + timedelta(minutes=15))] == [HostState.HEARD]
        later = survey_fleet(session, now=now + timedelta(minutes=90))
    assert [each.name for each in later.silent] == ["web-1"]
    assert [(job.job, job.state) for job in later.bad] == [("photos", "late"), ("mail", "failing")]
    assert not later.well


def test_a_centre_whose_clock_goes_back_a_year_calls_no_dead_host_heard_and_lends_what_dead_runs_held(
    centre: Centre,
) -> None:
    beat(centre, "dead")
    beat(centre, "lives")
    past = datetime.now(UTC) - timedelta(days=365)
    with centre.administrator() as session:
        assert {each.name for each in find_hosts(session, state=HostState.SILENT, now=past)} == {"dead", "lives"}
        session.change("ALTER TABLE poolferry.beats DISABLE TRIGGER USER")
        session.change(
            "UPDATE poolferry.beats SET seen_at = seen_at + interval '1 year' WHERE host = (SELECT id FROM poolferry.hosts WHERE name = 'dead')"
        )
        assert [each.name for each in find_hosts(session, state=HostState.SILENT)] == ["dead"]
        session.change("INSERT INTO poolferry.permits (host, job, weight, granted_at, seen_at, lease)"
                       " SELECT id, 'x', 1, now(), now() + interval '1 year', '30 s' FROM poolferry.hosts WHERE name = 'dead'")  # fmt: skip
        session.change("UPDATE poolferry.permits SET lease = '1 ms'")  # the server itself began longer ago
        assert session.first("SELECT poolferry.is_held(p, '{}') AS held FROM poolferry.permits p") == {"held": False}


def test_jobs_are_counted_as_they_stand_whatever_became_of_them(centre: Centre) -> None:
    """The counts of the front page are kept beside the jobs: each change of a state, a declaration or a membership is in them."""
    now, hosts = datetime.now(UTC), [centre.join(name) for name in ("web-1", "web-2", "web-3")]
    stands = [
        told(f"job-{n}", copied=now - HOUR, state=state) for n, state in enumerate(("up", "up", "failing", "paused"))
    ]
    changed = [
        told("job-0", copied=now - 3 * HOUR),
        told("job-2", copied=now),
        told("new", copied=None, state="failing"),
    ]
    with centre.administrator() as session:
        for jobs in (stands, changed, (), stands[:1]):
            for identity in hosts:
                with centre.session(identity) as line:
                    row = line.first("SELECT poolferry.this_host() AS host")
                    assert row is not None
                    store_beat(
                        line,
                        row["host"],
                        HostBeat(host_at=now, every_s=300, version="1", waiting=0, mistakes=0, jobs=tuple(jobs)),
                    )
            if not jobs:
                forget_host(session, "web-2")
                with centre.session(hosts.pop()) as line:
                    leave_centre(line)
                hosts.pop()
            assert survey_fleet(session).jobs == _counted(session)


def _counted(session: CentreSession) -> tuple[tuple[str, int], ...]:
    """All jobs of members, counted one by one."""
    rows = session.rows(
        "SELECT CASE WHEN state <> 'paused' AND late_at < now() THEN 'late' ELSE state END AS state, count(*) AS number FROM poolferry.jobs"
        " JOIN poolferry.hosts h ON h.id = host WHERE declared AND h.left_at IS NULL GROUP BY 1 ORDER BY 1"
    )
    return tuple((row["state"], row["number"]) for row in rows)


@pytest.mark.parametrize("clock", [timedelta(days=1), timedelta(days=-1)])
def test_a_clock_that_is_wrong_by_a_day_makes_nothing_late_and_nothing_well(centre: Centre, clock: timedelta) -> None:
    now = datetime.now(UTC) + clock  # as the host believes
    beat(centre, "web-1", told("fresh", copied=now - HOUR), told("old", copied=now - 3 * HOUR), clock=clock)
    with centre.administrator() as session:
        found = survey_fleet(session)
    assert [job.job for job in found.bad] == ["old"]
    (odd,) = found.odd
    assert odd.clock_ahead is not None
    assert abs(odd.clock_ahead - clock) < timedelta(minutes=1)


def test_a_job_that_is_declared_no_more_is_not_judged(
    centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch)
    host.ferry.job("photos", 'late-after = "1h"\n')
    host.ferry.job("mail")
    host.send()
    (host.ferry.config / "jobs" / "photos.toml").unlink()
    host.send()
    with centre.administrator() as session:
        assert session.rows("SELECT job, declared FROM poolferry.jobs ORDER BY job") == [
            {"job": "mail", "declared": True}, {"job": "photos", "declared": False},
        ]  # fmt: skip
        (host.ferry.config / "jobs" / "mail.toml").write_text("engine = 7\n")
        host.send()
        (odd,) = survey_fleet(session).odd
        assert (odd.mistakes > 0, odd.jobs) == (True, 1)


def test_copies_whose_job_has_no_file_are_named_until_their_host_says_that_it_is_over(
    centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, administrator = (
        FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch),
        centre.server.url(centre.database),
    )
    for name in ("photos", "mail"):
        host.ferry.job(name)
        assert host.ferry.run("run", name).code == 0
    host.send()
    assert host.ferry.run("fleet", "status", "--centre", administrator).code == 0
    (host.ferry.config / "jobs" / "photos.toml").unlink()
    host.send()
    told = host.ferry.run("fleet", "status", "--centre", administrator)
    assert told.code == 4
    assert "no-file  web-1 photos: newest verified copy" in told.out
    assert "it has no file any more, so nobody makes new copies; those in" in told.out
    assert "on web-1: put jobs/photos.toml back; or, if the job is over: `poolferry end photos`" in told.out
    order = host.ferry.run("fleet", "order", "run", "photos", "--all", "--centre", administrator)
    assert "no host has told that it declares a job photos" in order.err
    assert host.ferry.run("end", "photos").out == "photos: is over; its copies stay\n"
    host.send()
    assert host.ferry.run("fleet", "status", "--centre", administrator).code == 0


def test_the_commands_show_all_hosts_to_an_administrator_and_itself_to_a_host(
    centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = [FleetHost(tmp_path / name, centre, name, monkeypatch) for name in ("web-1", "web-2")]
    for host in hosts:
        host.ferry.job(more='late-after = "1s"\n')
        assert host.ferry.run("run", "photos").code == 0
        host.record()
        host.record(outcome=Outcome.FAILED)
        host.send()
    time.sleep(1.1)
    with centre.administrator() as session:
        centre.join("db-1")
        session.change("UPDATE poolferry.hosts SET joined_at = now() - interval '2 hours' WHERE name = 'db-1'")
    ferry, url = hosts[0].ferry, centre.server.url(centre.database)
    all_of_it = ferry.run("fleet", "status", "--centre", url, "--json")
    assert (all_of_it.code, all_of_it.value["hosts"]) == (4, {"heard": 2, "silent": 1})
    lines = ferry.run("fleet", "status", "--centre", url).out
    assert "3 hosts: 2 heard, 1 silent" in lines
    assert "silent  db-1: last seen never" in lines
    assert "late  web-2 photos: newest verified copy" in lines
    own = ferry.run("fleet", "status", "--json")
    assert own.value["hosts"] == {"heard": 1}, own.err
    named = ferry.run("fleet", "hosts", "web-*", "--centre", url, "--json").value["hosts"]
    assert [each["host"] for each in named] == ["web-1", "web-2"]
    assert "db-1  silent" in ferry.run("fleet", "hosts", "--only", "silent", "--centre", url).out
    failed = ferry.run("fleet", "runs", "--outcome", "failed", "--centre", url, "--json").value["runs"]
    assert sorted(each["host"] for each in failed) == ["web-1", "web-2"]
    assert len(ferry.run("fleet", "runs", "--json").value["runs"]) == 3
    metrics = ferry.run("fleet", "metrics", "--centre", url).out
    assert 'poolferry_fleet_host_silent{backup_host="db-1"} 1.0' in metrics
    assert 'poolferry_fleet_host_jobs_bad{backup_host="web-1"} 1.0' in metrics
    assert json.loads(ferry.run("fleet", "runs", "--host", "nobody", "--json").out)["runs"] == []


SOUND = "tank is sound, 63% full; scrubbed 3 days ago, nothing was wrong"


def test_pools_of_all_hosts_are_listed_those_that_need_a_person_first(
    centre: Centre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real hosts, sender and commands; what a look at a pool says is put into the history as such a run records it."""
    now = datetime.now(UTC)
    url = centre.server.url(centre.database)
    for name, why, outcome in (
        ("db-1", SOUND, Outcome.DONE),
        ("web-1", "tank is degraded: sdb is FAULTED", Outcome.FAILED),
    ):
        host = FleetHost(tmp_path / name, centre, name, monkeypatch)
        host.record("tank", now=now - 2 * HOUR)
        host.record("tank", outcome, now=now - HOUR)
        host.send()
        with centre.administrator() as session:
            session.change(
                "UPDATE poolferry.runs SET engine = 'pool', why = %s, warnings = %s WHERE id = 2 AND host = (SELECT id FROM poolferry.hosts"
                " WHERE name = %s)", (why, '["one device is slow"]', name),
            )  # fmt: skip
        with centre.session(host.identity) as line:
            row = line.first("SELECT poolferry.this_host() AS host")
            assert row is not None
            job = replace(
                told("tank", copied=None, late_after=None, state="up" if name == "db-1" else "failing"),
                engine="pool", source="tank", hint="" if name == "db-1" else "zpool status tank",
            )  # fmt: skip
            store_beat(
                line, row["host"], HostBeat(host_at=now, every_s=300, version="1", waiting=0, mistakes=0, jobs=(job,))
            )
    bad, good = host.ferry.run("fleet", "pools", "--centre", url, "--json").value["pools"]
    assert (bad["host"], bad["state"], bad["fill"], bad["hint"]) == ("web-1", "failing", None, "zpool status tank")
    assert (good["host"], good["fill"], good["scrub"]) == ("db-1", 0.63, "scrubbed 3 days ago, nothing was wrong")
    lines = host.ferry.run("fleet", "pools", "--centre", url).out
    assert "63%" in lines
    assert "tank is degraded: sdb is FAULTED" in lines
    assert "one device is slow" in lines
    own = host.ferry.run("fleet", "pools", "--json").value["pools"]
    assert [each["host"] for each in own] == ["web-1"], "a host sees its own alone"
    with centre.administrator() as session:
        later = find_pools(session, host="db-1", now=now + timedelta(minutes=30))
    assert [each.host_state for each in later] == [HostState.SILENT], "what was heard last is shown with the silence"
