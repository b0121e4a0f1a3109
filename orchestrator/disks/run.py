"""Execution of this package's commands, each with a time limit: a command that hangs on a lost disk is left behind."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from orchestrator.disks.errors import explain
from orchestrator.domain.answers import understand
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.process.executor import PipelineResult, Reader, StopReason, StopRequest, Writer, pipeline_failure
from orchestrator.process.flow import TICK
from orchestrator.process.terminate import PATIENT

_Read = TypeVar("_Read")
LOOK = Seconds(30)
# A program without progress for so long does not end any more.
STUCK = Seconds(120)
GONE = Seconds(15)  # the same for a disk that the kernel no longer knows
_DONE = (0, 4, 11, 15)  # fields of a device's `stat`: completed reads, writes, discards and flushes


def run_all(writer: Writer, *pipelines: Pipeline) -> None:
    """Run the pipelines one after the other. Raises: OrchestratorError for the first that fails."""
    for pipeline in pipelines:
        result = try_run(writer, pipeline)
        if not result.well:
            raise explain(pipeline_failure(pipeline, result))


def try_run(writer: Writer, pipeline: Pipeline) -> PipelineResult:
    """Run a pipeline that may fail."""
    return writer.stream(pipeline, stall_after=STUCK)


def try_all(writer: Writer, pipelines: Iterable[Pipeline]) -> None:
    """Run all pipelines and ignore their results: for cleanup."""
    for pipeline in pipelines:
        try_run(writer, pipeline)


def run_flush(writer: Writer, pipeline: Pipeline, works: str) -> None:
    """Run a pipeline that ends when all is on the medium, while the disk still works. Raises: OrchestratorError.

    `works`: the kernel's I/O statistics of the disk. Why not by activity of the program: it waits in the kernel, which does the
    writing, and the data in memory for a slow disk may take half an hour.
    """
    before, still, stop = _done(works), 0, StopRequest()
    if before is None:
        return run_all(writer, pipeline)

    def watch() -> None:
        nonlocal before, still
        now = _done(works)
        before, still = now, still + 1 if now == before else 0
        if still * TICK >= (GONE if now is None else STUCK):
            stop.request("the disk does nothing any more")

    result = writer.stream(pipeline, stop=stop, on_tick=watch, manners=PATIENT)
    if result.stopped is not None:
        result = replace(result, stopped=StopReason.STALLED)
    if not result.well:
        raise explain(pipeline_failure(pipeline, result))
    return None


def _done(works: str) -> tuple[str, ...] | None:
    """Return the I/O counters of a device; None when the kernel no longer knows it, or reports nothing."""
    try:
        with open(works, encoding="ascii") as file:
            told = file.read().split()
    except OSError:
        return None
    return tuple(told[at] for at in _DONE if at < len(told))


def read_output(reader: Reader, pipeline: Pipeline) -> bytes:
    """Return the output of a pipeline. Raises: OrchestratorError."""
    result = reader.read(pipeline, timeout=LOOK)
    if not result.well:
        raise explain(pipeline_failure(pipeline, result))
    return result.stdout


def ask(reader: Reader, pipeline: Pipeline, parse: Callable[[bytes], _Read]) -> _Read | None:
    """Return the parsed output of a pipeline; None when it fails. Raises: OrchestratorError."""
    said = read_if_any(reader, pipeline)
    return None if said is None else understood(pipeline, said, parse)


def understood(pipeline: Pipeline, said: bytes, parse: Callable[[bytes], _Read]) -> _Read:
    """Return the answer, parsed by `parse`. Raises: UnreadableAnswer."""
    last = pipeline.stages[-1]
    return understand(last.argv[0], last, said, parse)


def read_if_any(reader: Reader, pipeline: Pipeline) -> bytes | None:
    """Return the output of a pipeline; None when it fails, which means that there is nothing to report.

    Raises: Stalled when it does not end: no answer does not mean that there is nothing.
    """
    result = reader.read(pipeline, timeout=LOOK)
    if result.stopped is not None:
        raise explain(pipeline_failure(pipeline, result))
    return result.stdout if result.well else None
