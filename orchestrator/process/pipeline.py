"""Starts a pipeline: looks its programs up, wires them, starts each in a session of its own.

Changes things.
"""

import os
import subprocess

from orchestrator.domain.command import Command, Pipeline
from orchestrator.domain.quick import dataclass
from orchestrator.process.environment import environment, is_missing, leash
from orchestrator.process.result import Result
from orchestrator.process.ssh import ssh_argv
from orchestrator.process.stage import Stage
from orchestrator.process.wires import JOINED, Wires


class NotStarted(Exception):
    """Some stage could not be started, and none runs; `result` says what a shell would have said."""

    def __init__(self, exits: tuple[int | None, ...], last_words: tuple[str, ...]) -> None:
        super().__init__("\n".join(last_words))
        self.result = Result(exits=exits, last_words=last_words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fittings:
    """How to start: the job's ssh options, descriptors that children inherit, who wants the output and the count."""

    ssh_options: tuple[str, ...] = ()
    inherit: tuple[int, ...] = ()
    output: bool = False
    counted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A running pipeline."""

    stages: tuple[Stage, ...]
    wires: Wires


def start(pipeline: Pipeline, fittings: Fittings) -> Started:
    """Starts every stage, or none. Raises: NotStarted.

    Call it from a thread that lives as long as the pipeline: children are told to end when that thread does.
    """
    _look_up(pipeline, fittings)
    stages: list[Stage] = []
    wires = _wires(pipeline, fittings)
    try:
        for command, ends in zip(pipeline.stages, wires.ends, strict=True):
            stages.append(_start_stage(command, ends, fittings))
    except OSError as error:
        status = 127 if isinstance(error, FileNotFoundError) else 126
        words = f"{pipeline.stages[len(stages)].argv[0]}: {error.strerror}"
        raise _not_started(pipeline, len(stages), status, words) from error
    finally:
        wires.let_go()
        if len(stages) < len(pipeline.stages):
            wires.close()
            for stage in stages:
                stage.end_now()
    return Started(stages=tuple(stages), wires=wires)


def _look_up(pipeline: Pipeline, fittings: Fittings) -> None:
    """Refuses half a pipeline. Why: through the leash a missing program would show as a failure of the leash."""
    programs = [ssh_argv(stage, fittings.ssh_options)[0] for stage in pipeline.stages]
    missing = [is_missing(name, environment(at)) for name, at in zip(programs, pipeline.stages, strict=True)]
    if any(missing):
        words = [f"{name}: command not found" if gone else "" for name, gone in zip(programs, missing, strict=True)]
        raise NotStarted(tuple(127 if gone else None for gone in missing), tuple(words))


def _wires(pipeline: Pipeline, fittings: Fittings) -> Wires:
    try:
        return Wires(pipeline, output=fittings.output, counted=fittings.counted)
    except OSError as error:
        # A shell's own status for a file it cannot open.
        at = 0 if error.filename in (pipeline.reads, None) else len(pipeline.stages) - 1
        raise _not_started(pipeline, at, 1, f"{error.filename}: {error.strerror}") from error


def _not_started(pipeline: Pipeline, at: int, status: int, words: str) -> NotStarted:
    places = range(len(pipeline.stages))
    return NotStarted(
        tuple(status if n == at else None for n in places), tuple(words if n == at else "" for n in places)
    )


def _start_stage(command: Command, ends: tuple[int, int], fittings: Fittings) -> Stage:
    source, sink = ends
    errors, errors_sink = os.pipe()
    try:
        process = subprocess.Popen(
            (*leash(), *ssh_argv(command, fittings.ssh_options)),
            stdin=source,
            stdout=errors_sink if sink == JOINED else sink,
            stderr=errors_sink,
            env=environment(command),
            pass_fds=fittings.inherit,
            # A session, not only a group: so no child finds a terminal to ask its questions on.
            start_new_session=True,
        )
    except BaseException:
        os.close(errors)
        raise
    finally:
        os.close(errors_sink)
    try:
        return Stage(command=command, process=process, errors=errors)
    except BaseException:
        process.kill()
        process.wait()
        os.close(errors)
        raise
