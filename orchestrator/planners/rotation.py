"""Rotation decisions: the disk to request, overdue disks, and the health of a set. Any member is accepted.

An absent disk is no failure, the job waits for it; a disk that is absent for too long is late, by name.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from orchestrator.domain.age import is_misdated, is_older, show_age
from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.rotation import (
    WEEKDAYS,
    Disk,
    DiskSnooze,
    DiskState,
    IncrementBase,
    RotationSet,
    describe_place,
)
from orchestrator.domain.units import show_count, show_duration, show_size


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMember:
    """Remembered state of a disk. `filled`: the instant of its copies of all jobs; None: some copies are missing.

    `ails`: what is wrong with the disk itself, by the kind of it ("health", "slow", "look-alike"); None: nothing is known.
    `visited`: when its last visit ended.
    """

    disk: Disk
    filled: datetime | None
    enrolled: datetime | None
    standing: DiskState = DiskState.ACTIVE
    here: bool = False
    place: str = ""
    snooze: DiskSnooze | None = None
    ails: Mapping[str, str] | None = None
    visited: datetime | None = None

    def sleeps(self, now: datetime) -> bool:
        """Return True when a person snoozed the disk until later than `now`."""
        return self.snooze is not None and now < self.snooze.until


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRequest:
    """Request for a disk; `disk` None: none at the moment. `others`: also accepted, in the order of request.

    `visited`: when the last visit of the requested disk ended.
    """

    disk: Disk | None
    others: tuple[Disk, ...]
    why: str
    visited: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetHealth:
    """Health of a set. `late`, `overdue`, `ailing` (by disk name) and `all_here` are sentences; empty: all is well.

    `sleeping`: the same of disks that are snoozed.
    """

    newest: datetime | None
    late: str
    overdue: Mapping[str, str]
    all_here: str
    sleeping: tuple[str, ...] = ()
    ailing: Mapping[str, str] = field(default_factory=dict)


JUST_NOW = timedelta(hours=1)


def choose_disk(rotation: RotationSet, members: Sequence[SetMember], now: datetime) -> DiskRequest:
    """Return the disk to request at `now`, which is in the machine's own time."""
    active = [
        member
        for member in members
        if member.standing is DiskState.ACTIVE and not explain_left_alone(rotation, member, now)
    ]
    active.sort(key=lambda member: (member.filled is not None, member.filled or now))
    awake = [member for member in active if not member.sleeps(now)]
    chosen, why = _chosen(rotation, members, awake or active, now)
    others = tuple(member.disk for member in active if member is not chosen)
    return DiskRequest(
        disk=chosen.disk if chosen else None, others=others, why=why, visited=chosen.visited if chosen else None
    )


def _chosen(
    rotation: RotationSet, members: Sequence[SetMember], ranked: Sequence[SetMember], now: datetime
) -> tuple[SetMember | None, str]:
    if not ranked:
        return None, "no disk of it can take a copy" if members else "it has no disk yet"
    match rotation.expect:
        case "fixed":
            return _next_in_order(rotation, members, ranked), "it is its turn"
        case "weekday":
            return _by_weekday(ranked, now)
        case "month-end":
            return _by_month(members, ranked, now)
    oldest = ranked[0]
    return oldest, "it has no whole copy yet" if oldest.filled is None else "its copy is the oldest"


def _next_in_order(rotation: RotationSet, members: Sequence[SetMember], ranked: Sequence[SetMember]) -> SetMember:
    """Return the disk after the one that was filled last, in a cycle."""
    filled = {member.disk.name: member.filled for member in members if member.filled}
    last = max(filled, key=lambda name: filled[name], default=None)
    at = rotation.order.index(last) + 1 if last in rotation.order else 0
    turn = [*rotation.order[at:], *rotation.order[:at]]
    return min(ranked, key=lambda member: turn.index(member.disk.name))


def _by_weekday(ranked: Sequence[SetMember], now: datetime) -> tuple[SetMember | None, str]:
    for ahead in range(7):
        day = WEEKDAYS[(now.weekday() + ahead) % 7]
        found = next((member for member in ranked if day in member.disk.days), None)
        if found is not None:
            return found, f"its day is {day}" if ahead else f"today, {day}, is its day"
    return None, "no disk that can take a copy has a day"


def _by_month(members: Sequence[SetMember], ranked: Sequence[SetMember], now: datetime) -> tuple[SetMember | None, str]:
    """Return the disk for the newest month end, until one disk was written since then."""
    begun = month_end(now)
    taken = next((member for member in members if member.filled and member.filled >= begun), None)
    if taken is not None:
        return None, f"disk {taken.disk.name} holds the end of {begun:%B %Y}"
    return ranked[0], f"the end of {begun:%B %Y} is not on a disk yet"


def month_end(now: datetime) -> datetime:
    """Return the start of the newest last day of a month that has begun."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if (midnight + timedelta(days=1)).day == 1:
        return midnight
    return midnight.replace(day=1) - timedelta(days=1)


def explain_left_alone(rotation: RotationSet, member: SetMember, now: datetime) -> str:
    """Return why a disk takes no copy now; empty when it takes one. A copy written for a month's end is kept."""
    if rotation.expect != "month-end" or member.filled is None or rotation.keep_for is None:
        return ""
    until = member.filled + timedelta(seconds=rotation.keep_for)
    if now >= until or member.filled >= month_end(now):
        return ""
    return f"disk {member.disk.name} is kept as it is until {until.astimezone(now.tzinfo):%Y-%m-%d}"


def judge_set(rotation: RotationSet, members: Sequence[SetMember], now: datetime) -> SetHealth:
    """Judge the health of a set at `now`. Lost and retired disks are ignored."""
    active = [member for member in members if member.standing is DiskState.ACTIVE]
    filled = [member.filled for member in active if member.filled]
    newest = max((each for each in filled if not is_misdated(each, now)), default=max(filled, default=None))
    overdue = {member.disk.name: told for member in active if (told := _overdue(rotation, member, now))}
    return SetHealth(
        newest=newest, late=_late(rotation, active, newest, now), overdue=overdue, all_here=_all_here(rotation, active),
        sleeping=tuple(
            _sleeping(member.disk.name, member.snooze, now) for member in active if member.snooze and member.sleeps(now)
        ),
        ailing={member.disk.name: "; ".join(member.ails.values()) for member in active if member.ails},
    )  # fmt: skip


def _late(rotation: RotationSet, active: Sequence[SetMember], newest: datetime | None, now: datetime) -> str:
    limit = rotation.fresh_within
    if limit is None:
        return ""
    since = newest or min((member.enrolled for member in active if member.enrolled), default=now)
    if not is_older(since, limit, now):
        return ""
    told = _old(since, now) if newest else f"is missing for {show_duration((now - since).total_seconds())}"
    return f"the newest whole copy on the set {rotation.name} {told} (limit {show_duration(limit)})"


def _overdue(rotation: RotationSet, member: SetMember, now: datetime) -> str:
    limit, since = rotation.each_within, member.filled or member.enrolled
    if limit is None or since is None or member.sleeps(now) or not is_older(since, limit, now):
        return ""
    told = (
        f"the newest whole copy on disk {member.disk.name} {_old(since, now)}"
        if is_misdated(since, now)
        else f"no whole copy on disk {member.disk.name} for {show_duration((now - since).total_seconds())}"
    )
    told += f" (limit {show_duration(limit)})"
    where = f"; {describe_place(member.place)}" if member.place and not member.here else ""
    return told + where


def _old(at: datetime, now: datetime) -> str:
    """Return the end of a sentence on the age of a copy."""
    if is_misdated(at, now):
        return f"is {show_age(at, now)}: a clock was wrong, and its age is unknown"
    return f"is {show_duration((now - at).total_seconds())} old"


def _sleeping(disk: str, snooze: DiskSnooze, now: datetime) -> str:
    note = f": {snooze.note}" if snooze.note else ""
    return f"disk {disk} is not expected until {snooze.until.astimezone(now.tzinfo):%Y-%m-%d %H:%M}{note}"


def _all_here(rotation: RotationSet, active: Sequence[SetMember]) -> str:
    here = [member.disk.name for member in active if member.here]
    away = len(active) - len(here)
    if not here or away >= rotation.away_at_least:
        return ""
    if len(active) <= rotation.away_at_least:
        count = show_count(len(active), "disk")
        return f"the set {rotation.name} has {count}, and {rotation.away_at_least} at least should be away: enroll another one"
    told = "all members of" if not away else f"{show_count(len(here), 'member')} of"
    least = show_count(rotation.away_at_least, "disk")
    return f"{told} the set {rotation.name} are here ({', '.join(here)}): {least} at least should be away"


def describe_request(
    rotation: RotationSet,
    disk_request: DiskRequest,
    health: SetHealth,
    now: datetime,
    here: Collection[str] = (),
    *,
    waits: bool = False,
    age: bool = True,
) -> str:
    """Return the sentence that asks a person for a disk, with the reason. `here`: names of plugged-in disks.

    `waits`: a run waits for a disk, so one is needed, however short ago the last visit was. `age`: with that of the newest copy.
    """
    if disk_request.disk is None:
        return f"The set {rotation.name} requests no disk: {disk_request.why}."
    others = [disk.name for disk in disk_request.others]
    also = f" {_or(others)} {'is' if len(others) == 1 else 'are'} also accepted." if others else ""
    please = "Please plug in disk" if disk_request.disk.name not in here else "Requested, and plugged in, is disk"
    if not waits and disk_request.visited is not None and timedelta(0) <= now - disk_request.visited < JUST_NOW:
        ago = show_duration((now - disk_request.visited).total_seconds())
        please = f"No disk is needed now: the last visit ended {ago} ago. The next one is disk"
    newest = f" {_describe_newest(rotation, health, now)}" if age else ""
    return f"{please} {disk_request.disk.called}: {disk_request.why}.{also}{newest}"


def _describe_newest(rotation: RotationSet, health: SetHealth, now: datetime) -> str:
    age = f"{show_duration((now - health.newest).total_seconds())} old" if health.newest else "never made"
    limit = f" (limit {show_duration(rotation.fresh_within)})" if rotation.fresh_within else ""
    return f"Newest whole copy on this set: {age}{limit}."


def describe_arrival(disk: Disk, disk_request: DiskRequest) -> str:
    """Return the message for a disk that begins its visit, expected or not."""
    if disk_request.disk is None or disk_request.disk.name == disk.name:
        return f"disk {disk.called} is plugged in"
    return f"disk {disk.called} is plugged in, expected was {disk_request.disk.name}; going on with {disk.name}"


def _or(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def describe_forecast(disk: Disk, bases: Sequence[IncrementBase], *, new: bool = False) -> str:
    """Forecast the next copy to a disk before it is plugged in. `new`: a file job has no copy on the disk yet."""
    if disk.content != "zfs":
        return "a full copy: there is none yet" if new else "files that changed"
    if not bases:
        return "a full copy: there is none yet"
    gone = [base for base in bases if not (base.snapshot or base.bookmark)]
    if gone:
        sizes = [base.whole for base in gone]
        size = show_size(sum(size for size in sizes if size is not None)) if None not in sizes else "unknown size"
        return f"needs a re-seed of {size} ({', '.join(base.dataset for base in gone)}): it must be approved"
    if all(base.bookmark for base in bases):
        return "incremental"
    until = min((base.kept for base in bases if base.kept and not base.bookmark), default=None)
    return f"incremental until {until:%Y-%m-%d}" if until else "incremental"
