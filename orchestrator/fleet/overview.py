"""Questions to the centre: which hosts are silent, which jobs are late, what ran. It judges by its own clock.

When a host tells how its jobs stand, the centre notes from when on each will be late by its own clock: a clock that is wrong by a day
makes nothing late, and nothing well.
"""

from collections.abc import Mapping
from datetime import datetime

from orchestrator.domain.fleet_status import (
    CLOCK_ERROR,
    NEARLY_FULL,
    FleetHost,
    FleetJob,
    FleetPool,
    FleetRecord,
    FleetRun,
    FleetStatus,
    FleetWeek,
    HostState,
)
from orchestrator.domain.units import Bytes
from orchestrator.fleet.connection import CentreSession, Row

_BAD = "('late', 'failing', 'incomplete', 'no-file')"
_STATES = (
    "('new', 'up', 'late', 'failing', 'incomplete', 'no-file', 'waiting', 'paused')"  # of jobs; a host may say anything
)
# Why not one materialized list of all hosts: each question needs few of its columns, or few of its rows. Why the time stands in each
# statement and is no column: so the planner knows how few jobs are late.
_NOW = "coalesce(%(now)s::timestamptz, now())"
_STATE = f"""CASE WHEN hosts.left_at IS NOT NULL THEN 'left' WHEN hosts.joined_at IS NULL THEN 'invited'
    WHEN beats.seen_at IS NULL THEN CASE WHEN hosts.joined_at < {_NOW} - interval '1 hour' THEN 'silent' ELSE 'new' END
    WHEN beats.seen_at < {_NOW} - make_interval(secs => 3 * every_s + 60) OR beats.seen_at > {_NOW} + interval '1 hour' THEN 'silent'
    ELSE 'heard' END"""
# The last: the centre's clock was set back; who lives is heard within minutes, and who does not would be called well for all that time.
_OURS = "hosts.joined_at IS NOT NULL AND hosts.left_at IS NULL"
_HOST_COUNTS = f"""
SELECT {_STATE} AS state, count(*) AS number FROM poolferry.hosts LEFT JOIN poolferry.beats ON beats.host = hosts.id
GROUP BY 1 ORDER BY 1
"""  # noqa: S608 - our own words
_LATE = f"jobs.late_at < {_NOW}"
# Jobs that their host calls bad, and those that became late since: both are found by an index, however many are well.
_BAD_ONES = f"""
    SELECT host, job, copied_at, state, CASE WHEN {_LATE} THEN 'late' ELSE state END AS judged FROM poolferry.jobs WHERE declared AND state IN {_BAD}
    UNION ALL SELECT host, job, copied_at, state, 'late' FROM poolferry.jobs
        WHERE declared AND state NOT IN ('late', 'failing', 'incomplete', 'paused') AND {_LATE}
"""  # noqa: S608 - our own words
# The worst of each host before the second of any: one host with many cannot hide those of the others.
_BAD_JOBS = f"""
WITH chosen AS (
    SELECT host, job, judged, row_number() OVER (PARTITION BY host ORDER BY bad.copied_at NULLS FIRST, job) AS nth, bad.copied_at
    FROM ({_BAD_ONES}) AS bad JOIN poolferry.hosts ON hosts.id = bad.host WHERE {_OURS}
    ORDER BY nth, bad.copied_at NULLS FIRST, host LIMIT %(limit)s
)
SELECT name AS host, {_STATE} AS host_state, job, judged AS state, why, hint, late_after_s, jobs.copied_at, last_outcome, last_ended_at
FROM chosen JOIN poolferry.jobs USING (host, job) JOIN poolferry.hosts ON hosts.id = host LEFT JOIN poolferry.beats ON beats.host = hosts.id
ORDER BY jobs.copied_at NULLS FIRST, name, job
"""  # noqa: S608 - our own words
_JOB_COUNTS = f"""
WITH late AS MATERIALIZED (
    SELECT state, count(*) AS number FROM ({_BAD_ONES}) AS bad JOIN poolferry.hosts ON hosts.id = bad.host
    WHERE judged <> state AND {_OURS} GROUP BY state
)
SELECT state, sum(number)::bigint AS number FROM (
    SELECT CASE WHEN state IN {_STATES} THEN state ELSE 'unknown' END AS state, number
        FROM poolferry.job_counts JOIN poolferry.hosts ON hosts.id = job_counts.host WHERE {_OURS}
    UNION ALL SELECT CASE WHEN state IN {_STATES} THEN state ELSE 'unknown' END, -number FROM late
    UNION ALL SELECT 'late', number FROM late
) AS counted GROUP BY state HAVING sum(number) > 0 ORDER BY state
"""  # noqa: S608 - our own words
# Hosts are picked before their jobs are counted: a page of a hundred does not count those of ten thousand.
_SOME_HOSTS = f"""
WITH seen AS NOT MATERIALIZED (
    SELECT hosts.id AS host, hosts.name, beats.seen_at, beats.host_at - beats.seen_at AS ahead, coalesce(version, '') AS version,
        coalesce(waiting, 0) AS waiting, coalesce(mistakes, 0) AS mistakes, coalesce(bytes, 0) AS bytes, coalesce(most, 0) AS most,
        {_STATE} AS state
    FROM poolferry.hosts LEFT JOIN poolferry.beats ON beats.host = hosts.id LEFT JOIN poolferry.quotas ON quotas.host = hosts.id
), chosen AS (
    SELECT * FROM seen WHERE (%(state)s::text IS NULL OR state = %(state)s) AND (%(name)s::text IS NULL OR name LIKE %(name)s)
        AND (NOT %(odd)s OR (state IN ('heard', 'silent') AND (mistakes > 0
            OR bytes > most * %(nearly_full)s::float8 OR abs(extract(epoch FROM ahead)) > %(error)s)))
    ORDER BY state = 'silent' DESC, CASE WHEN state = 'silent' THEN seen_at END NULLS FIRST, name LIMIT %(limit)s
)
SELECT name, chosen.state, seen_at, ahead, version, waiting, mistakes, bytes, most, number, bad, oldest
FROM chosen LEFT JOIN LATERAL (
    SELECT count(*) AS number, min(copied_at) AS oldest,
        count(*) FILTER (WHERE jobs.state IN {_BAD} OR (jobs.state <> 'paused' AND {_LATE})) AS bad
    FROM poolferry.jobs WHERE jobs.host = chosen.host AND declared
) AS its ON true ORDER BY chosen.state = 'silent' DESC, CASE WHEN chosen.state = 'silent' THEN seen_at END NULLS FIRST, name
"""  # noqa: S608 - our own words
# A pool is told of by the runs that look at it: rows of its own would say the same twice, and could disagree.
_POOLS = f"""
SELECT hosts.name AS host, {_STATE} AS host_state, jobs.job, jobs.source AS pool, jobs.hint, look.begun_at, look.why, look.warnings,
    CASE WHEN jobs.state <> 'paused' AND {_LATE} THEN 'late' ELSE jobs.state END AS judged
FROM poolferry.jobs JOIN poolferry.hosts ON hosts.id = jobs.host LEFT JOIN poolferry.beats ON beats.host = hosts.id
    LEFT JOIN LATERAL (
        SELECT begun_at, why, warnings FROM poolferry.runs
        WHERE runs.host = jobs.host AND runs.job = jobs.job AND runs.outcome IS NOT NULL AND NOT removed
        ORDER BY incarnation DESC, id DESC LIMIT 1
    ) AS look ON true
WHERE declared AND jobs.engine = 'pool' AND {_OURS} AND (%(host)s::text IS NULL OR hosts.name = %(host)s)
ORDER BY jobs.state IN {_BAD} OR (jobs.state <> 'paused' AND {_LATE} IS TRUE) DESC,
    row_number() OVER (PARTITION BY jobs.host, jobs.state IN {_BAD} OR (jobs.state <> 'paused' AND {_LATE} IS TRUE) ORDER BY jobs.source, jobs.job) > 5,
    hosts.name, jobs.source, jobs.job LIMIT %(limit)s
"""  # noqa: S608 - our own words
_FIT = """
    NOT removed AND (%(host)s::text IS NULL OR hosts.name = %(host)s) AND (%(job)s::text IS NULL OR runs.job = %(job)s)
    AND (%(outcome)s::text IS NULL OR runs.outcome = %(outcome)s)
"""
_RUN_ROW = """
    SELECT hosts.name AS host, runs.id, runs.incarnation, runs.job, runs.type, runs.outcome, begun_at, ended_at, moved_bytes, why, arrived_at
    FROM poolferry.runs JOIN poolferry.hosts ON hosts.id = runs.host
"""
# A run of a host whose clock is ahead stands where it came: by its own time it would hide those of all other hosts until then.
_RUNS = f"""
SELECT * FROM (
    ({_RUN_ROW} WHERE {_FIT} AND begun_at <= now() + interval '5 minutes' ORDER BY begun_at DESC LIMIT %(limit)s)
    UNION ALL
    ({_RUN_ROW} WHERE {_FIT} AND begun_at > now() + interval '5 minutes' ORDER BY begun_at LIMIT %(limit)s)
) AS found ORDER BY least(begun_at, arrived_at) DESC LIMIT %(limit)s
"""  # noqa: S608 - our own words
_RECORDS = """
SELECT hosts.name AS host, key, incarnation, body, arrived_at
FROM poolferry.records JOIN poolferry.hosts ON hosts.id = records.host
WHERE subject = %(subject)s AND (%(host)s::text IS NULL OR hosts.name = %(host)s) ORDER BY arrived_at DESC, born DESC, key LIMIT %(limit)s
"""
_WEEK = """
SELECT hosts.name AS host, count(*) FILTER (WHERE outcome IN ('done', 'nothing-to-do', 'incomplete')) AS well,
    count(*) FILTER (WHERE outcome IN ('failed', 'refused', 'interrupted')) AS badly, least(coalesce(sum(moved_bytes), 0), 9e18)::bigint AS moved
FROM poolferry.runs JOIN poolferry.hosts ON hosts.id = runs.host
WHERE NOT removed AND begun_at > now() - interval '7 days' AND begun_at <= now() + interval '1 day' GROUP BY hosts.name ORDER BY badly DESC, host
"""
MOST = 50
_WORST = 10


def survey_fleet(centre: CentreSession, *, now: datetime | None = None, limit: int = MOST) -> FleetStatus:
    """Return how the fleet stands. `now`: None: the centre's own. Raises: CentreUnreachable, CentreRefused."""
    values = {"now": now, "limit": limit}
    jobs = tuple((row["state"], row["number"]) for row in centre.rows(_JOB_COUNTS, values))
    return FleetStatus(
        hosts=tuple((row["state"], row["number"]) for row in centre.rows(_HOST_COUNTS, values)),
        jobs=jobs,
        silent=find_hosts(centre, state=HostState.SILENT, now=now, limit=limit),
        odd=find_hosts(centre, odd=True, now=now, limit=limit),
        bad=tuple(_job(row) for row in centre.rows(_BAD_JOBS, values)),
        bad_count=sum(number for state, number in jobs if state in _BAD),
    )


def survey_week(centre: CentreSession) -> FleetWeek:
    """Return what ran in the last seven days. Raises: CentreUnreachable, CentreRefused."""
    rows = centre.rows(_WEEK)
    return FleetWeek(
        well=sum(row["well"] for row in rows), badly=sum(row["badly"] for row in rows), moved_bytes=Bytes(sum(row["moved"] for row in rows)),
        worst=tuple((row["host"], row["badly"]) for row in rows[:_WORST] if row["badly"]),
    )  # fmt: skip


def find_hosts(
    centre: CentreSession,
    *,
    state: HostState | None = None,
    name: str | None = None,
    odd: bool = False,
    now: datetime | None = None,
    limit: int = MOST,
) -> tuple[FleetHost, ...]:
    """Return hosts, the longest silent ones first. `name`: with * for any text; `odd`: with a wrong clock, mistakes in files, or a full quota."""
    like = (
        None if name is None else name.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_").replace("*", "%")
    )
    values: Mapping[str, object] = {
        "now": now,
        "state": state and state.value,
        "name": like,
        "odd": odd,
        "error": CLOCK_ERROR.total_seconds(),
        "nearly_full": NEARLY_FULL,
        "limit": limit,
    }
    return tuple(_host(row) for row in centre.rows(_SOME_HOSTS, values))  # fmt: skip


def find_runs(
    centre: CentreSession, *, host: str | None, job: str | None, outcome: str | None, limit: int = MOST
) -> tuple[FleetRun, ...]:
    """Return the newest runs of all hosts, or of those that fit."""
    values = {"host": host, "job": job, "outcome": outcome, "limit": limit}
    return tuple(_run(row) for row in centre.rows(_RUNS, values))


def find_pools(
    centre: CentreSession, *, host: str | None, now: datetime | None = None, limit: int = MOST
) -> tuple[FleetPool, ...]:
    """Return the watched pools of all hosts or of one, those that need a person first."""
    return tuple(_pool(row) for row in centre.rows(_POOLS, {"host": host, "now": now, "limit": limit}))


def find_records(
    centre: CentreSession, *, subject: str, host: str | None, limit: int = MOST
) -> tuple[FleetRecord, ...]:
    """Return the newest rows of a subject, of all hosts or of one."""
    return tuple(
        FleetRecord(
            host=row["host"], key=row["key"], incarnation=row["incarnation"], body=row["body"] if isinstance(row["body"], dict) else {},
            arrived=row["arrived_at"],
        )
        for row in centre.rows(_RECORDS, {"subject": subject, "host": host, "limit": limit})
    )  # fmt: skip


def _host(row: Row) -> FleetHost:
    return FleetHost(
        name=row["name"], state=HostState(row["state"]), seen=row["seen_at"], clock_ahead=row["ahead"], version=row["version"],
        jobs=row["number"], bad=row["bad"], oldest_copy=row["oldest"], waiting=row["waiting"], mistakes=row["mistakes"],
        told=Bytes(row["bytes"]), most=Bytes(row["most"]),
    )  # fmt: skip


def _job(row: Row) -> FleetJob:
    return FleetJob(
        host=row["host"], host_state=HostState(row["host_state"]), job=row["job"], state=row["state"], why=row["why"],
        hint=row["hint"], late_after_s=row["late_after_s"], copied=row["copied_at"], last_outcome=row["last_outcome"],
        last_ended=row["last_ended_at"],
    )  # fmt: skip


def _pool(row: Row) -> FleetPool:
    said = row["warnings"] if isinstance(row["warnings"], list) else []
    return FleetPool(
        host=row["host"], host_state=HostState(row["host_state"]), job=row["job"], pool=row["pool"], state=row["judged"],
        looked=row["begun_at"], found=row["why"] or "", advice=tuple(map(str, said)), hint=row["hint"],
    )  # fmt: skip


def _run(row: Row) -> FleetRun:
    return FleetRun(
        host=row["host"], run=row["id"], incarnation=row["incarnation"], job=row["job"], type=row["type"], outcome=row["outcome"],
        begun=row["begun_at"], ended=row["ended_at"], moved_bytes=row["moved_bytes"], why=row["why"] or "", arrived=row["arrived_at"],
    )  # fmt: skip
