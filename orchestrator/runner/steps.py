"""Carries out the steps of a plan: the only holder of a Writer. Changes things."""

import errno
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from orchestrator.domain.command import Pipeline
from orchestrator.domain.errors import Evidence, OrchestratorError, OutsideError, PermissionDenied, TargetFull
from orchestrator.domain.events import Moved
from orchestrator.domain.names import show_name
from orchestrator.domain.plan import Recording, Rereading, Step
from orchestrator.domain.units import Seconds
from orchestrator.engines.contract import LeftOut, Meter, Recorded
from orchestrator.process.executor import Result, Writer, broken
from orchestrator.runner.journal import Journal
from orchestrator.runner.manifests import record
from orchestrator.runner.reading import read_again, require_sound
from orchestrator.runner.telling import step_commands

_QUIET = 3600.0
_NAMED = 20  # warnings name so many entries; the manifest and history's output name all


@dataclass(slots=True)
class Hands:
    """Does one plan. `left_out` and `meters` gather over its steps, for the manifest and the proofs."""

    journal: Journal
    writer: Writer
    notes: str
    left_out: list[LeftOut] = field(default_factory=list)
    meters: list[Meter] = field(default_factory=list)
    recorded: Recorded | None = None

    def do(self, stage: Sequence[Step]) -> None:
        """The steps of one stage, side by side when there are several.

        Raises: OrchestratorError at the first failure, after all lanes have ended.
        """
        rows = [self.journal.step_begun(step) for step in stage]
        for step in stage:
            for path, content in step.needs:
                _write(path, content)
        if len(stage) == 1:
            done = [self._one(stage[0], _Progress(self.journal, stage))]
        else:
            progress = _Progress(self.journal, stage)
            with ThreadPoolExecutor(len(stage)) as pool:  # each thread lives as long as its child, which dies with it
                done = list(pool.map(lambda step: self._one(step, progress), stage))
        for step, row, end in zip(stage, rows, done, strict=True):
            self._book(step, row, end)
        for end in done:
            if end.error is not None:
                raise end.error

    def _book(self, step: Step, row: int, end: "_End") -> None:
        journal, now = self.journal, self.journal.now
        with journal.tools.history.together():
            journal.step_ended(step, row, result=end.result, moved=end.moved, took=end.took, error=end.error)
            if end.error is None and step.makes:
                self._book_point(step.makes)
            for name in step.removes.split() if step.removes and end.error is None else ():
                journal.tools.history.point_gone(journal.job.name, journal.job.target.name, name, now)
        for warning in _warnings(end.left_out):
            journal.warn(warning)

    def _book_point(self, name: str) -> None:
        journal, job = self.journal, self.journal.job
        known = self.recorded
        journal.tools.history.point_made(
            job.name, job.target.name, name, journal.run, entries=known.entries if known else None,
            bytes=known.bytes if known else None, taken=journal.now, now=journal.now,
        )  # fmt: skip
        journal.tools.history.proved(job.name, job.target.name, name, journal.run, journal.now)
        journal.points.append(name)

    def _one(self, step: Step, progress: "_Progress") -> "_End":
        end = _End(began=self.journal.tools.monotonic())
        try:
            match step.work:
                case Pipeline():
                    self._stream(step, step.work, progress, end)
                case Recording():
                    self.recorded = record(step.work, self.journal, self.writer, self.notes, self.left_out)
                case Rereading():
                    require_sound(read_again(step.work, self.journal, self.writer, self.notes), step.work, self.journal)
            if step.proof is not None:
                self.journal.tools.engine.confirm(
                    step.proof, tuple(self.meters), tuple(self.left_out), self.recorded, self.writer
                )
        except OrchestratorError as error:
            end.error = error
        except OSError as error:
            end.error = _own(error, step)
        end.took = self.journal.tools.monotonic() - end.began
        return end

    def _stream(self, step: Step, pipeline: Pipeline, progress: "_Progress", end: "_End") -> None:
        engine, job = self.journal.tools.engine, self.journal.job
        meter = engine.meter()
        errors: list[bytes] = []

        def heard(chunk: bytes) -> None:
            progress.feed(step, meter.feed(chunk))

        result = self.writer.stream(
            pipeline, stop=self.journal.tools.stop, stall_after=_patience(step, job.pipe.stall_after),
            on_output=heard if step.copies else None, on_errors=errors.append,
        )  # fmt: skip
        end.result = result
        end.moved = meter.moved() if step.copies else None
        left_out = None
        if not result.well:
            failed = broken(pipeline, result, self.writer.ssh_options)
            left_out = engine.left_out(failed, b"".join(errors).splitlines(), job) if step.copies else None
            if left_out is None:
                raise engine.explain(failed)
            end.left_out = left_out
            self.left_out.append(left_out)
        if step.accounts:
            self.meters.append(meter)


def _own(error: OSError, step: Step) -> OutsideError:
    """A file of ours that could not be written or read, as the error that a program's failure would be."""
    evidence = Evidence(lines=step_commands(step), exits=(None,), last_words=(str(error),))
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        why = f"the target, or the state directory, has no room left for the manifest ({error.strerror})"
        return TargetFull(why, evidence=evidence, cure="free room there; the next run goes on from what is there")
    kind = PermissionDenied if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else OutsideError
    return kind(f"{step.does}: {error}", evidence=evidence, cure="see whether the file's disk is sound and writable")


def _patience(step: Step, stall_after: Seconds) -> Seconds:
    """How long a step may be silent. Why more for small ones: a removal or a wait for a lock on a host says nothing."""
    return Seconds(stall_after * 1.5 if step.copies else max(stall_after * 1.5, _QUIET))


@dataclass(slots=True, kw_only=True)
class _End:
    """How one step went."""

    began: float
    took: float = 0.0
    moved: int | None = None
    result: Result | None = None
    error: OrchestratorError | None = None
    left_out: LeftOut | None = None


class _Progress:
    """Bytes so far over all lanes of a stage."""

    def __init__(self, journal: Journal, stage: Sequence[Step]) -> None:
        self._tell = journal.tools.tell
        expected = [step.expected for step in stage]
        self._expected = None if any(size is None for size in expected) else sum(size or 0 for size in expected)
        self._done: dict[str, int] = {}

    def feed(self, step: Step, done: int | None) -> None:
        if done is not None:
            self._done[step.lane] = done
            self._tell(Moved(done=sum(self._done.values()), expected=self._expected))


def _warnings(left_out: LeftOut | None) -> tuple[str, ...]:
    if left_out is None:
        return ()
    unreadable = [
        f"could not be read, so it is missing in this point: {show_name(name)} ({why})"
        for name, why in left_out.unreadable
    ]
    vanished = [f"vanished while it was copied: {show_name(name)}" for name in left_out.vanished]
    return (*_first(unreadable, "entries could not be read"), *_first(vanished, "entries vanished"))


def _first(lines: list[str], what: str) -> tuple[str, ...]:
    more = len(lines) - _NAMED
    return (*lines[:_NAMED], *((f"and {more} more {what}",) if more > 0 else ()))


def _write(path: str, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
