"""Execution of this package's commands, each with a time limit: a command that hangs on a lost disk is left behind."""

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from orchestrator.disks.errors import DiskBusy, explain
from orchestrator.domain.answers import understand
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.process.executor import PipelineResult, Reader, StopReason, StopRequest, Writer, pipeline_failure
from orchestrator.process.flow import PATIENT, TICK

_Read = TypeVar("_Read")
LOOK = Seconds(30)
# A program without progress for so long does not end any more.
STUCK = Seconds(120)
GONE = Seconds(15)  # the same for a disk that the kernel no longer knows
# Whoever looked at the disk, such as udev, a file manager, or a process with a copy of all mounts, lets go within seconds.
_BUSY_TRIES, _BUSY_PAUSE = 50, 0.2  # s
_DONE = (0, 4, 11, 15)  # fields of a device's `stat`: completed reads, writes, discards and flushes


def run_all(writer: Writer, *pipelines: Pipeline) -> None:
    """Run the pipelines one after the other. Raises: OrchestratorError for the first that fails."""
    for pipeline in pipelines:
        run_when_free(writer, pipeline)


def run_when_free(writer: Writer, pipeline: Pipeline, *, good: tuple[int, ...] = (0,)) -> None:
    """Run a pipeline; again while it finds the disk busy. `good`: exits of success. Raises: OrchestratorError."""

    def attempt() -> None:
        result = try_run(writer, pipeline)
        if not result.well and (result.stopped is not None or set(result.exits) - set(good)):
            raise explain(pipeline_failure(pipeline, result))

    _when_free(attempt)


def _when_free(attempt: Callable[[], None]) -> None:
    """Repeat an attempt while the disk is busy, up to 10 s. Raises: OrchestratorError, such as DiskBusy."""
    for _ in range(_BUSY_TRIES - 1):
        try:
            return attempt()
        except DiskBusy:
            time.sleep(_BUSY_PAUSE)
    return attempt()


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
    if _done(works) is None:
        return run_when_free(writer, pipeline)
    return _when_free(lambda: _flush(writer, pipeline, works))


def _flush(writer: Writer, pipeline: Pipeline, works: str) -> None:
    before, still, stop = _done(works), 0, StopRequest()

    def watch() -> None:
        nonlocal before, still
        now = _done(works)
        before, still = now, still + 1 if now == before else 0
        if still * TICK >= (GONE if now is None else STUCK):
            stop.request("the disk does nothing any more")

    result = writer.stream(pipeline, stop=stop, stall_after=None, on_tick=watch, manners=PATIENT)
    if result.stopped is not None:
        result = replace(result, stopped=StopReason.STALLED)
    if not result.well:
        raise explain(pipeline_failure(pipeline, result))


def _done(works: str) -> tuple[str, ...] | None:
    """Return the I/O counters of a device; None when the kernel no longer knows it, or reports nothing."""
    try:
        with open(works, encoding="ascii", newline="\n") as file:
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
