"""Signs of life at the centre: when each host was seen by the centre's own clock, and how each of its jobs stands."""

import json

from orchestrator.domain.fast_dataclass import fields
from orchestrator.domain.heartbeat import HostBeat, JobBeat
from orchestrator.fleet.connection import CentreSession

_BEAT = """
INSERT INTO poolferry.beats (host, host_at, every_s, version, waiting, mistakes)
VALUES (%(host)s, %(host_at)s, %(every_s)s, %(version)s, %(waiting)s, %(mistakes)s)
ON CONFLICT (host) DO UPDATE SET host_at = excluded.host_at, every_s = excluded.every_s, version = excluded.version,
    waiting = excluded.waiting, mistakes = excluded.mistakes
"""
_TYPES = {
    "late_after_s": "float8", "copied_at": "timestamptz", "due_at": "timestamptz", "next_at": "timestamptz",
    "running_at": "timestamptz", "last_ended_at": "timestamptz", "failures": "integer",
}  # fmt: skip
_NAMES = [each.name for each in fields(JobBeat)]
_SET = [name for name in _NAMES if name != "job"]
# A job that is as it was is not written again: most are, and each written row is a dead one to clear away.
_JOBS = f"""
INSERT INTO poolferry.jobs AS known (host, {", ".join(_NAMES)}, declared)
SELECT %(host)s, {", ".join(_NAMES)}, true
FROM jsonb_to_recordset(%(rows)s::jsonb) AS told ({", ".join(f"{name} {_TYPES.get(name, 'text')}" for name in _NAMES)})
ON CONFLICT (host, job) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _SET)}, declared = true
WHERE (known.declared, {", ".join(f"known.{name}" for name in _SET)})
    IS DISTINCT FROM (true, {", ".join(f"excluded.{name}" for name in _SET)})
"""  # noqa: S608 - our own columns
_GONE = "UPDATE poolferry.jobs SET declared = false WHERE host = %(host)s AND declared AND NOT job = ANY(%(jobs)s)"


def store_beat(centre: CentreSession, host: int, beat: HostBeat) -> None:
    """Store a host's sign of life. Raises: CentreUnreachable, CentreRefused."""
    with centre.transaction():
        centre.connection.execute(
            _BEAT.encode(),
            {
                "host": host, "host_at": beat.host_at, "every_s": beat.every_s, "version": beat.version,
                "waiting": beat.waiting, "mistakes": beat.mistakes,
            },
        )  # fmt: skip
        if beat.jobs is None:
            return
        rows = [{name: _value(getattr(job, name)) for name in _NAMES} for job in beat.jobs]
        centre.connection.execute(_GONE.encode(), {"host": host, "jobs": [job.job for job in beat.jobs]})
        if rows:
            centre.connection.execute(_JOBS.encode(), {"host": host, "rows": json.dumps(rows)})


def _value(value: object) -> object:
    isoformat = getattr(value, "isoformat", None)
    return isoformat() if isoformat else value
