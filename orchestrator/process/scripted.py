"""An executor that answers from a script and starts nothing: for tests of surveys and decisions."""

from collections.abc import Callable, Generator, Mapping, Sequence

from orchestrator.domain.plan import Pipeline
from orchestrator.domain.units import Seconds
from orchestrator.process.executor import LIMIT, LONGEST_LOOK, LONGEST_SILENCE, MOST_KEPT, Writer, only_reads
from orchestrator.process.flow import GENTLE, TerminationPolicy
from orchestrator.process.pipeline import PipelineResult, StopReason, pipeline_failure
from orchestrator.process.stop import StopRequest

Question = str | Callable[[Pipeline], bool]


def scripted_result(stdout: bytes = b"", *, exits: tuple[int | None, ...] = (0,), words: str = "") -> PipelineResult:
    """Build a result; `words` is the error output of the last stage."""
    return PipelineResult(exits=exits, stdout=stdout, last_output=("",) * (len(exits) - 1) + (words,))


class ScriptedExecutor(Writer):
    """Executor that answers each pipeline by its line, `str(pipeline)`, or by the first predicate that matches.

    `requested` holds all pipelines so far, in order. Raises: KeyError for a pipeline that the script does not know.
    """

    def __init__(self, script: Mapping[str, PipelineResult] | Sequence[tuple[Question, PipelineResult]]) -> None:
        super().__init__()
        self.requested: list[Pipeline] = []
        self._script: list[tuple[Question, PipelineResult]] = list(
            script.items() if isinstance(script, Mapping) else script
        )

    def read(self, pipeline: Pipeline, *, limit: int = LIMIT, timeout: Seconds = LONGEST_LOOK) -> PipelineResult:
        del limit, timeout
        only_reads(pipeline)
        return self._answer(pipeline)

    def _pieces(self, pipeline: Pipeline, separator: bytes) -> Generator[bytes, None, None]:
        del separator
        result = self._answer(pipeline)
        yield b""
        yield result.stdout
        if not result.well:
            raise pipeline_failure(pipeline, result)

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
        del stall_after, timeout, on_start, manners, most_kept
        if stop is not None and stop.reason is not None:
            return PipelineResult(exits=(None,) * len(pipeline.stages), stopped=StopReason.STOPPED)
        result = self._answer(pipeline)
        if on_output is not None and result.stdout:
            on_output(result.stdout)
        if on_errors is not None:
            on_errors("\n".join(result.last_output).encode())
        if on_bytes is not None and result.moved is not None:
            on_bytes(result.moved)
        if on_tick is not None:
            on_tick()
        return result

    def _answer(self, pipeline: Pipeline) -> PipelineResult:
        self.requested.append(pipeline)
        for question, result in self._script:
            if question(pipeline) if callable(question) else question == str(pipeline):
                return result
        raise KeyError(f"the script has no answer to: {pipeline}")
