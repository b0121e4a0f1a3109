"""Rotation sets as cards: which disk to bring, and each disk with the age of its copies against its limit."""

from collections.abc import Sequence
from datetime import datetime

from orchestrator.domain.age import is_over
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.rotation import AT_MACHINE, IN_TRANSIT, DiskState
from orchestrator.domain.units import Seconds, show_duration, show_size
from orchestrator.views.disks import DiskRow, SetReport
from orchestrator.views.format import format_ago, format_brief
from orchestrator.views.visits import case_warning

_WELL = ("done", "open", "attached")
_PULLED = "pulled-out"
_SHOWN_SAFE_S = 86400.0  # a disk that was let go at night is taken out in the morning, or in the evening


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskCard:
    """One disk. `kind`: "good", "bad" or "calm"; `share`: the age of its copy as a part of its limit; None: no limit or no copy."""

    name: str
    note: str
    content: str
    size: str
    where: str
    copy: str
    share: float | None
    limit: str
    visit: str
    safe: bool
    kind: str
    wanted: bool
    complaints: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCards:
    """A set with its disks.

    `visiting`: the disk whose visit goes on; `pulled`: one that was pulled out in its last; `removable`: one that may be taken out;
    empty: none. `case`: that other devices in its case were in use as it was let go.
    """

    name: str
    jobs: tuple[str, ...]
    request: str
    why: str
    limits: str
    complaints: tuple[str, ...]
    disks: tuple[DiskCard, ...]
    visiting: str
    pulled: str
    removable: str
    case: str


def disk_cards(sets: Sequence[SetReport], now: datetime) -> tuple[SetCards, ...]:
    """Return all sets."""
    return tuple(_set(each, now) for each in sets)


def _set(report: SetReport, now: datetime) -> SetCards:
    rotation, health = report.rotation, report.standing.health
    limits = [
        f"some disk within {show_duration(rotation.fresh_within)}" if rotation.fresh_within else "",
        f"each disk within {show_duration(rotation.each_within)}" if rotation.each_within else "",
    ]
    told = (health.late, health.all_here, *health.sleeping, *report.left)
    here = next((row for row in report.disks if _goes_on(row)), None)
    released = _released(report, now)
    beside = released.last.beside if released and released.last else ""
    return SetCards(
        name=rotation.name, jobs=report.jobs, request=report.standing.request_beside_health, why=report.standing.disk_request.why,
        limits=", ".join(filter(None, limits)), complaints=tuple(each for each in told if each),
        disks=tuple(_disk(report, row, now) for row in report.disks), visiting=here.member.disk.called if here else "",
        pulled=next((row.member.disk.called for row in report.disks if _pulled(row)), ""),
        removable=released.member.disk.called if released else "", case=case_warning(beside) if beside else "",
    )  # fmt: skip


def _goes_on(row: DiskRow) -> bool:
    return row.last is not None and row.last.released is None and row.member.place == "attached"


def _pulled(row: DiskRow) -> bool:
    """Return True for a disk that was pulled out, and was not let go since."""
    return bool(_trouble(row) and row.last and row.last.outcome == _PULLED and not row.last.safe)


def _trouble(row: DiskRow) -> str:
    """Return what is wrong after the last visit of a disk that still takes part; empty: nothing, or it goes on."""
    if row.last is None or row.last.outcome in _WELL or row.member.standing is not DiskState.ACTIVE:
        return ""
    return row.last.why


def _released(report: SetReport, now: datetime) -> DiskRow | None:
    """Return the disk that was let go last and may be taken out, within a day; nobody says when it is taken."""
    released = [
        (row.last.released, number)
        for number, row in enumerate(report.disks)
        if row.last and row.last.safe and row.last.released and row.member.place in (AT_MACHINE, IN_TRANSIT)
    ]
    at, number = max(released, default=(None, 0))
    return report.disks[number] if not is_over(at, Seconds(_SHOWN_SAFE_S), now) else None


def _disk(report: SetReport, row: DiskRow, now: datetime) -> DiskCard:
    member, rotation, health = row.member, report.rotation, report.standing.health
    disk, last, limit = member.disk, row.last, rotation.each_within
    told = (_trouble(row), health.overdue.get(disk.name, ""), health.ailing.get(disk.name, ""))
    complaints = tuple(dict.fromkeys(filter(None, told)))
    age = (now - member.filled).total_seconds() if member.filled else None
    active = member.standing is DiskState.ACTIVE
    requested = report.standing.disk_request.disk
    return DiskCard(
        name=disk.name, note=disk.note, content=disk.content, size=show_size(row.known.size) if row.known else "",
        where=(member.place or "unknown") if active else member.standing.value,
        copy=format_ago(member.filled, now=now) if member.filled else "", limit=show_duration(limit) if limit else "",
        share=max(age, 0) / limit if age is not None and limit and active else None,
        visit=f"{format_brief(last.arrived, now=now)}: {last.outcome}" if last else "never",
        safe=bool(last and last.safe), kind="bad" if complaints else "good" if active and member.filled else "calm",
        wanted=requested is not None and requested.name == disk.name, complaints=complaints,
    )  # fmt: skip
