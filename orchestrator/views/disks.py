"""Removable disks as a table, one disk in detail, and both as JSON."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.rotation import DiskLocation, DiskRecord, DiskState, DiskVisit, RotationSet
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.planners.read_order import ReadItem, oldest_read
from orchestrator.planners.rotation import SetMember
from orchestrator.views.format import format_ago, format_clock, format_iso, format_table, indent
from orchestrator.views.visits import SetStatus, set_status_value

_HEAD = ("SET", "DISK", "NEWEST WHOLE COPY", "WHERE", "LAST VISIT", "NOTE")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRow:
    """One disk of a set. `known` None: history knows nothing of it; `last`: its last visit."""

    member: SetMember
    known: DiskRecord | None
    last: DiskVisit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReport:
    """A set, its disks, and the names of its jobs. `left`: sentences about disks that are still plugged in, or that hang."""

    standing: SetStatus
    jobs: tuple[str, ...]
    disks: tuple[DiskRow, ...]
    left: tuple[str, ...]

    @property
    def rotation(self) -> RotationSet:
        """Return the set itself."""
        return self.standing.rotation


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskReport:
    """All known facts of one disk.

    `forecast`: its next copy; `copies`: when each was read; `health`: the last visit in which the disk reported its health.
    """

    standing: SetStatus
    row: DiskRow
    forecast: str
    copies: tuple[ReadItem, ...]
    visits: tuple[DiskVisit, ...]
    places: tuple[DiskLocation, ...]
    health: DiskVisit | None


def sets_value(sets: Sequence[SetReport]) -> dict[str, Any]:
    """Render all sets for `disks --json`."""
    return {
        "sets": [
            {
                **set_status_value(each.standing),
                "jobs": list(each.jobs),
                "disks": [_disk_value(row) for row in each.disks],
            }
            for each in sets
        ]
    }


def _disk_value(row: DiskRow) -> dict[str, Any]:
    member, disk, known = row.member, row.member.disk, row.known
    return {
        "disk": disk.name, "note": disk.note, "content": disk.content, "identity": disk.identity,
        "standing": member.standing.value, "place": member.place or None, "newest": format_iso(member.filled),
        "enrolled": format_iso(member.enrolled), "size": known.size if known else None, "serial": known.serial if known else None,
        "model": known.model if known else None, "visits": known.generation if known else None,
        "snoozed_until": format_iso(member.snooze.until) if member.snooze else None,
        "ails": None if member.ails is None else dict(member.ails),
    }  # fmt: skip


def sets_lines(sets: Sequence[SetReport], now: datetime) -> list[str]:
    """Render the table of disks, and below it each set's requests and complaints."""
    if not sets:
        return ["there is no rotation set in targets.toml"]
    rows = [_row(each, row, now) for each in sets for row in each.disks]
    lines = ["  ".join(row).rstrip() for row in format_table(_HEAD, rows)] if rows else []
    for each in sets:
        rotation, stands = each.rotation, each.standing
        if not rotation.disks:
            lines.append(f"the set {rotation.name} has no disk: poolferry disks enroll DEVICE --set {rotation.name}")
            continue
        lines += [f"{rotation.name}: {one}" for one in set_warnings(each)]
        lines.append(f"{rotation.name}: {stands.request_beside_health}")
    return lines


def set_warnings(found: SetReport) -> tuple[str, ...]:
    """Return what is wrong with a set and its disks, and what must be heeded, each as a sentence."""
    health = found.standing.health
    told = (health.late, *health.overdue.values(), health.all_here, *health.sleeping)
    told += tuple(f"disk {name}: {ails}" for name, ails in health.ailing.items())
    return tuple(one for one in (*told, *found.left) if one)


def _row(each: SetReport, row: DiskRow, now: datetime) -> tuple[str, ...]:
    member, last = row.member, row.last
    where = member.standing.value if member.standing is not DiskState.ACTIVE else member.place or "unknown"
    came = f"{format_ago(last.arrived, now=now)}: {last.outcome}" if last else "never"
    return (each.rotation.name, member.disk.name, format_ago(member.filled, now=now), where, came, member.disk.note)


def disk_value(report: DiskReport) -> dict[str, Any]:
    """Render one disk for `disks show --json`."""
    name = report.row.member.disk.name
    return {
        **_disk_value(report.row), "forecast": report.forecast, "set": report.standing.rotation.name,
        "read": format_iso(oldest_read(report.copies)), "overdue": report.standing.health.overdue.get(name, ""),
        "history": [
            {"arrived": format_iso(each.arrived), "released": format_iso(each.released), "outcome": each.outcome, "why": each.why,
             "safe": each.safe, "jobs": list(each.jobs), "health": each.health, "slow": each.slow} for each in report.visits
        ],
        "places": [{"place": each.place, "since": format_iso(each.since), "note": each.note} for each in report.places],
    }  # fmt: skip


def _read_again(copies: Sequence[ReadItem], now: datetime) -> str:
    """Render the age of the oldest verification of a disk's points."""
    unread = sum(unit.read_at is None for unit in copies)
    since = oldest_read(copies)
    if since is not None:
        return f"all of it, the oldest part {format_ago(since, now=now)}"
    return f"{unread} of {show_count(len(copies), 'point')} not yet" if unread else "nothing yet"


def _own_word(said: DiskVisit | None, now: datetime) -> str:
    if said is None:
        return "nothing yet: not every case hands it on, and smartctl must be installed"
    return f"{said.health or 'it is well'}, {format_ago(said.arrived, now=now)}"


def disk_lines(report: DiskReport, now: datetime) -> list[str]:
    """Render one disk in all detail."""
    member, known = report.row.member, report.row.known
    disk = member.disk
    late = report.standing.health.overdue.get(disk.name)
    lines = [f"disk {disk.called} of the set {report.standing.rotation.name}: {disk.content}, {disk.identity}"]
    if known is None:
        return [*lines, "  it was never here"]
    about = " ".join(filter(None, (known.model, known.serial and f"serial {known.serial}")))
    lines += [f"  {show_size(known.size)}" + (f", {about} (as the disk claims)" if about else "")]
    lines += [
        f"  enrolled {format_clock(known.enrolled, now=now)}, {show_count(known.generation, 'visit')}, {known.standing.value}"
    ]
    lines += [f"  newest whole copy: {format_ago(member.filled, now=now)}", *([f"  {late}"] if late else [])]
    lines += [
        f"  the next copy: {report.forecast}",
        f"  read again: {_read_again(report.copies, now)}",
        f"  its own word (SMART): {_own_word(report.health, now)}",
        "  where it was:",
    ]
    for place in report.places:
        lines.append(
            f"    {format_clock(place.since, now=now)}  {place.place}" + (f" ({place.note})" if place.note else "")
        )
    lines += ["  visits:"]
    for each in report.visits:
        stayed = show_duration((each.released - each.arrived).total_seconds()) if each.released else "not let go"
        lines += indent([f"{format_clock(each.arrived, now=now)}  {each.outcome} ({stayed}): {each.why}"], 4)
        lines += indent([each.slow] if each.slow else [], 6)
    return lines
