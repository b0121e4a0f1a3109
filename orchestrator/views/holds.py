"""The pins that keep snapshots on the pools, as lines for people and as JSON."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.names import show_name
from orchestrator.domain.plan import Step
from orchestrator.domain.run import RunReport
from orchestrator.domain.run_values import report_value, step_value
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.contract.holds import Pin, PinReport
from orchestrator.views.format import format_ago, format_iso, format_table, indent

_HEAD = ("KIND", "FOR POOL", "SINCE", "KEEPS", "NEEDED BY", "WHAT", "WHY")


def pins_value(found: PinReport, steps: Sequence[Step], reports: Sequence[RunReport]) -> dict[str, Any]:
    """Render all pins for `pins --json`. `lets_go`: the steps that --let-go runs; `runs`: their results."""
    return {
        "pins": [_pin_value(pin) for pin in found.pins],
        "unseen": [{"place": show_name(str(place)), "why": why} for place, why in found.unseen],
        "lets_go": [step_value(step) for step in steps],
        "runs": [report_value(report) for report in reports],
    }


def _pin_value(pin: Pin) -> dict[str, Any]:
    return {
        "kind": pin.kind,
        "at": show_name(str(pin.at)),
        "pool": pin.target,
        "since": format_iso(pin.since),
        "bytes": pin.bytes,
        "job": pin.job,
        "wanted": pin.job is not None,
        "why": pin.why,
    }


def pins_lines(found: PinReport, steps: Sequence[Step], *, let_go: bool, now: datetime, again: str) -> list[str]:
    """Render the table of pins, unreadable places, and pins to release. `again`: the command that releases them."""
    rows = [_row(pin, now) for pin in found.pins]
    lines = ["  ".join(row).rstrip() for row in format_table(_HEAD, rows, right=frozenset({"KEEPS"}))] if rows else []
    lines += [] if rows else ["nothing of ours is pinned"]
    lines += [f"not looked at: {show_name(str(place))}: {why}" for place, why in found.unseen]
    if steps and not let_go:
        unwanted = sum(pin.job is None for pin in found.pins)
        lines.append(f"{show_count(unwanted, 'pin')} no job needs any more; `{again}` would do this:")
        lines += indent([step.action for step in steps])
    return lines


def _row(pin: Pin, now: datetime) -> tuple[str, ...]:
    keeps = "unknown" if pin.bytes is None else show_size(pin.bytes) if pin.bytes else "nothing"
    at = show_name(str(pin.at))
    return (
        pin.kind,
        pin.target,
        format_ago(pin.since, now=now) if pin.since else "unknown",
        keeps,
        pin.job or "nobody",
        at,
        pin.why,
    )
