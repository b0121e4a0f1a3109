"""Values that a host tells stand among those of others: they hide nothing of theirs, and write nothing into a terminal but text."""

from datetime import UTC, datetime, timedelta

from orchestrator.fleet import overview
from orchestrator.fleet.overview import find_hosts, find_pools, find_records, find_runs, survey_fleet
from orchestrator.planners.health import BAD, JobState
from orchestrator.views.fleet import fleet_lines, host_lines, pool_lines, record_lines, run_lines
from tests.fleet.centres import Centre

NASTY = "\x1b[2J\n\u202e<script>"
_JOBS = (
    "INSERT INTO poolferry.jobs (host, job, engine, source, target, state, why, hint, late_after_s, copied_at)"
    " SELECT poolferry.this_host(), %s || n, %s, %s, 't', %s, %s, %s, 3600, %s FROM generate_series(1, %s) AS n"
)
_RUN = (
    "INSERT INTO poolferry.runs (host, incarnation, id, seq, born, job, engine, source, target, type, begun_at, begun_why, outcome, why)"
    " VALUES (poolferry.this_host(), 1, 1, 1, 1, %s, 'rsync', 's', 't', %s, now(), %s, %s, %s)"
)
_BEAT = "INSERT INTO poolferry.beats (host, host_at, every_s, version) VALUES (poolferry.this_host(), now(), 300, %s)"
_RECORD = (
    "INSERT INTO poolferry.records (host, subject, incarnation, key, seq, born, body)"
    " VALUES (poolferry.this_host(), 'drill', 1, %s, 1, 1, jsonb_build_object(%s::text, %s::text))"
)


def test_many_bad_jobs_of_one_host_hide_none_of_another(centre: Centre) -> None:
    """Seen: fifty failing jobs that a host made up, and `fleet status`, its page and the weekly letter named no job of any other host."""
    now = datetime.now(UTC)
    with (
        centre.session(centre.join("evil")) as mine,
        centre.session(centre.join("good")) as other,
        centre.administrator() as session,
    ):
        for engine in ("rsync", "pool"):
            mine.change(_JOBS, (f"{engine}-", engine, "a", "failing", "w", "h", None, 300))
            other.change(_JOBS, (f"{engine}-", engine, "tank", "failing", "w", "h", now - timedelta(hours=1), 2))
        found = survey_fleet(session)
        assert (len(found.bad), found.bad_count) == (50, 604)
        assert sum(each.host == "good" for each in found.bad) == 4
        assert [each.copied for each in found.bad] == [None] * 46 + [now - timedelta(hours=1)] * 4, "shown by their age"
        pools = find_pools(session, host=None)
        assert (len(pools), sum(each.host == "good" for each in pools)) == (50, 2)


def test_states_that_nobody_knows_are_counted_as_one(centre: Centre) -> None:
    """Seen: a host told a state of its own for each job, and `fleet status` began with all of them, escapes included."""
    with centre.session(centre.join("evil")) as mine, centre.administrator() as session:
        for number in range(40):
            mine.change(_JOBS, (f"job-{number}-", "rsync", "s", f"state-{number}{NASTY}", "w", "h", None, 1))
        mine.change(_JOBS, ("old", "rsync", "s", "whatever", "w", "h", datetime.now(UTC) - timedelta(days=1), 1))
        assert survey_fleet(session).jobs == (("late", 1), ("unknown", 40))
    assert sorted(JobState) == sorted(eval(overview._STATES))  # noqa: S307 - our own words
    assert sorted(BAD) == sorted(eval(overview._BAD))  # noqa: S307


def test_nothing_that_it_tells_moves_the_cursor_of_who_looks(centre: Centre) -> None:
    now = datetime.now(UTC)
    with centre.session(centre.join("evil")) as mine, centre.administrator() as session:
        mine.change(_BEAT, (NASTY,))
        mine.change(_RUN, (NASTY,) * 5)
        mine.change(_RECORD, (NASTY,) * 3)
        for state in (NASTY, "failing"):
            mine.change(_JOBS, (state + NASTY, "pool", NASTY, state, NASTY, NASTY, now - timedelta(days=1), 1))
        mine.change(
            "UPDATE poolferry.runs SET warnings = to_jsonb(ARRAY[%s::text]), job = (SELECT min(job) FROM poolferry.jobs)",
            (NASTY,),
        )

        def paint(text: str, _: str | None) -> str:
            return text

        shown = [
            *fleet_lines(survey_fleet(session), now, paint), *host_lines(find_hosts(session), now, paint),
            *run_lines(find_runs(session, host=None, job=None, outcome=None), now), *pool_lines(find_pools(session, host=None), now),
            *record_lines(find_records(session, subject="drill", host=None), now),
        ]  # fmt: skip
    assert len(shown) > 10
    assert [line for line in shown if not line.isprintable()] == []
