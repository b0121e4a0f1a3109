"""The two executors: a Reader only reads, a Writer may change things. Only they run pipelines."""

import contextlib
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Self

from orchestrator.domain.command_line import pipeline_line
from orchestrator.domain.events import no_log
from orchestrator.domain.plan import Effect, Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.process.flow import GENTLE, QUICK, Flow, FlowLimits, TerminationPolicy
from orchestrator.process.pipeline import (
    Forbidden,
    PipelineFailed,
    PipelineNotStarted,
    PipelineResult,
    StartOptions,
    StopReason,
    pipeline_failure,
    start_pipeline,
)
from orchestrator.process.stop import StopRequest

__all__ = [
    "Forbidden",
    "PipelineFailed",
    "PipelineResult",
    "Reader",
    "Records",
    "StopReason",
    "StopRequest",
    "Writer",
    "pipeline_failure",
]

# What no program may exceed, whatever it answers: bytes of an answer, of one record, of all records together, and of a file that
# collects output; and seconds of an answer, of silence between records, and of all records together.
LIMIT = 64 << 20
LONGEST_RECORD = 4 << 20
MOST_RECORDS = 32 << 30
MOST_KEPT = 32 << 30
LONGEST_LOOK = Seconds(3600)
LONGEST_SILENCE = Seconds(6 * 3600)
LONGEST_LISTING = Seconds(48 * 3600)


class Reader:
    """Executor of pipelines that only read.

    `log` receives the exact line of each before it runs; `inherit`: descriptors all children hold (the lock file: a stray
    child keeps the lock); `stop` ends readings too. Children end with the calling thread: call from one that stays. `apart`: nothing is
    looked at by this process itself, which must go on where a disk hangs.
    """

    def __init__(
        self,
        *,
        log: Callable[[str], None] = no_log,
        ssh_options: tuple[str, ...] = (),
        inherit: tuple[int, ...] = (),
        stop: StopRequest | None = None,
        apart: bool = False,
    ) -> None:
        self.ssh_options = ssh_options
        self.apart = apart
        self._log = log
        self._inherit = inherit
        self._stop = stop
        self._meanwhile: Callable[[], object] | None = None

    def beside(self) -> tuple[Self, StopRequest]:
        """Return the same executor for programs that a request of their own ends, too, and that request."""
        from copy import copy  # a run within one machine that has nothing to copy needs none

        other, stop = copy(self), StopRequest(above=self._stop)
        other._stop = stop
        return other, stop

    def meanwhile(self, work: Callable[[], object]) -> None:
        """Have this called once, as soon as a program has started and is waited for; never where none starts. It raises nothing."""
        self._meanwhile = work

    def read(self, pipeline: Pipeline, *, limit: int = LIMIT, timeout: Seconds = LONGEST_LOOK) -> PipelineResult:
        """Run a pipeline and return its whole output. Exit statuses raise nothing: check `well` before `stdout`.

        Refuses: a pipeline that does more than read (Forbidden). More output than `limit`, or a longer wait than `timeout`,
        ends it, and `stopped` shows this.
        """
        only_reads(pipeline)
        kept = bytearray()
        try:
            flow = self._flow(pipeline, FlowLimits(manners=QUICK, stop=self._stop, timeout=timeout), output=True)
        except PipelineNotStarted as failure:
            return failure.result
        with contextlib.closing(flow.chunks()) as chunks:
            for chunk in chunks:
                if len(kept) + len(chunk) > limit:
                    flow.end(StopReason.FLOODED)
                kept += chunk[: limit - len(kept)]
        return flow.result(bytes(kept))

    def records(self, pipeline: Pipeline, *, separator: bytes = b"\0") -> "Records":
        """Return an iterator of output records in constant memory; use it in a `with`, or read it to the end.

        Raises: PipelineFailed at the end when any stage failed, so an empty answer is never a failure; also for a program that is
        silent, or prints, without an end. Refuses: a pipeline that does more than read (Forbidden).
        """
        only_reads(pipeline)
        return Records(self._records(pipeline, separator))

    def pieces(self, pipeline: Pipeline) -> "Records":
        """Start a pipeline, and return an iterator of its output as it comes, cut anywhere; else as `records`, but use it in a `with`."""
        only_reads(pipeline)
        pieces = self._pieces(pipeline, b"\0")
        next(pieces)
        return Records(pieces)

    def _records(self, pipeline: Pipeline, separator: bytes) -> Generator[bytes, None, None]:
        rest = b""
        with contextlib.closing(self._pieces(pipeline, separator)) as pieces:
            for piece in pieces:
                *whole, rest = (rest + piece).split(separator)
                yield from whole
        if rest:
            yield rest

    def _pieces(self, pipeline: Pipeline, separator: bytes) -> Generator[bytes, None, None]:
        limits = FlowLimits(manners=QUICK, stop=self._stop, stall_after=LONGEST_SILENCE, timeout=LONGEST_LISTING)
        try:
            flow = self._flow(pipeline, limits, output=True)
        except PipelineNotStarted as failure:
            raise pipeline_failure(pipeline, failure.result, self.ssh_options) from failure
        yield b""  # all has started
        rest, seen = 0, 0  # bytes of a record that has not ended, and of all
        with contextlib.closing(flow.chunks()) as chunks:
            for chunk in chunks:
                seen, end = seen + len(chunk), chunk.rfind(separator)
                rest = rest + len(chunk) if end < 0 else len(chunk) - end - len(separator)
                yield chunk
                if rest > LONGEST_RECORD or seen > MOST_RECORDS:
                    flow.end(StopReason.FLOODED)
                    break  # what follows begins amid a record
        if not (result := flow.result()).well:
            raise pipeline_failure(pipeline, result, self.ssh_options)

    def _flow(self, pipeline: Pipeline, limits: FlowLimits, *, output: bool) -> Flow:
        if self._log is not no_log:
            self._log(pipeline_line(pipeline, self.ssh_options))
        counted = limits.on_bytes is not None and len(pipeline.stages) > 1
        fittings = StartOptions(ssh_options=self.ssh_options, inherit=self._inherit, output=output, counted=counted)
        flow = Flow(start_pipeline(pipeline, fittings), limits)
        work, self._meanwhile = self._meanwhile, None
        if work is not None:
            work()
        return flow


class Records:
    """An iterator of records. Leaving the `with` early ends the pipeline without a check of its exit statuses."""

    def __init__(self, records: Generator[bytes, None, None]) -> None:
        self._records = records

    def __iter__(self) -> Generator[bytes, None, None]:
        return self._records

    def __next__(self) -> bytes:
        return next(self._records)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._records.close()


class Writer(Reader):
    """Executor of pipelines that may change things. Several streams may run in parallel, each in its own thread."""

    def stream(
        self,
        pipeline: Pipeline,
        *,
        stop: StopRequest | None = None,
        stall_after: Seconds | None = LONGEST_SILENCE,
        timeout: Seconds | None = None,
        on_output: Callable[[bytes], None] | None = None,
        on_tick: Callable[[], None] | None = None,
        on_bytes: Callable[[int], None] | None = None,
        on_errors: Callable[[bytes], None] | None = None,
        on_start: Callable[[tuple[int, ...]], None] | None = None,
        manners: TerminationPolicy = GENTLE,
        most_kept: int = MOST_KEPT,
    ) -> PipelineResult:
        """Run a pipeline to its end and return its result; exit statuses raise nothing.

        `on_output` receives the last stage's output in chunks of up to 256 KiB, cut anywhere; `pipeline.keeps` names a file to
        which it is appended; with neither it joins the stage's error output. With both the program writes into the file itself,
        and every half second `on_output` receives the new data. Every half second `on_tick` is called, and `on_bytes` with all
        bytes that have passed the stage that `pipeline.counts` names; they are counted only with this callback. `on_errors`
        receives all stderr output of the stages, of which the result keeps only the end. An exception in a callback ends the
        pipeline and is raised here. `on_start` receives the stages' processes; `manners`: how to end it by force; `most_kept`:
        bytes added to the file after which it is ended, and `stopped` shows this; `timeout`: the same, after so many seconds.

        Why the output does not pass through this process: a program that reports each of 100,000 files would wake it as often,
        for 0.8 s of work.
        """
        stop = stop or self._stop
        if stop is not None and stop.reason is not None:
            return PipelineResult(
                exits=(None,) * len(pipeline.stages),
                last_output=("",) * len(pipeline.stages),
                stopped=StopReason.STOPPED,
            )
        kept = pipeline.keeps is not None
        limits = FlowLimits(
            manners=manners, stop=stop, stall_after=stall_after, timeout=timeout, on_tick=on_tick, on_bytes=on_bytes, on_errors=on_errors,
            on_kept=on_output if kept else None, most_kept=most_kept if kept else None,
        )  # fmt: skip
        try:
            flow = self._flow(pipeline, limits, output=on_output is not None and not kept)
        except PipelineNotStarted as failure:
            return failure.result
        with contextlib.closing(flow.chunks()) as chunks:
            if on_start is not None:
                on_start(flow.processes)
            for chunk in chunks:
                if on_output is not None:
                    on_output(chunk)
        return flow.result()


def only_reads(pipeline: Pipeline) -> None:
    """Refuse (Forbidden) a pipeline that a Reader may not run."""
    if pipeline.effect is not Effect.READS or pipeline.keeps is not None:
        raise Forbidden(f"a Reader was asked to change things: {pipeline}", hint="this is a mistake in poolferry")
