"""Removable disks as a table that a tired person understands, one disk with all that is known of it, and both as JSON."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from orchestrator.app.disk_visits import set_standing, standing_value
from orchestrator.app.hotplug import left_plugged_in, plugged_in
from orchestrator.disks.detect import held
from orchestrator.domain.job import Job
from orchestrator.domain.rotation import Disk, RotationSet, Standing, Visit
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.history.views import Views
from orchestrator.planners.identify_disk import held_alone
from orchestrator.planners.read_order import oldest
from orchestrator.planners.rotation import Member
from orchestrator.runner.disk.state import find_known, members, of_set, readings
from orchestrator.views.format import ago, clock, indented, iso, table

_HEAD = ("SET", "DISK", "NEWEST WHOLE COPY", "WHERE", "LAST VISIT", "NOTE")
_VISITS, _PLACES = 10, 10


def sets_value(sets: Sequence[RotationSet], jobs: Sequence[Job], views: Views, now: datetime) -> dict[str, Any]:
    """All sets for `disks --json`."""
    return {"sets": [_set_value(rotation, jobs, views, now) for rotation in sets]}


def _set_value(rotation: RotationSet, jobs: Sequence[Job], views: Views, now: datetime) -> dict[str, Any]:
    own = members(rotation, of_set(rotation, jobs), views)
    stands = set_standing(rotation, jobs, views, now=now)
    return {
        **standing_value(stands), "jobs": [job.name for job in of_set(rotation, jobs)],
        "disks": [_member_value(member, views) for member in own],
    }  # fmt: skip


def _member_value(member: Member, views: Views) -> dict[str, Any]:
    disk, known = member.disk, find_known(views.disks.known(), member.disk)
    return {
        "disk": disk.name, "note": disk.note, "content": disk.content, "identity": disk.identity,
        "standing": member.standing.value, "place": member.place or None, "newest": iso(member.filled),
        "enrolled": iso(member.enrolled), "size": known.size if known else None, "serial": known.serial if known else None,
        "model": known.model if known else None, "visits": known.generation if known else None,
        "snoozed_until": iso(member.snooze.until) if member.snooze else None,
        "ails": None if member.ails is None else dict(member.ails),
    }  # fmt: skip


def sets_lines(sets: Sequence[RotationSet], jobs: Sequence[Job], views: Views, now: datetime) -> list[str]:
    """The table, and below it what each set asks for and complains of."""
    if not sets:
        return ["there is no rotation set in targets.toml"]
    rows = [row for rotation in sets for row in _rows(rotation, jobs, views, now)]
    lines = ["  ".join(row).rstrip() for row in table(_HEAD, rows)] if rows else []
    for rotation in sets:
        stands = set_standing(rotation, jobs, views, now=now)
        if not rotation.disks:
            lines.append(f"the set {rotation.name} has no disk: poolferry disks enroll DEVICE --set {rotation.name}")
            continue
        told = (stands.health.late, *stands.health.overdue.values(), stands.health.all_here, *stands.health.sleeping)
        told += tuple(f"disk {name}: {ails}" for name, ails in stands.health.ailing.items())
        told += (*left_plugged_in(rotation, last_visits(views)), *held_lines(rotation))
        lines += [f"{rotation.name}: {each}" for each in told if each]
        lines.append(f"{rotation.name}: {stands.request}")
    return lines


def _rows(rotation: RotationSet, jobs: Sequence[Job], views: Views, now: datetime) -> list[tuple[str, ...]]:
    visits, known = views.disks.last_visits(), views.disks.known()
    rows: list[tuple[str, ...]] = []
    for member in members(rotation, of_set(rotation, jobs), views):
        own = find_known(known, member.disk)
        last = visits.get(own.disk) if own else None
        where = member.standing.value if member.standing is not Standing.ACTIVE else member.place or "unknown"
        came = f"{ago(last.arrived, now=now)}: {last.outcome}" if last else "never"
        rows.append((rotation.name, member.disk.name, ago(member.filled, now=now), where, came, member.disk.note))
    return rows


def last_visits(views: Views) -> dict[str, Visit]:
    """The last stay of each disk, by its identity."""
    last = views.disks.last_visits()
    return {known.identity: last[known.disk] for known in views.disks.known() if known.disk in last}


def held_lines(rotation: RotationSet) -> list[str]:
    """What is said of pools that lost their disk."""
    here, waiting = plugged_in(rotation), held(rotation.disks)
    found = (
        held_alone(disk, hangs=waiting[disk.name])
        for disk in rotation.disks
        if disk.name in waiting and disk.name not in here
    )
    return [f"{each.says}; {each.cure}" for each in found]


def disk_value(
    rotation: RotationSet, disk: Disk, jobs: Sequence[Job], views: Views, now: datetime, forecast: str
) -> dict[str, Any]:
    """One disk for `disks show --json`."""
    known = find_known(views.disks.known(), disk)
    (member,) = [each for each in members(rotation, of_set(rotation, jobs), views) if each.disk == disk]
    stands = set_standing(rotation, jobs, views, now=now)
    visits = views.disks.visits(known.disk, _VISITS) if known else ()
    places = views.disks.whereabouts(known.disk, _PLACES) if known else ()
    return {
        **_member_value(member, views), "forecast": forecast, "set": rotation.name,
        "read": iso(oldest(readings(of_set(rotation, jobs), disk, views))), "overdue": stands.health.overdue.get(disk.name, ""),
        "history": [
            {"arrived": iso(each.arrived), "released": iso(each.released), "outcome": each.outcome, "why": each.why,
             "safe": each.safe, "jobs": list(each.jobs), "health": each.health, "slow": each.slow} for each in visits
        ],
        "places": [{"place": each.place, "since": iso(each.since), "note": each.note} for each in places],
    }  # fmt: skip


def _read_again(rotation: RotationSet, disk: Disk, jobs: Sequence[Job], views: Views, now: datetime) -> str:
    """How far back the readings of what lies on a disk go."""
    units = readings(of_set(rotation, jobs), disk, views)
    unread = sum(unit.read_at is None for unit in units)
    since = oldest(units)
    if since is not None:
        return f"all of it, the oldest part {ago(since, now=now)}"
    return f"{unread} of {show_count(len(units), 'point')} not yet" if unread else "nothing yet"


def _own_word(said: Visit | None, now: datetime) -> str:
    if said is None:
        return "nothing yet: not every case hands it on, and smartctl must be installed"
    return f"{said.health or 'it is well'}, {ago(said.arrived, now=now)}"


def disk_lines(
    rotation: RotationSet, disk: Disk, jobs: Sequence[Job], views: Views, now: datetime, forecast: str
) -> list[str]:
    """One disk, told."""
    known = find_known(views.disks.known(), disk)
    (member,) = [each for each in members(rotation, of_set(rotation, jobs), views) if each.disk == disk]
    late = set_standing(rotation, jobs, views, now=now).health.overdue.get(disk.name)
    lines = [f"disk {disk.called} of the set {rotation.name}: {disk.content}, {disk.identity}"]
    if known is None:
        return [*lines, "  it was never here"]
    about = " ".join(filter(None, (known.model, known.serial and f"serial {known.serial}")))
    lines += [f"  {show_size(known.size)}" + (f", {about} (as the disk claims)" if about else "")]
    lines += [f"  enrolled {clock(known.enrolled, now=now)}, {known.generation} visits, {known.standing.value}"]
    lines += [f"  newest whole copy: {ago(member.filled, now=now)}", *([f"  {late}"] if late else [])]
    lines += [
        f"  the next copy: {forecast}",
        f"  read again: {_read_again(rotation, disk, jobs, views, now)}",
        f"  its own word (SMART): {_own_word(views.disks.last_healths().get(known.disk), now)}",
        "  where it was:",
    ]
    for place in views.disks.whereabouts(known.disk, _PLACES):
        lines.append(f"    {clock(place.since, now=now)}  {place.place}" + (f" ({place.note})" if place.note else ""))
    lines += ["  visits:"]
    for each in views.disks.visits(known.disk, _VISITS):
        stayed = show_duration((each.released - each.arrived).total_seconds()) if each.released else "not let go"
        lines += indented([f"{clock(each.arrived, now=now)}  {each.outcome} ({stayed}): {each.why}"], 4)
        lines += indented([each.slow] if each.slow else [], 6)
    return lines
