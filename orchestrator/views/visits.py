"""States of rotation sets, and visits of removable disks, as lines and as JSON."""

from collections.abc import Sequence
from typing import Any

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.rotation import Disk, RotationSet
from orchestrator.domain.run import Outcome
from orchestrator.domain.run_values import report_value
from orchestrator.planners.identify_disk import NOT_NOW, DeviceState, IdentifiedDevice, VisitOutcome, VisitResult
from orchestrator.planners.rotation import DiskRequest, SetHealth
from orchestrator.views.format import format_iso


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStatus:
    """The state of a set: the requested disk, the late disks, and the request as text.

    `short_request`: the same without the age of the newest copy, for beside `health.late`, which says it.
    """

    rotation: RotationSet
    disk_request: DiskRequest
    health: SetHealth
    request: str
    short_request: str

    @property
    def request_beside_health(self) -> str:
        """Return the request as text that stands beside what is wrong with the set."""
        return self.short_request if self.health.late else self.request


def visit_lines(ended: VisitResult, following: SetStatus) -> list[str]:
    """Render the end of a visit for people: above all whether the disk may be pulled out."""
    name, hint = ended.disk.called, [f"  what to do: {ended.hint}"] if ended.hint else []
    if ended.health:
        hint.append(f"  its own word: {ended.health}")
    if ended.beside:
        hint.append(f"  {case_warning(ended.beside)}")
    match ended.ending:
        case VisitOutcome.DONE:
            what = "read" if ended.only_read else "copied and verified"
            did = f"{ended.why}: {what}" if ended.reports or not ended.only_read else "nothing was read"
            did = did if ended.reports or ended.only_read else ended.why
            return [f"SAFE TO REMOVE: {name}. {did}.{_next(ended.disk, following)}", *hint]
        case VisitOutcome.INCOMPLETE:
            refused = any(report.outcome is Outcome.REFUSED for report in ended.reports)
            later = "" if refused or ended.only_read else "; it continues next time"
            return [f"Not finished, but SAFE TO REMOVE: {name}. {ended.why}{later}.", *hint]
        case VisitOutcome.REFUSED:
            return [f"{ended.why}", *hint]
    return [f"{'NOT SAFE TO REMOVE' if ended.ending is VisitOutcome.BUSY else 'Attention'}: {ended.why}", *hint]


def case_warning(beside: str) -> str:
    """Render the message for a disk whose case holds another device in use."""
    return f"take out this disk alone: in the same case {beside}, so leave the case plugged in and switched on"


def _next(disk: Disk, following: SetStatus) -> str:
    requested = following.disk_request.disk
    return f" Bring next: {requested.called}." if requested and requested.name != disk.name else ""


def visit_value(ended: VisitResult) -> dict[str, Any]:
    """Render a visit for JSON."""
    return {
        "disk": ended.disk.name, "set": ended.disk.set, "ending": ended.ending.value, "state": ended.seen.value,
        "why": ended.why, "hint": ended.hint, "safe": ended.safe, "beside": ended.beside, "health": ended.health,
        "runs": [report_value(each) for each in ended.reports], "read": [report_value(each) for each in ended.readings],
    }  # fmt: skip


def scan_value(visits: Sequence[VisitResult], others: Sequence[IdentifiedDevice]) -> dict[str, Any]:
    """Render a scan for JSON."""
    return {"visits": [visit_value(each) for each in visits], "others": [device_value(each) for each in others]}


def visit_outcome(ended: VisitResult) -> Outcome:
    """Return the outcome of a visit, as for runs: it waits where another visit goes on."""
    if ended.seen in NOT_NOW:
        return Outcome.WAITING
    return {VisitOutcome.DONE: Outcome.DONE, VisitOutcome.REFUSED: Outcome.REFUSED}.get(ended.ending, Outcome.FAILED)


def scan_outcomes(visits: Sequence[VisitResult], others: Sequence[IdentifiedDevice]) -> list[Outcome]:
    """Return the outcomes of a scan; a disk that is there twice is refused."""
    twins = any(each.state is DeviceState.CLONE for each in others)
    return [*map(visit_outcome, visits), *([Outcome.REFUSED] * twins)]


def device_value(found: IdentifiedDevice) -> dict[str, Any]:
    """Render a device for JSON."""
    return {
        "device": found.device.path, "state": found.state.value, "disk": found.disk.name if found.disk else None,
        "serial": found.device.serial, "model": found.device.model, "size": found.device.size, "why": found.says,
        "hint": found.hint,
    }  # fmt: skip


def set_status_value(stands: SetStatus) -> dict[str, Any]:
    """Render the state of a set for JSON."""
    requested, health = stands.disk_request, stands.health
    return {
        "set": stands.rotation.name, "expected": requested.disk.name if requested.disk else None, "why": requested.why,
        "accepted": [disk.name for disk in requested.others], "newest": format_iso(health.newest), "late": health.late,
        "overdue": dict(health.overdue), "ailing": dict(health.ailing), "all_here": health.all_here,
        "request": stands.request,
    }  # fmt: skip
