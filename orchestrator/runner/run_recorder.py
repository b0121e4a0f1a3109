"""The records of one run while it goes on: in history, as events for subscribers, and as notes of its copying steps.

Notes are one file for each step, in the job's folder for notes.
"""

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.domain.answers import NOT_READ, parse_count
from orchestrator.domain.errors import (
    Evidence,
    OrchestratorError,
    OutsideError,
    PartlyRefused,
    PermissionDenied,
    Stopped,
    TargetFull,
    TargetUnable,
    VerificationFailed,
)
from orchestrator.domain.events import RunMessage, RunStarted, RunWaits, StepStarted
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.hint_phrases import PHRASES_OF_MIRROR, name_disk, name_hosts, phrases_of_reader, say_hint
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Decision, Pipeline, Plan, Refusal, Step
from orchestrator.domain.problem import SAME_COMMAND
from orchestrator.domain.run import Outcome, RunReport, RunType, StepReport, outcome_of
from orchestrator.domain.run_values import decision_value, evidence_lines, step_commands
from orchestrator.process.executor import PipelineResult, Writer, pipeline_failure
from orchestrator.runner.context import RunContext
from orchestrator.trees.beneath import Folder

if TYPE_CHECKING:
    from orchestrator.domain.events import RunEvent
    from orchestrator.history.store import History
    from orchestrator.process.background import BackgroundCall
    from orchestrator.verify.manifest import TaggedEntries

_LONGEST_TIME = 20  # bytes of an answer


class RunRecorder:
    """The record of one run, from start to end. Not a dataclass: the library's cost each start a millisecond."""

    def __init__(
        self, *, tools: RunContext, job: Job, run: int, begun: float, phrases: Mapping[str, str] | None = None
    ) -> None:
        self._phrases = phrases or {}
        self.tools = tools
        self.job = job
        self.run = run
        self.begun = begun
        self.attempt = 0
        self.attempt_since = begun
        self.moved = 0
        self.resumed = False
        self.steps: list[StepReport] = []
        self.points: list[str] = []
        self.brought: dict[
            str, datetime | None
        ] = {}  # points of which an attempt began to bring the root, and their instants
        self.warnings: list[str] = []
        self.failed: set[str] = set()  # keys of facts that this run has noted of its failures
        self.names_exhausted = False  # an attempt of this run met a file that could have no more names at the target
        self.refused: dict[
            bytes, str
        ] = {}  # entries that the target did not take in an attempt of this run, each with the reason
        self.unnamed = (
            0  # attempts of this run that met an entry which the target did not take, and which nothing names
        )
        self.snapshots_taken = False  # due ones of the source, by an attempt of this run
        self.room_made = False  # at a target that was full, by what [keep] lets go
        self.copy_damaged = False  # the point from which this run restored data is damaged
        self.restored_damaged = False  # what came back differs from a sound point, perhaps with the right size and time
        self.left_out = list[str]()  # entries that this run could not read at the source
        self.unseen: set[str] = set()  # what find said that it could not look at in a source that is read again
        self.unmade: set[bytes] = set()  # device nodes of the restored data that this user cannot make
        self.forged = ""  # why the data restored by this run is not verified
        self.entry_ahead: BackgroundCall[TaggedEntries] | None = None  # of a single file that this run restores
        self.notes = ""  # the folder of what the next run goes on with
        self.own_notes = ""  # the folder of what nobody needs once this run has ended
        self._index = 0
        self._attempting = False
        self._looking_since: datetime | None = None

    @property
    def now(self) -> datetime:
        """Return the present instant."""
        return self.tools.clock()

    def attempt_begun(self, *, looking: bool = False) -> None:
        """Record the start of an attempt; with `looking`, recorded later: with the first step or the survey's result."""
        self.attempt += 1
        self._index = 0
        self._attempting = True
        self.attempt_since = self.tools.monotonic()
        self._looking_since = self.now
        if not looking:
            self._looked()

    def _looked(self) -> None:
        if self._looking_since is not None:
            self.tools.history.attempt_begun(self.run, self.attempt, self._looking_since)
            self._looking_since = None

    def attempt_ended(self, error: OrchestratorError | None) -> None:
        """Record the end of the attempt, successful when `error` is None."""
        self._attempting = False
        evidence = error.evidence if isinstance(error, OutsideError) else None
        with self.tools.history.together():
            self._looked()
            self.tools.history.attempt_ended(self.run, self.attempt, self.now, str(error) if error else None, evidence)

    def decided(self, decision: Decision) -> None:
        """Record the plan before its first step."""
        text = json.dumps(decision_value(decision))
        with self.tools.history.together():
            self._looked()
            if isinstance(decision, Refusal):
                self.tools.history.refused(self.run, self.attempt, text)
                return
            self.tools.history.planned(self.run, self.attempt, text)
            new = [warning for warning in dict.fromkeys(decision.warnings) if warning not in self.warnings]
            lines = [RunMessage(level="warning", text=warning) for warning in new]
            if isinstance(decision, Plan):
                self.resumed = self.resumed or bool(decision.resumes)
                told = (decision.summary, *([f"resumes: {decision.resumes}"] if decision.resumes else []))
                lines += [RunMessage(level="info", text=text) for text in told]
            for line in lines:
                self.tools.history.said(self.run, self.now, line.level, line.text)
        self.warnings += new
        for line in lines:
            self._show(line)

    def step_begun(self, step: Step) -> int:
        """Record a step before its action."""
        self._index += 1
        self._looked()
        self._show(StepStarted(action=step.action, expected=step.expected))
        return self.tools.history.step_begun(
            self.run, self.attempt, self._index, action=step.action, why=step.why, worker=step.worker, commands=step_commands(step),
            expected=step.expected, now=self.now,
        )  # fmt: skip

    def step_ended(
        self,
        step: Step,
        row: int,
        *,
        result: PipelineResult | None,
        moved: int | None,
        took: float,
        error: OrchestratorError | None,
        confirmed: bool,
    ) -> int:
        """Record the end of a step; return its index in the report."""
        self.moved += moved or 0
        self.steps.append(
            StepReport(action=step.action, why=step.why, moved_bytes=moved, took_s=took, confirmed=confirmed)
        )
        self.tools.history.step_ended(
            row, now=self.now, moved=moved, confirmed=confirmed, exits=result.exits if result else (),
            last_output=result.last_output if result else (), error=str(error) if error else None,
        )  # fmt: skip
        return len(self.steps) - 1

    def steps_confirmed(self, steps: Sequence[tuple[int, int]]) -> None:
        """Record steps as confirmed after one check of all of them: (index in the report, row in history)."""
        with self.tools.history.together():
            for index, row in steps:
                self.steps[index] = replace(self.steps[index], confirmed=True)
                self.tools.history.step_confirmed(row)

    def say(self, text: str) -> None:
        """Write a line for subscribers and for history."""
        self.tools.history.said(self.run, self.now, "info", text)
        self._show(RunMessage(level="info", text=text))

    def warn(self, text: str) -> None:
        """Record a warning: it stays in the run's report."""
        if text not in self.warnings:
            self.warnings.append(text)
            self.tools.history.said(self.run, self.now, "warning", text)
            self._show(RunMessage(level="warning", text=text))

    def waits(self, text: str) -> None:
        """Show what the run waits for; empty: nothing any more."""
        self._show(RunWaits(text=text))

    def note(self, text: str) -> None:
        """Record a warning after the run's end: its report is written and unchanged."""
        self.tools.history.said(self.run, self.now, "warning", text)
        self._show(RunMessage(level="warning", text=text))

    def _show(self, event: "RunEvent") -> None:
        """Show an event to subscribers, once nothing is locked in the history: who prints it may wait."""
        self.tools.history.afterwards(lambda: self.tools.notify(event))

    @property
    def verdicts(self) -> "History":
        """The history, to record what is wrong with a copy, or that it is sound.

        Raises: Stopped, where its disk was pulled out: what cannot be read then is not damaged, and was not read.
        """
        if (gone := self._pulled_out()) is not None:
            raise gone
        return self.tools.history

    def _pulled_out(self) -> Stopped | None:
        """Return the end of work on a disk that is gone; None: it is here, or the target is no disk."""
        place = self.job.target
        if not place.device:
            return None
        from orchestrator.runner.disk.removal_watch import is_gone, pulled_out_sentence

        return Stopped(pulled_out_sentence(place)) if is_gone(place) else None

    def ended(self, outcome: Outcome, why: str, *, hint: str = "", evidence: Sequence[str] = ()) -> RunReport:
        """Store the report and return it; an attempt still open has succeeded."""
        if self.own_notes:
            from orchestrator.runner.run_notes import remove_notes

            remove_notes(self.own_notes)
        report = RunReport(
            run=self.run, job=self.job.name, outcome=outcome, why=why, hint=self.said_hint(hint), moved_bytes=self.moved,
            took_s=self.tools.monotonic() - self.begun, resumed=self.resumed, attempts=self.attempt, steps=tuple(self.steps),
            points=tuple(self.points), warnings=tuple(self.warnings), evidence=tuple(evidence),
        )  # fmt: skip
        with self.tools.history.together():
            if self._attempting:
                self.attempt_ended(None)
            self.tools.history.ended(self.run, report, self.now)
        return report

    def speak_of_mirror(self) -> None:
        """Let hints say of a mirror what they would say of points."""
        self._phrases = PHRASES_OF_MIRROR

    def said_hint(self, hint: str) -> str:
        """Return a hint of this job, in the words of its command; tables of what programs say know neither, and write JOB in its place."""
        told = (
            say_hint(hint, self._phrases)
            .replace("poolferry run JOB", f"poolferry run {self.job.name}")
            .replace("poolferry verify JOB", f"poolferry verify {self.job.name}")
            .replace("poolferry show RUN", f"poolferry show {self.run}")
        )
        told = name_disk(told, self.job) if self.job.target.disk else told
        return name_hosts(told, self.job) if "ssh " in told else told

    def ended_by(
        self, error: OrchestratorError | OSError, *, continues: str, what: str = "", found: Sequence[str] = ()
    ) -> RunReport:
        """End the run by an error, with the outcome, the hint and the evidence that belong to its class.

        `continues`: how it goes on after a stop; `what`: words before a failure's; `found`: lines before its evidence.
        """
        if isinstance(error, OSError | TargetFull | VerificationFailed):
            from orchestrator.runner.full_state import name_full_state

            named = name_full_state(error, self.tools.state, self.job.target.location)
            if self.notes and isinstance(named, OrchestratorError) and named is not error:
                from orchestrator.runner.run_notes import give_up_room

                named = give_up_room(self.notes, named)
            error = named
        if isinstance(error, OSError):
            error = _of_a_file(error)
        if self.notes:
            from orchestrator.runner.run_notes import keep_little

            keep_little(self.notes)
        error = self._pulled_out() or error  # an error of the disk may be seen before the watch sees that it is gone
        outcome = outcome_of(error)
        if outcome is Outcome.INTERRUPTED:
            return self.ended(outcome, self.tools.stop.reason or error.why, hint=continues)
        if outcome is Outcome.WAITING:
            return self.ended(outcome, error.why, hint=error.hint)
        if self._attempting:
            self.attempt_ended(error)
        return self.ended(outcome, f"{what}{error.why}", hint=error.hint, evidence=(*found, *error_evidence(error)))


ENDS_A_RUN = (OrchestratorError, OSError)  # each of them is recorded; a lost history alone is raised


def _of_a_file(error: OSError) -> OutsideError:
    """Return the error of a run that a file or folder of this machine ended, outside of its steps, such as one in the state directory."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        hint = "something else lies where poolferry's own folder belongs: move it away"
    elif isinstance(error, PermissionError) and os.geteuid() != 0:
        hint = "if that is root's, run the command as root, with sudo"
    else:
        hint = "see whether the disk that holds it has room, is sound (`smartctl -a DEVICE`) and writable"
    evidence = Evidence(lines=(), exits=(), last_output=(str(error),))
    return OutsideError(f"a file or folder of this machine: {error}", evidence=evidence, hint=hint)


def begin_run(
    job: Job, tools: RunContext, why: str, kind: RunType = RunType.RUN, phrases: Mapping[str, str] | None = None
) -> RunRecorder:
    """Record the start of a run before any other action. `phrases`: what its hints say in place of a run's words (`domain.hint_phrases`)."""
    who = tools.identity
    run = tools.history.begin(
        job=job.name, engine=job.engine, source=str(job.tree), target=str(job.target.location), now=tools.clock(),
        pid=who.pid, process_started=who.started, boot=who.boot, host=who.host, kind=kind, why=why,
    )  # fmt: skip
    tools.notify(RunStarted(run=run, job=job.name))
    if phrases is None and kind is not RunType.RUN:
        phrases = phrases_of_reader(SAME_COMMAND)
    return RunRecorder(tools=tools, job=job, run=run, begun=tools.monotonic(), phrases=phrases)


def continue_run(begun: RunRecorder, job: Job, tools: RunContext) -> RunRecorder:
    """Go on with a run that has begun, now that its job is placed on a disk; its warnings stay."""
    tools.history.placed(begun.run, str(job.target.location))
    tools.notify(RunStarted(run=begun.run, job=job.name))
    journal = RunRecorder(tools=tools, job=job, run=begun.run, begun=begun.begun)
    journal.warnings = begun.warnings
    return journal


def error_evidence(error: OrchestratorError) -> tuple[str, ...]:
    """Return a failure's evidence as lines to show."""
    match error:
        case OutsideError(evidence=evidence):
            return evidence_lines(evidence)
        case PartlyRefused(evidence=lines) | TargetUnable(evidence=lines):
            return lines
    return ()


def run_small(
    pipeline: Pipeline, journal: RunRecorder, writer: Writer, *, on_output: Callable[[bytes], None] | None = None
) -> None:
    """Run a small pipeline to its end. Raises: OrchestratorError."""
    result = writer.stream(pipeline, stop=journal.tools.stop, on_output=on_output)
    if not result.well:
        raise journal.tools.engine.explain(pipeline_failure(pipeline, result, writer.ssh_options))


def store_file(local: str, file: Location, journal: RunRecorder, writer: Writer) -> None:
    """Store a small local file in a folder of ours at the target, whole or not at all, for our eyes alone. Raises: OrchestratorError · OSError.

    Why no program on this machine: each of several such files would take four of them, a good part of a small copy's time.
    """
    if file.host is not None:
        send_file(local, file, journal, writer)
        return
    folder, _, name = file.path.rpartition("/")
    with (
        open(local, "rb") as source,
        Folder.ours_at(folder) as room,
        room.new_file(name, lasting=False, through=f"{name}.new") as new,
    ):
        while piece := source.read(1 << 20):
            new.write(piece)


def send_file(local: str, file: Location, journal: RunRecorder, writer: Writer) -> int | None:
    """Store a small local file at the target by its programs, whole or not at all. Raises: OrchestratorError · OSError.

    Returns the time that it has there, in whole seconds since 1970; None where a gate of an earlier version does not tell.
    """
    trees, told = journal.tools.trees, bytearray()

    def hear(said: bytes) -> None:
        told.extend(said[: _LONGEST_TIME - len(told)])

    try:
        run_small(trees.store(local, file), journal, writer, on_output=hear)
    except PermissionDenied as error:
        from orchestrator.domain.gate import is_unknown_request

        if not is_unknown_request(" ".join(error.evidence.last_output)):
            raise
        run_small(trees.store(local, file, sized=False), journal, writer)  # the gate there is of an earlier version
    try:
        return parse_count(bytes(told))
    except NOT_READ:
        return None


def fetch_file(file: Location, journal: RunRecorder, writer: Writer, notes: str) -> str:
    """Return the local path of a small file of the target, copied here when it is on a host."""
    if file.host is None:
        return file.path
    os.makedirs(notes, exist_ok=True)
    local = f"{notes}/fetched.gz"
    if os.path.exists(local):
        os.unlink(local)
    run_small(journal.tools.trees.fetch(file, local), journal, writer)
    return local


_NOTE = "moved-"
_EARLIER = "earlier-"


def forget_notes(folder: str) -> None:
    """Remove the notes of interrupted runs about their copying."""
    for name in os.listdir(folder):
        if name.startswith((_NOTE, _EARLIER)):
            os.unlink(f"{folder}/{name}")


def close_notes(folder: str) -> None:
    """Mark all present notes as those of an earlier attempt, older than all later notes."""
    names = os.listdir(folder)
    last = max((int(name.split("-")[1]) for name in names if name.startswith(_EARLIER)), default=0)
    for name in names:
        if name.startswith(_NOTE):
            os.rename(f"{folder}/{name}", f"{folder}/{_EARLIER}{last + 1:06d}-{name}")


def is_earlier_note(path: str) -> bool:
    """Return True for a note of an interrupted run or attempt."""
    return os.path.basename(path).startswith(_EARLIER)


def order_notes(paths: Iterable[str], stage: int) -> None:
    """Put notes of steps that have ended in their order, by the number of the stage as their time. Why: a clock may be set back meanwhile."""
    for path in paths:
        if os.path.basename(path).startswith(_NOTE):
            with contextlib.suppress(FileNotFoundError):  # a program that never began wrote none
                os.utime(path, (stage, stage))


def notes_in_order(folder: str) -> tuple[str, ...]:
    """Return the paths of all notes, this run's and those of interrupted ones before it, in the order of writing.

    The times of those whose steps have ended are numbers of stages; those of the others, which began later, are of this century.
    """
    names = [name for name in os.listdir(folder) if name.startswith((_EARLIER, _NOTE))]
    names.sort(key=lambda name: (name.partition(_NOTE)[0] or _NOTE, os.path.getmtime(f"{folder}/{name}")))
    return tuple(f"{folder}/{name}" for name in names)
