"""What a pipeline left behind, and the exceptions of this room. Pure."""

from enum import StrEnum

from orchestrator.domain.command import Pipeline
from orchestrator.domain.errors import Evidence, OrchestratorError, Retry
from orchestrator.domain.quick import dataclass
from orchestrator.process.blame import culprit
from orchestrator.process.line import command_line


class StopReason(StrEnum):
    """Why we ended a pipeline ourselves."""

    STOPPED = "stopped"  # somebody asked
    STALLED = "stalled"  # nothing moved for too long
    TIMED_OUT = "timed out"  # a reading took longer than it may
    FLOODED = "too much output"  # a reading said more than we hold in memory
    LET_GO = "let go"  # nobody reads on: the caller left early, or its callback raised


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The end of a pipeline. `exits`: per stage, negative for signals, None where unknown; nothing when `stopped`.

    `moved`: bytes that went on from the counted stage, else what was added to `keeps`, else None (unknown).
    """

    exits: tuple[int | None, ...]
    stdout: bytes = b""
    last_words: tuple[str, ...] = ()
    took_s: float = 0.0
    moved: int | None = None
    stopped: StopReason | None = None

    @property
    def culprit(self) -> int | None:
        """The stage to blame; None when all is well, and after our own kill."""
        return None if self.stopped else culprit(self.exits)

    @property
    def well(self) -> bool:
        """True when every stage ended well by itself: only then the output is the whole output."""
        return self.stopped is None and culprit(self.exits) is None


class Forbidden(OrchestratorError):
    """A key was tried on a lock it does not fit: a mistake in our own code, like a TypeError."""

    retry = Retry.NEVER


class Broken(Exception):
    """A pipeline failed and nobody has explained it yet: engines turn its evidence into an OutsideError."""

    def __init__(self, pipeline: Pipeline, result: Result, evidence: Evidence) -> None:
        stage = result.culprit
        said = result.last_words[stage] if stage is not None and stage < len(result.last_words) else ""
        how = result.stopped or f"exit {result.exits[stage] if stage is not None else result.exits}"
        super().__init__(f"{pipeline}: {how}" + (f": {said}" if said else ""))
        self.pipeline = pipeline
        self.result = result
        self.evidence = evidence


def broken(pipeline: Pipeline, result: Result, ssh_options: tuple[str, ...] = ()) -> Broken:
    """The exception for a failed pipeline, with its evidence; `host` is the culprit's, or the first one involved."""
    hosts = [stage.host for stage in pipeline.stages]
    blamed = hosts[result.culprit] if result.culprit is not None else next((host for host in hosts if host), None)
    evidence = Evidence(
        lines=tuple(command_line(stage, ssh_options) for stage in pipeline.stages),
        exits=result.exits,
        last_words=result.last_words,
        host=str(blamed) if blamed else None,
    )
    return Broken(pipeline, result, evidence)
