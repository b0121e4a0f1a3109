"""The words of a host of the first version at its centre."""

from orchestrator.fleet.connection import CentreSession

# As hosts of the first version say it, word for word: never changed, and dropped two versions later.
FIRST_VERSION = (
    "INSERT INTO poolferry.progress (host) VALUES (%(host)s) ON CONFLICT (host) DO NOTHING",
    "UPDATE poolferry.progress SET incarnation = 1, batch = 'b1', seq = greatest(seq, 7) WHERE host = %(host)s AND batch = ''",
    (
        "INSERT INTO poolferry.runs AS known (host, incarnation, id, seq, born, job, engine, source, target, type, begun_at, begun_why,"
        " ended_at, outcome, why, hint, moved_bytes, took_s, resumed, attempts, points, warnings) VALUES (%(host)s, 1, 1, 7, 1, 'photos',"
        " 'rsync', '/srv', 'backup', 'run', now(), '', now(), 'done', '', '', 1, 1.5, false, 1, '[]', '[]')"
        " ON CONFLICT (host, incarnation, id) DO UPDATE SET seq = excluded.seq, outcome = excluded.outcome"
        " WHERE excluded.seq > known.seq"
    ),
    "UPDATE poolferry.runs SET removed = true, seq = 8 WHERE host = %(host)s AND incarnation = 1 AND id = 1",
    (
        "INSERT INTO poolferry.records AS known (host, subject, incarnation, key, seq, born, body) VALUES (%(host)s, 'point', 1, '1', 7, 1,"
        " '{}') ON CONFLICT (host, subject, incarnation, key) DO UPDATE SET seq = excluded.seq, body = excluded.body"
        " WHERE excluded.seq > known.seq"
    ),
    (
        "INSERT INTO poolferry.beats (host, host_at, every_s, version, waiting, mistakes) VALUES (%(host)s, now(), 300, '0.1', 0, 0)"
        " ON CONFLICT (host) DO UPDATE SET host_at = excluded.host_at, every_s = excluded.every_s"
    ),
    (
        "INSERT INTO poolferry.jobs AS known (host, job, engine, source, target, state, why, hint, late_after_s, copied_at, due_at, next_at,"
        " running_at, last_outcome, last_ended_at, failures, declared) VALUES (%(host)s, 'photos', 'rsync', '/srv', 'backup', 'up', '', '',"
        " 7200, now(), NULL, NULL, NULL, 'done', now(), 0, true) ON CONFLICT (host, job) DO UPDATE SET state = excluded.state"
    ),
    "UPDATE poolferry.jobs SET declared = false WHERE host = %(host)s AND declared AND NOT job = ANY(ARRAY['photos'])",
    (
        "SELECT permit, granted, busy, place, in_limit, used, slots, opens, unknown, clamped"
        " FROM poolferry.ask_permit('photos', ARRAY['link'], 1, 30, false)"
    ),
    "SELECT poolferry.release_permit(1)",
    "SELECT key, verb, job, point, span, asked_by, state, attempt, late FROM poolferry.fetch_orders('a-machine')",
    "SELECT poolferry.report_order(gen_random_uuid(), 'taken', 1, NULL, '')",
)


def say_all(session: CentreSession) -> None:
    """Say what a host of the first version says."""
    row = session.first("SELECT poolferry.this_host() AS host")
    assert row is not None
    for statement in FIRST_VERSION:
        session.change(statement, row)
