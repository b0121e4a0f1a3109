"""Points of which parts are missing at a target: they are no verified copies, and history knows what they lack."""

import json
from collections.abc import Mapping
from typing import Any

from orchestrator.domain.answers import parse_json
from orchestrator.engines.contract.copies import CompletenessReporter
from orchestrator.engines.contract.engine import implements
from orchestrator.process.executor import Writer
from orchestrator.runner.run_recorder import RunRecorder

_MISSING = "missing on "  # before the names of a place and a point: a small fact of a job


def note_incomplete_points(journal: RunRecorder, writer: Writer, world: Any, *, doubtful: bool) -> None:
    """Record which points at the target lack datasets. Raises: OrchestratorError.

    `doubtful`: some datasets were refused or failed; else only points that lacked some before are looked at again.
    """
    job, tools = journal.job, journal.tools
    if not implements(tools.engine, CompletenessReporter) or job.target.location.path.startswith("/"):
        return
    memory, place = tools.history.memory(job.name), job.target.name
    if not doubtful and not any(key.startswith(f"{_MISSING}{place} ") and told != "[]" for key, told in memory.items()):
        return
    for point, lacking in tools.engine.incomplete_points(job, world, writer).items():
        before = missing_parts(memory, place, point)
        if lacking:
            tools.history.point_incomplete(job.name, place, point)
        elif before:
            tools.history.point_verified(job.name, place, point, journal.run, journal.now)
        if lacking != before:
            tools.history.remember(job.name, f"{_MISSING}{place} {point}", json.dumps(lacking))


def missing_parts(memory: Mapping[str, str], place: str, point: str) -> tuple[str, ...]:
    """Return the datasets that a point at a place lacks, as a job's small facts say; none: it is whole, or nothing is known."""
    try:
        found = parse_json(memory.get(f"{_MISSING}{place} {point}", "[]"))
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()
