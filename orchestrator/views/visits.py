"""Rotation sets as they stand, and visits of removable disks, as lines and as JSON."""

from collections.abc import Sequence
from typing import Any

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.rotation import Disk, RotationSet
from orchestrator.domain.run import Outcome
from orchestrator.domain.run_values import report_value
from orchestrator.planners.identify_disk import Ending, Recognised, State, Visited
from orchestrator.planners.rotation import Ask, SetHealth
from orchestrator.views.format import iso


@dataclass(frozen=True, slots=True, kw_only=True)
class SetStanding:
    """The state of a set: the requested disk, the late disks, and the request in words."""

    rotation: RotationSet
    asked: Ask
    health: SetHealth
    request: str


def visited_lines(ended: Visited, following: SetStanding) -> list[str]:
    """Render how a visit ended, for people: above all whether the disk may be pulled out."""
    name, cure = ended.disk.called, [f"  what to do: {ended.cure}"] if ended.cure else []
    if ended.health:
        cure.append(f"  its own word: {ended.health}")
    if ended.beside:
        cure.append(f"  {leave_the_case(ended.beside)}")
    match ended.ending:
        case Ending.DONE:
            return [f"SAFE TO REMOVE: {name}. {ended.why}: copied and proved.{_next(ended.disk, following)}", *cure]
        case Ending.INCOMPLETE:
            return [f"Not finished, but SAFE TO REMOVE: {name}. {ended.why}; it goes on next time.", *cure]
        case Ending.REFUSED:
            return [f"{ended.why}", *cure]
    return [f"{'NOT SAFE TO REMOVE' if ended.ending is Ending.BUSY else 'Attention'}: {ended.why}", *cure]


def leave_the_case(beside: str) -> str:
    """Render the message for a disk whose case holds another device in use."""
    return f"take out this disk alone: in the same case {beside}, so leave the case plugged in and switched on"


def _next(disk: Disk, following: SetStanding) -> str:
    asked = following.asked.disk
    return f" Bring next: {asked.called}." if asked and asked.name != disk.name else ""


def visited_value(ended: Visited) -> dict[str, Any]:
    """Render a visit for JSON."""
    return {
        "disk": ended.disk.name, "set": ended.disk.set, "ending": ended.ending.value, "state": ended.seen.value,
        "why": ended.why, "cure": ended.cure, "safe": ended.safe, "beside": ended.beside, "health": ended.health,
        "runs": [report_value(each) for each in ended.reports], "read": [report_value(each) for each in ended.readings],
    }  # fmt: skip


def scan_value(visits: Sequence[Visited], others: Sequence[Recognised]) -> dict[str, Any]:
    """A scan for JSON."""
    return {"visits": [visited_value(each) for each in visits], "others": [recognised_value(each) for each in others]}


def visit_outcome(ended: Visited) -> Outcome:
    """Return how a visit ended, as runs end: it waits where another visit goes on."""
    if ended.seen is State.VISITED:
        return Outcome.WAITING
    return {Ending.DONE: Outcome.DONE, Ending.REFUSED: Outcome.REFUSED}.get(ended.ending, Outcome.FAILED)


def recognised_value(found: Recognised) -> dict[str, Any]:
    """Render a device for JSON."""
    return {
        "device": found.device.path, "state": found.state.value, "disk": found.disk.name if found.disk else None,
        "serial": found.device.serial, "model": found.device.model, "size": found.device.size, "why": found.says,
        "cure": found.cure,
    }  # fmt: skip


def standing_value(stands: SetStanding) -> dict[str, Any]:
    """Render the state of a set for JSON."""
    asked, health = stands.asked, stands.health
    return {
        "set": stands.rotation.name, "expected": asked.disk.name if asked.disk else None, "why": asked.why,
        "accepted": [disk.name for disk in asked.others], "newest": iso(health.newest), "late": health.late,
        "overdue": dict(health.overdue), "ailing": dict(health.ailing), "all_here": health.all_here,
        "request": stands.request,
    }  # fmt: skip
