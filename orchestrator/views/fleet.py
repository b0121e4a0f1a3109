"""Hosts, jobs and runs of a fleet, as lines and as JSON."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.command_line import quoted
from orchestrator.domain.fleet_status import (
    CLOCK_ERROR,
    FleetHost,
    FleetJob,
    FleetPool,
    FleetRecord,
    FleetRun,
    FleetStatus,
    HostState,
    twice_as_much,
)
from orchestrator.domain.names import printable_line
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.planners.health import JobState
from orchestrator.views.format import format_ago, format_brief, format_iso, format_table, indent, shorten
from orchestrator.views.watched_pools import fill_said, scan_said

_HOST_HEAD = ("HOST", "STATE", "SEEN", "JOBS", "BAD", "OLDEST COPY", "TOLD", "VERSION")
_RUN_HEAD = ("HOST", "RUN", "JOB", "BEGAN", "OUTCOME", "MOVED", "WHY")
_POOL_HEAD = ("HOST", "POOL", "STATE", "FULL", "LOOKED AT", "SCRUB, OR WHAT IS WRONG")
_RECORD_HEAD = ("HOST", "KEY", "TOLD", "SAYS")
_COLOURS = {HostState.SILENT: "red", HostState.HEARD: "green"}
SILENT_HINT = "systemctl status poolferry"
Paint = Callable[[str, str | None], str]


def host_value(found: FleetHost) -> dict[str, Any]:
    """Render one host for programs."""
    return {
        "host": found.name,
        "state": found.state.value,
        "seen": format_iso(found.seen),
        "clock_ahead_s": None if found.clock_ahead is None else round(found.clock_ahead.total_seconds(), 3),
        "version": found.version or None,
        "jobs": found.jobs,
        "bad": found.bad,
        "oldest_copy": format_iso(found.oldest_copy),
        "waiting": found.waiting,
        "mistakes": found.mistakes,
        "told_bytes": found.told,
        "quota_bytes": found.most,
    }


def _told(found: FleetHost) -> str:
    """Render how much a host told; with its quota where it is nearly used up."""
    return show_size(found.told) + (f" of {show_size(found.most)}" if found.nearly_full else "")


def host_lines(found: Sequence[FleetHost], now: datetime, paint: Paint) -> list[str]:
    """Render hosts as a table."""
    if not found:
        return ["no host fits"]
    rows = [
        (
            each.name, each.state.value, format_ago(each.seen, now=now), str(each.jobs), str(each.bad),
            format_ago(each.oldest_copy, now=now) if each.jobs else "", _told(each), each.version,
        )
        for each in found
    ]  # fmt: skip
    head, *cells = format_table(_HOST_HEAD, rows, right=frozenset({"JOBS", "BAD", "TOLD"}))
    painted = [
        [row[0], paint(row[1], _COLOURS.get(each.state)), *row[2:]] for each, row in zip(found, cells, strict=True)
    ]
    return [line for row in (head, *painted) for line in indent(["  ".join(row).rstrip()], 0)]


def run_value(found: FleetRun) -> dict[str, Any]:
    """Render one run for programs."""
    return {
        "host": found.host,
        "run": found.run,
        "incarnation": found.incarnation,
        "job": found.job,
        "kind": found.type,
        "outcome": found.outcome,
        "begun": format_iso(found.begun),
        "ended": format_iso(found.ended),
        "moved_bytes": found.moved_bytes,
        "why": found.why,
        "arrived": format_iso(found.arrived),
    }


def run_lines(found: Sequence[FleetRun], now: datetime) -> list[str]:
    """Render runs as a table, the newest first."""
    if not found:
        return ["no run fits"]
    rows = [
        (
            each.host, str(each.run), each.job, format_brief(each.begun, now=now), each.outcome or "goes on",
            "" if each.moved_bytes is None else show_size(each.moved_bytes), shorten(each.why),
        )
        for each in found
    ]  # fmt: skip
    return ["  ".join(row).rstrip() for row in format_table(_RUN_HEAD, rows, right=frozenset({"RUN", "MOVED"}))]


def pool_value(found: FleetPool) -> dict[str, Any]:
    """Render one watched pool for programs. `fill`: its used share, from 0 to 1."""
    return {
        "host": found.host, "host_state": found.host_state.value, "job": found.job, "pool": found.pool, "state": found.state,
        "looked": format_iso(found.looked), "fill": fill_said(found.found), "scrub": scan_said(found.found) or None,
        "found": found.found or None, "advice": list(found.advice), "hint": found.hint or None,
    }  # fmt: skip


def pool_lines(found: Sequence[FleetPool], now: datetime) -> list[str]:
    """Render watched pools as a table, and below each what it needs."""
    if not found:
        return ['no job of engine = "pool" was told of']
    rows = [
        (
            each.host, each.pool, each.state, "" if (fill := fill_said(each.found)) is None else f"{fill:.0%}",
            format_ago(each.looked, now=now), shorten(scan_said(each.found) or each.found),
        )
        for each in found
    ]  # fmt: skip
    head, *cells = format_table(_POOL_HEAD, rows, right=frozenset({"FULL"}))
    lines = ["  ".join(head).rstrip()]
    for each, row in zip(found, cells, strict=True):
        lines.append("  ".join(row).rstrip())
        lines += [line for said in each.advice for line in indent([printable_line(said)], 4)]
        lines += indent([f"on {each.host}: {each.hint}"], 4) if each.hint and each.state != JobState.UP.value else []
    return lines


def record_value(found: FleetRecord) -> dict[str, Any]:
    """Render one row that a host told for programs."""
    return {
        "host": found.host, "key": found.key, "incarnation": found.incarnation, "arrived": format_iso(found.arrived),
        "told": dict(found.body),
    }  # fmt: skip


def record_lines(found: Sequence[FleetRecord], now: datetime) -> list[str]:
    """Render rows that hosts told as a table, each with its columns that say something."""
    if not found:
        return ["nothing was told of that"]
    rows = [(each.host, each.key, format_ago(each.arrived, now=now), shorten(_said(each))) for each in found]
    return ["  ".join(row).rstrip() for row in format_table(_RECORD_HEAD, rows)]


def _said(found: FleetRecord) -> str:
    told = ((name, value) for name, value in found.body.items() if name not in ("run_incarnation", "disk"))
    return printable_line(", ".join(f"{name} {value}" for name, value in told if value not in (None, "", [], {})))


def fleet_value(found: FleetStatus) -> dict[str, Any]:
    """Render the whole fleet for programs."""
    return {
        "well": found.well,
        "hosts": dict(found.hosts),
        "jobs": dict(found.jobs),
        "silent": [host_value(each) for each in found.silent],
        "odd": [host_value(each) for each in found.odd],
        "bad": [_job_value(each) for each in found.bad],
        "bad_count": found.bad_count,
    }


def _job_value(found: FleetJob) -> dict[str, Any]:
    return {
        "host": found.host,
        "host_state": found.host_state.value,
        "job": found.job,
        "state": found.state,
        "why": found.why,
        "hint": job_hint(found),
        "late_after_s": found.late_after_s,
        "newest_verified": format_iso(found.copied),
        "last_outcome": found.last_outcome,
        "last_ended": format_iso(found.last_ended),
    }


def fleet_lines(found: FleetStatus, now: datetime, paint: Paint) -> list[str]:
    """Render the whole fleet: its numbers, then what needs a person, the worst first."""
    hosts = sum(number for _, number in found.hosts)
    jobs = sum(number for _, number in found.jobs)
    if not hosts:
        return ["no host was invited yet; poolferry fleet invite HOST"]
    lines = [
        f"{show_count(hosts, 'host')}: {_counts(found.hosts)}",
        f"{show_count(jobs, 'job')}: {_counts(found.jobs) or 'none'}",
    ]
    lines += indent([found.silent_sentence], 0) if found.silent_sentence else []
    for each in found.silent:
        lines += indent([f"{paint('silent', 'red')}  {each.name}: last seen {format_ago(each.seen, now=now)}"], 0)
    if found.silent_count > len(found.silent):
        lines.append(
            f"and {show_count(found.silent_count - len(found.silent), 'more silent host')}: poolferry fleet hosts --only silent"
        )
    where = found.silent[0].name if found.silent_count == 1 and found.silent else "each silent host"
    lines += indent([f"on {where}: {SILENT_HINT}"], 4) if found.silent else []
    for each in found.odd:
        lines += indent([f"{paint('odd', 'yellow')}     {each.name}: {odd_sentence(each)}"], 0)
    for job in found.bad:
        lines += indent([f"{paint(job.state, 'red')}  {job.host} {job.job}: {job_sentence(job, now)}"], 0)
        lines += indent([f"on {job.host}: {job_hint(job)}"], 4)
    if found.bad_count > len(found.bad):
        lines.append(f"and {show_count(found.bad_count - len(found.bad), 'more job')}")
    return lines if not found.well else [*lines, "all is well"]


def _counts(found: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{number} {state}" for state, number in found)


def odd_sentence(found: FleetHost) -> str:
    """Return what is odd about a host that is heard: its clock, its configuration, its quota."""
    told = []
    ahead = found.clock_ahead
    if ahead is not None and abs(ahead) > CLOCK_ERROR:
        way = "ahead of" if ahead.total_seconds() > 0 else "behind"
        told.append(f"its clock is {show_duration(abs(ahead.total_seconds()))} {way} the centre's")
    if found.mistakes:
        told.append(f"its configuration has {show_count(found.mistakes, 'mistake')}; there: poolferry check")
    if found.nearly_full:
        told.append(
            f"it told {_told(found)} that it may; `poolferry fleet quota {quoted(found.name)} --most {quoted(twice_as_much(found.most))}` gives it more"
        )
    return "; ".join(told)


def job_hint(job: FleetJob) -> str:
    """Return what helps on a job's host; of one that was well when its host told of it last, where to look."""
    return job.hint or f"poolferry status {quoted(job.job)}"


def job_sentence(job: FleetJob, now: datetime) -> str:
    """Return why a job of a host needs a person."""
    copied = f"newest verified copy {format_ago(job.copied, now=now)}"
    limit = "" if job.late_after_s is None else f", late after {show_duration(job.late_after_s)}"
    # Of a late one the host's own reason speaks of an age that is long past.
    return f"{copied}{limit}" + ("" if job.state == JobState.LATE else f"; {shorten(job.why)}")
