"""Runs the commands of this room, each with an end: what hangs on a disk that is gone is left behind. Changes things."""

from collections.abc import Iterable

from orchestrator.domain.command import Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.process.executor import Reader, Result, Writer, broken
from orchestrator.targets.failures import explain

LOOK = Seconds(30)
# A check or a flush of a slow disk moves all the time; what has not moved for so long does not end.
STUCK = Seconds(120)


def do(writer: Writer, *pipelines: Pipeline) -> None:
    """Runs them one after the other. Raises: OrchestratorError for the first that fails."""
    for pipeline in pipelines:
        result = attempt(writer, pipeline)
        if not result.well:
            raise explain(broken(pipeline, result))


def attempt(writer: Writer, pipeline: Pipeline) -> Result:
    """Runs one that may fail."""
    return writer.stream(pipeline, stall_after=STUCK)


def attempts(writer: Writer, pipelines: Iterable[Pipeline]) -> None:
    """Runs all of them, whatever becomes of each: for tidying up."""
    for pipeline in pipelines:
        attempt(writer, pipeline)


def look(reader: Reader, pipeline: Pipeline) -> bytes:
    """What it says. Raises: OrchestratorError."""
    result = reader.read(pipeline, timeout=LOOK)
    if not result.well:
        raise explain(broken(pipeline, result))
    return result.stdout


def says(reader: Reader, pipeline: Pipeline) -> bytes | None:
    """What it says; None where it ends badly, which means that there is nothing to tell."""
    result = reader.read(pipeline, timeout=LOOK)
    return result.stdout if result.well else None
