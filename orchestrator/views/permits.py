"""Limits of a fleet's centre, with the runs that hold a permit and those that wait."""

from collections.abc import Sequence
from datetime import datetime

from orchestrator.domain.permit import DeclaredLimit, PermitList, PermitRecord
from orchestrator.domain.units import show_count, show_duration
from orchestrator.views.format import format_iso


def limit_line(limit: DeclaredLimit) -> str:
    """Render one limit."""
    hours = f", between {limit.between} ({limit.zone})" if limit.between else ""
    queue = f"; {limit.waiting} waiting" if limit.waiting else ""
    return f"{limit.name}: {limit.lent} of {show_count(limit.slots, 'slot')} lent{hours}{queue}"


def limit_value(limit: DeclaredLimit) -> dict[str, object]:
    """Return one limit for a program."""
    return {
        "name": limit.name, "slots": limit.slots, "between": limit.between or None, "zone": limit.zone,
        "lent": limit.lent, "waiting": limit.waiting,
    }  # fmt: skip


def permits_lines(found: PermitList, now: datetime) -> Sequence[str]:
    """Render all limits, then the permits."""
    if not found.limits:
        return ["no limit is declared; `poolferry fleet limit link-nas --slots 4` declares one"]
    return [*map(limit_line, found.limits), *(f"  {_permit_line(each, now)}" for each in found.permits)]


def _permit_line(permit: PermitRecord, now: datetime) -> str:
    weight = f" ({permit.weight} slots of each)" if permit.weight > 1 else ""
    word = ("goes on without a permit of" if permit.taken else "holds") if permit.held else "waits for"
    silent = "" if permit.lives else ", silent now"
    return (
        f"{permit.host} {permit.job} {word} {', '.join(permit.limits)}{weight} for {permit_long(permit, now)}{silent}"
    )


def permit_word(permit: PermitRecord) -> str:
    """Return how a permit stands, in a few words."""
    word = ("goes on without" if permit.taken else "held") if permit.held else "waits"
    return word if permit.lives else f"{word}, silent now"


def permit_long(permit: PermitRecord, now: datetime) -> str:
    """Return for how long a permit has been held or waited for."""
    return show_duration(max(0.0, (now - permit.since).total_seconds()))


def permits_value(found: PermitList) -> dict[str, object]:
    """Return all limits and permits for a program."""
    return {
        "limits": [limit_value(each) for each in found.limits],
        "permits": [
            {
                "host": each.host, "job": each.job, "limits": list(each.limits), "weight": each.weight, "held": each.held,
                "taken": each.taken, "lives": each.lives, "since": format_iso(each.since),
            }
            for each in found.permits
        ],
    }  # fmt: skip
