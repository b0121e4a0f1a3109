"""Removable disks as a table that a tired person understands, one disk in all detail, and both as JSON."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.rotation import Known, RotationSet, Standing, Visit, Whereabouts
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.planners.read_order import Unit, oldest
from orchestrator.planners.rotation import Member
from orchestrator.views.format import ago, clock, indented, iso, table
from orchestrator.views.visits import SetStanding, standing_value

_HEAD = ("SET", "DISK", "NEWEST WHOLE COPY", "WHERE", "LAST VISIT", "NOTE")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRow:
    """One disk of a set. `known` None: history knows nothing of it; `last`: its last visit."""

    member: Member
    known: Known | None
    last: Visit | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReport:
    """A set, its disks, and the names of its jobs. `left`: sentences about disks that nobody took away, or that hang."""

    standing: SetStanding
    jobs: tuple[str, ...]
    disks: tuple[DiskRow, ...]
    left: tuple[str, ...]

    @property
    def rotation(self) -> RotationSet:
        """The set itself."""
        return self.standing.rotation


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskReport:
    """All that is known of one disk. `forecast`: its next copy; `copies`: when each was read; `health`: the last visit that told."""

    standing: SetStanding
    row: DiskRow
    forecast: str
    copies: tuple[Unit, ...]
    visits: tuple[Visit, ...]
    places: tuple[Whereabouts, ...]
    health: Visit | None


def sets_value(sets: Sequence[SetReport]) -> dict[str, Any]:
    """Render all sets for `disks --json`."""
    return {
        "sets": [
            {
                **standing_value(each.standing),
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
        "standing": member.standing.value, "place": member.place or None, "newest": iso(member.filled),
        "enrolled": iso(member.enrolled), "size": known.size if known else None, "serial": known.serial if known else None,
        "model": known.model if known else None, "visits": known.generation if known else None,
        "snoozed_until": iso(member.snooze.until) if member.snooze else None,
        "ails": None if member.ails is None else dict(member.ails),
    }  # fmt: skip


def sets_lines(sets: Sequence[SetReport], now: datetime) -> list[str]:
    """Render the table of disks, and below it each set's requests and complaints."""
    if not sets:
        return ["there is no rotation set in targets.toml"]
    rows = [_row(each, row, now) for each in sets for row in each.disks]
    lines = ["  ".join(row).rstrip() for row in table(_HEAD, rows)] if rows else []
    for each in sets:
        rotation, stands = each.rotation, each.standing
        if not rotation.disks:
            lines.append(f"the set {rotation.name} has no disk: poolferry disks enroll DEVICE --set {rotation.name}")
            continue
        told = (stands.health.late, *stands.health.overdue.values(), stands.health.all_here, *stands.health.sleeping)
        told += tuple(f"disk {name}: {ails}" for name, ails in stands.health.ailing.items())
        lines += [f"{rotation.name}: {one}" for one in (*told, *each.left) if one]
        lines.append(f"{rotation.name}: {stands.request}")
    return lines


def _row(each: SetReport, row: DiskRow, now: datetime) -> tuple[str, ...]:
    member, last = row.member, row.last
    where = member.standing.value if member.standing is not Standing.ACTIVE else member.place or "unknown"
    came = f"{ago(last.arrived, now=now)}: {last.outcome}" if last else "never"
    return (each.rotation.name, member.disk.name, ago(member.filled, now=now), where, came, member.disk.note)


def disk_value(report: DiskReport) -> dict[str, Any]:
    """Render one disk for `disks show --json`."""
    name = report.row.member.disk.name
    return {
        **_disk_value(report.row), "forecast": report.forecast, "set": report.standing.rotation.name,
        "read": iso(oldest(report.copies)), "overdue": report.standing.health.overdue.get(name, ""),
        "history": [
            {"arrived": iso(each.arrived), "released": iso(each.released), "outcome": each.outcome, "why": each.why,
             "safe": each.safe, "jobs": list(each.jobs), "health": each.health, "slow": each.slow} for each in report.visits
        ],
        "places": [{"place": each.place, "since": iso(each.since), "note": each.note} for each in report.places],
    }  # fmt: skip


def _read_again(copies: Sequence[Unit], now: datetime) -> str:
    """Render the age of the oldest verification of a disk's points."""
    unread = sum(unit.read_at is None for unit in copies)
    since = oldest(copies)
    if since is not None:
        return f"all of it, the oldest part {ago(since, now=now)}"
    return f"{unread} of {show_count(len(copies), 'point')} not yet" if unread else "nothing yet"


def _own_word(said: Visit | None, now: datetime) -> str:
    if said is None:
        return "nothing yet: not every case hands it on, and smartctl must be installed"
    return f"{said.health or 'it is well'}, {ago(said.arrived, now=now)}"


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
    lines += [f"  enrolled {clock(known.enrolled, now=now)}, {known.generation} visits, {known.standing.value}"]
    lines += [f"  newest whole copy: {ago(member.filled, now=now)}", *([f"  {late}"] if late else [])]
    lines += [
        f"  the next copy: {report.forecast}",
        f"  read again: {_read_again(report.copies, now)}",
        f"  its own word (SMART): {_own_word(report.health, now)}",
        "  where it was:",
    ]
    for place in report.places:
        lines.append(f"    {clock(place.since, now=now)}  {place.place}" + (f" ({place.note})" if place.note else ""))
    lines += ["  visits:"]
    for each in report.visits:
        stayed = show_duration((each.released - each.arrived).total_seconds()) if each.released else "not let go"
        lines += indented([f"{clock(each.arrived, now=now)}  {each.outcome} ({stayed}): {each.why}"], 4)
        lines += indented([each.slow] if each.slow else [], 6)
    return lines
