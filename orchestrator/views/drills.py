"""Restore tests as lines and as JSON."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.drill import DrillRecord, DrillResult, DrillRunResult
from orchestrator.domain.job import DrillRules
from orchestrator.domain.names import show_name
from orchestrator.domain.run import Outcome
from orchestrator.domain.run_values import report_value
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.planners.drill import estimate_whole
from orchestrator.views.format import format_ago, format_iso, indent

_OUTPUT = 20
_TELLING_OUTCOMES = (Outcome.DONE, Outcome.FAILED, Outcome.REFUSED)


def drill_result_value(drilled: DrillResult) -> dict[str, Any]:
    """Render the evidence of one restore test."""
    checked, whole = drilled.checked, estimate_whole(drilled)
    return {
        "place": drilled.place, "point": drilled.point, "passed": drilled.outcome is Outcome.DONE and not drilled.self_test,
        "whole": drilled.whole, "self_test": drilled.self_test, "seed": drilled.seed, "files": drilled.files,
        "bytes": drilled.bytes, "of_files": drilled.of_files, "of_bytes": drilled.of_bytes,
        "restore_s": None if drilled.restore_s is None else round(drilled.restore_s, 3),
        "whole_restore_s": None if whole is None else round(whole, 1),
        "differences": list(drilled.differences),
        "check": None if checked is None else {
            "argv": [show_name(word) for word in checked.argv], "exit": checked.exit, "output": checked.output,
        },
    }  # fmt: skip


def drill_value(end: DrillRunResult) -> dict[str, Any]:
    """Render a restore test and its run for JSON."""
    return {**report_value(end.report), "drill": drill_result_value(end.drilled)}


def drill_lines(record: DrillRecord) -> list[str]:
    """Render the part of `show` about a run that was a restore test."""
    drilled = record.drilled
    kind = "all of it" if drilled.whole else f"a sample by seed {drilled.seed}"
    lines = [f"  drill at {drilled.place}" + (f" of point {drilled.point}" if drilled.point else "") + f", {kind}"]
    if drilled.restore_s is not None:
        files = (
            f"{drilled.files} of {show_count(drilled.of_files, 'file')}"
            if drilled.of_files is not None
            else show_count(drilled.files, "file")
        )
        size = f"{show_size(drilled.bytes)} of {show_size(drilled.of_bytes)}"
        lines.append(f"  restored {files}, {size}, in {show_duration(drilled.restore_s)}")
        differs = show_count(len(drilled.differences), "difference") if drilled.differences else "no difference"
        lines += [f"  compared with the manifest: {differs}", *indent(drilled.differences, 4)]
    if drilled.checked is not None:
        how = "took too long" if drilled.checked.exit is None else f"exit {drilled.checked.exit}"
        lines.append(f"  check {' '.join(map(show_name, drilled.checked.argv))}: {how}")
        lines += indent(drilled.checked.output.strip().splitlines()[-_OUTPUT:], 4)
    return lines


def newest_drill(records: Sequence[DrillRecord], place: str | None = None) -> DrillRecord | None:
    """Return the newest restore test that judges copies, at any place or at one: a failed one of any place first.

    A test on purposely damaged data does not judge copies, nor does an interrupted one.
    """
    told = [each for each in records if each.drilled.outcome in _TELLING_OUTCOMES and not each.drilled.self_test]
    by_place: dict[str, DrillRecord] = {}
    for each in told:
        if place in (None, each.drilled.place):
            by_place.setdefault(each.drilled.place, each)
    return next((each for each in by_place.values() if each.drilled.outcome is not Outcome.DONE), None) or next(
        iter(by_place.values()), None
    )


def newest_drill_line(rules: DrillRules, records: Sequence[DrillRecord], now: datetime) -> str:
    """Render the last restore test of a job in one line; empty: there was none, and none is requested."""
    last = newest_drill(records)
    if last is None:
        return "last drill: none yet" if rules.requested else ""
    drilled = last.drilled
    well = "restored, and none differs" if drilled.files else "done, and no file could be seen without its key"
    how = well if drilled.outcome is Outcome.DONE else drilled.outcome.value.upper()
    files = "all files" if drilled.whole else show_count(drilled.files, "file")
    return f"last drill: {format_ago(last.at, now=now)}, {f'{files} ' if drilled.files else ''}{how} (run {last.run})"


def last_drill_value(records: Sequence[DrillRecord]) -> dict[str, Any] | None:
    """Render the last restore test for JSON."""
    last = newest_drill(records)
    if last is None:
        return None
    return {
        "run": last.run, "at": format_iso(last.at), "outcome": last.drilled.outcome.value, "why": last.drilled.why,
        **drill_result_value(last.drilled),
    }  # fmt: skip
