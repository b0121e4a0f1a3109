"""Execution of a plan's steps, stage by stage: the steps of one worker in order, workers in parallel.

It is the only holder of a Writer. Modules that only some steps need are imported in the call: most runs find nothing to do.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestrator.domain.errors import (
    BaseGone,
    Evidence,
    HostUnreachable,
    LookAgain,
    NamesExhausted,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    RetryClass,
    Stalled,
    Stopped,
    StreamBroken,
    TargetFull,
    TokenStale,
    Unexplained,
    VerificationFailed,
)
from orchestrator.domain.plan import (
    COMMON,
    FileCloning,
    FolderOpening,
    FolderTimes,
    ManifestRecording,
    NothingToDo,
    Pipeline,
    Plan,
    PointPublication,
    PointsRemoval,
    SmallFileCopy,
    Step,
    TargetPreparation,
    TargetTrial,
    TreeLinking,
    TreeVerification,
)
from orchestrator.domain.run_values import brief_commands
from orchestrator.domain.units import Seconds, show_size
from orchestrator.engines.contract.copies import Confirmer, Copier, PartialCopier, SilentMeter
from orchestrator.engines.contract.engine import ManifestCounts, ProgressMeter, SkippedEntries, StageResults, implements
from orchestrator.process.executor import PipelineFailed, PipelineResult, StopReason, Writer, pipeline_failure
from orchestrator.process.link_wall import Side
from orchestrator.process.stop import StopRequest
from orchestrator.runner.problems import warnings_of
from orchestrator.runner.publish_point import PointPublisher
from orchestrator.runner.run_recorder import RunRecorder, order_notes
from orchestrator.runner.stage_progress import StageProgress

if TYPE_CHECKING:
    from orchestrator.runner.older_point import OlderPointReading
from orchestrator.runner.step_scheduler import StepScheduler

# Errors that the next worker would only meet again.
HALTING_ERRORS = (Stopped, HostUnreachable, TargetFull, ProgramMissing)
_MAY_PASS = (RetryClass.NOW, RetryClass.LATER, RetryClass.ONCE)
# Errors of the stream itself, not of its host, free space or permissions.
PASSING_ERRORS = (BaseGone, Stalled, StreamBroken, TokenStale, Unexplained)


def local_file_error(error: OSError, step: Step) -> OutsideError:
    """Return the error for a file of ours that could not be written or read, as for a failed program."""
    evidence = Evidence(lines=brief_commands(step), exits=(None,), last_output=(str(error),))
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        wanted = (
            "for the manifest"
            if isinstance(step.work, ManifestRecording)
            else f"(space, inodes or quota) to {step.action}"
        )
        if error.errno == errno.EDQUOT:
            why = f"a quota at the target, or of the state directory, is used up: no space left {wanted} ({error.strerror})"
            hint = "see which, and raise it, or free space below it; the next run continues from what is there"
            return TargetFull(why, evidence=evidence, hint=hint)
        why = f"the target, or the state directory, has no space left {wanted} ({error.strerror})"
        return TargetFull(why, evidence=evidence, hint="free space there; the next run continues from what is there")
    if error.errno == errno.EMLINK:  # the attempt after it does otherwise
        return NamesExhausted(f"{step.action}: one of its files can have no more names there", evidence=evidence)
    kind = PermissionDenied if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else OutsideError
    return kind(
        f"{step.action}: {error}",
        evidence=evidence,
        hint="see whether the disk that holds the file is sound (`smartctl -a DEVICE`) and writable; try another cable or port",
    )


@contextmanager
def told_where_full(what: str, hint: str) -> Iterator[None]:
    """Give the hint that helps where space is lacking: an engine's own is for a run, and speaks of its target and of what [keep] may remove."""
    try:
        yield
    except TargetFull as error:
        why = error.why.replace("a quota at the target", "a quota there").replace("the target has no", "there is no")
        raise TargetFull(f"{what}: {why}", evidence=error.evidence, hint=hint) from error


def gravest_error(errors: list[OrchestratorError]) -> OrchestratorError:
    """Return the error that represents several: one that ends the run, else one that may pass; it counts the other failures.

    Why one that may pass: another attempt is made then, which all that failed takes part in.
    """
    chosen = next(
        (error for error in errors if isinstance(error, HALTING_ERRORS)),
        next((error for error in errors if error.retry in _MAY_PASS), errors[0]),
    )
    if len(errors) > 1:
        chosen.why = f"{chosen.why} (and {len(errors) - 1} more failed beside it)"
    return chosen


def _halts(errors: Iterable[OrchestratorError]) -> bool:
    return any(isinstance(error, HALTING_ERRORS) for error in errors)


_QUIET = 3600.0


class StepExecutor:
    """The executor of one plan. `left_out` and `meters` collect data of its steps, for manifest and checks."""

    def __init__(
        self,
        journal: RunRecorder,
        writer: Writer,
        notes: str,
        parallel: int | None = None,
        explain: Callable[[PipelineFailed], OrchestratorError] | None = None,  # None: the engine's own
    ) -> None:
        self.journal = journal
        self.writer = writer
        self.notes = notes
        self.parallel = parallel
        self.explain = explain
        self.began = journal.tools.monotonic()
        self.words = list[str]()  # the last output of the steps that ended well
        self.left_out = list[SkippedEntries]()
        self.meters = list[ProgressMeter]()
        self.recorded: ManifestCounts | None = None
        self._open_sides = frozenset[Side]()  # told already
        self._linked = False  # a tree was linked before its copy
        self._failed = set[str]()  # workers of which a step failed
        self._copied = set[str]()  # workers of which a copying step ended well
        self.done_in_part = False  # of an independent plan, all is done that did not need what failed
        self._progress: StageProgress | None = None
        self._publisher = PointPublisher(explain or journal.tools.engine.explain)
        self._goes_on = False  # another stage follows
        self._stage = 0  # its number
        self._together: StopRequest | None = None  # ends all steps of a stage
        self._manifest: ManifestRecording | None = None  # of the plan
        self._older: OlderPointReading | None = None  # what it needs of the point before, on its way
        self._late: _StepEnd | None = None  # ended well, and recorded with the beginning of the next step

    def count(self, plan: Plan) -> None:
        """Report bytes for all copying steps of the plan together from now on, if there are several."""
        steps = [step for step in plan.steps if step.copies]
        if len(steps) > 1:
            self._progress = StageProgress(self.journal, steps, whole=True)

    def leave_out(self, plan: Plan) -> None:
        """Record what the plan leaves out, as if a copy had had to."""
        if plan.left_out:
            self.left_out.append(SkippedEntries(unmade=plan.left_out))

    def carry_out(self, decision: Plan | NothingToDo) -> None:
        """Run all stages, one after the other. Raises: OrchestratorError.

        Of an independent plan a failed step holds up only what needs it: all else is done, and then the gravest error is raised.
        """
        independent = isinstance(decision, Plan) and decision.independent
        works = (step.work for stage in decision.stages for step in stage)
        self._manifest = next((work for work in works if isinstance(work, ManifestRecording)), None)
        errors: list[OrchestratorError] = []
        try:
            for number, stage in enumerate(decision.stages, 1):
                self._goes_on = number < len(decision.stages)
                errors += self._run_stage([step for step in stage if not self._is_held_up(step, errors)])
                if errors and (not independent or COMMON in self._failed or _halts(errors)):
                    break
            else:
                self.done_in_part = bool(errors) and bool(self._copied - self._failed)
        finally:
            self._goes_on = False
            self._book_late()
            if self._older is not None:
                self._older.abandon()
                self._older = None
        if errors:
            raise self._perhaps_again(gravest_error(errors))

    def _is_held_up(self, step: Step, errors: Sequence[OrchestratorError]) -> bool:
        if step.worker == COMMON:
            return bool(errors)
        return any(f"{step.worker}/".startswith(f"{failed}/") for failed in self._failed)

    def do(self, stage: Sequence[Step]) -> None:
        """Run the steps of one stage, then their checks, which one survey may answer together.

        Raises: OrchestratorError after every step that began has ended.
        """
        if errors := self._run_stage(stage):
            raise self._perhaps_again(gravest_error(errors))

    def read_together(self, stage: Sequence[Step]) -> None:
        """Run readings of which none is worth anything without the others: the first that fails ends them all.

        Raises: OrchestratorError, of what failed by itself; of several the words of the first two.
        """
        self._together = StopRequest(above=self.journal.tools.stop)
        try:
            errors = self._run_stage(stage)
        finally:
            self._together = None
        own = [error for error in errors if not isinstance(error, Stopped)]
        if len(own) > 1:
            own[0].why = f"{own[0].why}; and beside it: {own[1].why}"
        if errors:
            raise (own or errors)[0]

    def _run_stage(self, stage: Sequence[Step]) -> list[OrchestratorError]:
        """Run the steps of one stage, then their checks; return the errors of those that failed."""
        if not stage:
            return []
        self._stage += 1
        progress = self._progress or StageProgress(self.journal, stage)
        ended: list[_StepEnd] = []

        def end(step: Step, row: int, how: _StepEnd) -> str:
            how.step, how.row = step, row
            ended.append(how)
            if how.error is None and how.result is not None:
                self.words += [said for said in how.result.last_output if said]
                progress.ended(step)
            self._remember(step, how.error)
            if len(stage) > 1:  # a single step is recorded with its check
                self._book(how, confirmed=how.error is None and step.confirmation is None)
            return "on" if how.error is None else "all" if isinstance(how.error, HALTING_ERRORS) else "lane"

        lanes = StepScheduler(
            begin=self._begin, act=lambda step, _: self._one(step, progress), end=end,
            together=self.journal.tools.history.together,
        )  # fmt: skip
        lanes.run(stage, self.parallel)
        errors = [how.error for how in ended if how.error is not None]
        try:
            self._confirm(ended)
        except OrchestratorError as error:
            errors.insert(0, error)
            self._failed.add(
                COMMON
            )  # what the target said that it received is not there: nothing more is built on its word
        self._failed |= {how.step.worker for how in ended if how.error is not None}
        self._copied |= {how.step.worker for how in ended if how.error is None and how.step.copies}
        return errors

    def _perhaps_again(self, error: OrchestratorError) -> OrchestratorError:
        """Return the error, or after a copy over a linked tree a request to look again: then nothing is linked before.

        Why: a folder that becomes a file at the source in these moments, or a file a folder, stands in such a copy's way alone; and
        a file that nobody may link ends the program that links on a host.
        """
        if not self._linked or type(error) not in (OutsideError, PermissionDenied, Unexplained, VerificationFailed):
            return error
        return LookAgain(f"the copy over linked entries did not end well: {error.why}", hint=error.hint)

    def _begin(self, step: Step) -> int:
        self._book_late()
        row = self.journal.step_begun(step)
        for path, content in step.needs:
            _write(path, content)
        order_notes((path for path, _ in step.needs), self._stage)
        return row

    def _remember(self, step: Step, error: OrchestratorError | None) -> None:
        """Record a step's fact for later plans. Several failures of one kind in a run count as one."""
        fact = step.remembers if error is None else step.vain if isinstance(error, PASSING_ERRORS) else None
        if fact is None or (error is not None and fact[0] in self.journal.failed):
            return
        if error is not None:
            self.journal.failed.add(fact[0])
        self.journal.tools.history.remember(self.journal.job.name, *fact)

    def _confirm(self, ended: list["_StepEnd"]) -> None:
        """Check that the expected results of successful steps are there, and record them."""
        well = [how for how in ended if how.error is None]
        confirmations = tuple(how.step.confirmation for how in well if how.step.confirmation is not None)
        uncertain = tuple(
            how.step.confirmation for how in ended if how.error is not None and how.step.confirmation is not None
        )
        failure: OrchestratorError | None = None
        if confirmations:
            try:
                engine = self.journal.tools.engine
                if implements(engine, Confirmer):
                    stage = StageResults(
                        confirmations=confirmations, uncertain=uncertain, meters=tuple(self.meters), left_out=tuple(self.left_out),
                        recorded=self.recorded,
                    )  # fmt: skip
                    engine.confirm(stage, self.writer)
            except OrchestratorError as error:
                failure = error
        if len(ended) == 1:
            ended[0].error = ended[0].error or failure
            if self._goes_on and ended[0].error is None and not (ended[0].step.makes or ended[0].step.removes):
                self._late = ended[0]
            else:
                self._book(ended[0], confirmed=ended[0].error is None)
        elif failure is None:
            self.journal.steps_confirmed([(how.index, how.row) for how in well if how.step.confirmation is not None])
        if failure is not None:
            raise failure
        self._book_points(well)

    def _book(self, how: "_StepEnd", *, confirmed: bool) -> None:
        how.index = self.journal.step_ended(
            how.step, how.row, result=how.result, moved=how.moved, took=how.took, error=how.error, confirmed=confirmed
        )
        for warning in warnings_of(how.left_out):
            self.journal.warn(warning)

    def _book_late(self) -> None:
        """Record the step that ended well before this moment: with what comes next, which waits for the disk anyway."""
        late, self._late = self._late, None
        if late is not None:
            self._book(late, confirmed=True)

    def _book_points(self, well: list["_StepEnd"]) -> None:
        journal, now = self.journal, self.journal.now
        made = [how.step for how in well if how.step.makes or how.step.removes]
        if not made:
            return
        with journal.tools.history.together():
            for step in made:
                if step.makes:
                    self._book_point(step)
                for name in step.removes.split() if step.removes else ():
                    journal.tools.history.point_gone(journal.job.name, journal.job.target.name, name, now)

    def _book_point(self, step: Step) -> None:
        journal, job, name = self.journal, self.journal.job, step.makes or ""
        known = self.recorded
        journal.tools.history.point_made(
            job.name, job.target.name, name, journal.run, entries=known.entries if known else None,
            bytes=known.bytes if known else None, taken=journal.now, now=journal.now,
        )  # fmt: skip
        journal.tools.history.point_verified(job.name, job.target.name, name, journal.run, journal.now)
        journal.points.append(name)

    def _one(self, step: Step, progress: StageProgress) -> "_StepEnd":
        end = _StepEnd(began=self.journal.tools.monotonic())
        self._linked |= step.links
        try:
            match step.work:
                case Pipeline() if step.freezes and _is_held_still(self.journal):
                    from orchestrator.runner.source_freeze import hold_still

                    with hold_still(self.journal) as limit:
                        self._stream(step, step.work, progress, end, timeout=limit)
                case Pipeline() if step.settles:
                    self._publisher.complete(step.work, lambda each: self._stream(step, each, progress, end))
                case Pipeline() if not step.spare or any(map(os.path.getsize, step.spare)):
                    self._stream(step, step.work, progress, end)
                case TargetTrial() | TargetPreparation():
                    if not _is_done_here(step.work):
                        self._stream(step, step.work.otherwise, progress, end)
                    if isinstance(step.work, TargetPreparation):
                        self._publisher.watch_disk(step.work.root.path)
                case PointPublication():
                    self._linked = False  # a copy that is whole is not made anew for what fails here
                    self._publisher.publish(step.work, lambda each: self._stream(step, each, progress, end))
                case ManifestRecording():
                    self._record_manifest(step.work)
                case TreeLinking() | FileCloning():
                    self._link_here(step.work)
                case SmallFileCopy() | FolderTimes():
                    self._copy_here(step, step.work, progress, end)
                case PointsRemoval():
                    from orchestrator.runner.remove_points import remove_points

                    remove_points(step.work, self.journal)
                case FolderOpening():
                    from orchestrator.runner.open_folder import open_folder

                    open_folder(step.work)
                case TreeVerification():
                    from orchestrator.runner.verify.read_files import require_sound, verify_tree

                    reading = verify_tree(step.work, self.journal, self.writer, self.notes)
                    require_sound(reading, step.work, self.journal)
        except OrchestratorError as error:
            end.error = error
        except OSError as error:
            end.error = local_file_error(error, step)
        if end.error is not None and self._together is not None:
            self._together.request("what was read beside it failed")
        if isinstance(step.work, Pipeline) and step.work.keeps:
            order_notes((step.work.keeps,), self._stage)
        end.took = self.journal.tools.monotonic() - end.began
        return end

    def _record_manifest(self, work: ManifestRecording) -> None:
        from orchestrator.runner.own_way import record_in_own_folder

        journal, began, older = self.journal, self.began, self._older
        self.recorded = record_in_own_folder(
            work, journal, self.writer, self.notes, self.left_out, began=began, older=older
        )

    def _link_here(self, work: TreeLinking | FileCloning) -> None:
        """Link or clone by system calls alone. Raises: OrchestratorError · OSError."""
        from orchestrator.runner.link_tree import clone_files, link_tree

        if isinstance(work, FileCloning):
            clone_files(work, self.journal)
        else:
            self._linked = True
            link_tree(work, self.journal, self._read_older_point)

    def _read_older_point(self) -> None:
        """Begin to read what the manifest of the plan needs of the point before. Raises: OrchestratorError."""
        from orchestrator.runner.own_way import begin_older_point

        self._older = begin_older_point(self._manifest, self.journal, self.writer, self.notes)

    def _copy_here(
        self, step: Step, work: SmallFileCopy | FolderTimes, progress: StageProgress, end: "_StepEnd"
    ) -> None:
        """Do by system calls what they can, and the rest by its program. Raises: OrchestratorError · OSError."""
        from orchestrator.runner.copy_named import copy_small_files, give_times

        if isinstance(work, SmallFileCopy):
            left, end.moved = copy_small_files(work, self.journal, lambda done: progress.feed(step, done, None))
            order_notes((work.moved,), self._stage)
        else:
            left = give_times(work)
        if left:
            _write(work.left, b"".join(b"./" + path + b"\0" for path in left))
            self._stream(step, work.otherwise, progress, end)
            order_notes((work.otherwise.keeps,) if work.otherwise.keeps else (), self._stage)

    def let_go(self) -> None:
        """Keep no disk in use any more."""
        self._publisher.let_go()

    def _stream(
        self,
        step: Step,
        pipeline: Pipeline,
        progress: StageProgress,
        end: "_StepEnd",
        timeout: Seconds | None = None,
    ) -> None:
        engine, job, before = self.journal.tools.engine, self.journal.job, end.moved or 0
        meter: ProgressMeter = engine.meter() if implements(engine, Copier) else SilentMeter()
        errors: list[bytes] = []

        def printed(chunk: bytes) -> None:
            done = meter.feed(chunk)
            if step.most is not None and (done or 0) > step.most:
                raise _grew(step, done)
            progress.feed(step, None if done is None else before + done, meter.expected)

        def said(chunk: bytes) -> None:
            errors.append(chunk)
            meter.heard(chunk)

        def passed(count: int) -> None:
            progress.feed(step, meter.passed(count), meter.expected)

        joined = step.copies and pipeline.counts < len(pipeline.stages) - 1
        heard = printed if step.copies and not joined else self._link_progress() if step.counts_links else None
        result = self.writer.stream(
            pipeline, stop=self._together or self.journal.tools.stop, stall_after=_patience(step, job.pipe.stall_after), timeout=timeout,
            on_output=heard, on_bytes=passed if joined else None,
            on_errors=said,
        )  # fmt: skip
        end.result = result
        self._tell_of_links(result)
        if joined and result.moved is not None:
            meter.passed(result.moved)
        end.moved = before + (meter.moved() or 0) if before else meter.moved() if step.copies else None
        left_out = None
        if not result.well:
            failed = pipeline_failure(pipeline, result, self.writer.ssh_options)
            if result.stopped is StopReason.TIMED_OUT:
                raise Stalled(
                    f"{step.action}: took longer than {timeout or 0:g} s while the source was held still, so it was ended",
                    evidence=failed.evidence,
                    hint="see why it is slow; `timeout` in [hooks] of the job file is how long the source may be held still",
                )
            if step.copies and implements(engine, PartialCopier):
                left_out = engine.left_out(failed, b"".join(errors), job)
                if left_out is None and (refused := engine.refused(failed, b"".join(errors), job, pipeline.keeps)):
                    raise refused
            if left_out is None:
                error = (self.explain or engine.explain)(failed)
                if isinstance(error, TargetFull) and _moved_more(step, end.moved or 0):
                    raise _grew(step, end.moved) from error  # such as by a file of holes, which fills a target
                raise error
            end.left_out = left_out
            self.left_out.append(left_out)
        if step.accounts:
            self.meters.append(meter)

    def _link_progress(self) -> Callable[[bytes], None]:
        from orchestrator.runner.link_tree import LinkProgress

        return LinkProgress(self.journal.say, self.journal.tools.monotonic).feed

    def _tell_of_links(self, result: PipelineResult) -> None:
        """Record once where rsync could not be kept from being led on by links."""
        places = (self.journal.job.source, self.journal.job.target.location)
        far = next((str(place.host) for place in places if place.host), "the other machine")
        for side in sorted(result.links_lead - self._open_sides, key=lambda each: each.value):
            where = "here" if side is Side.HERE else f"at {far}"
            self.journal.say(
                f"rsync ran {where} without the wall against links, so an owner of a folder in the tree could have led it elsewhere: "
                "`poolferry check --system` says what closes that"
            )
        self._open_sides |= result.links_lead


def _is_done_here(work: TargetTrial | TargetPreparation) -> bool:
    """Do work at a target by system calls; return False where its program must do it, or say why not."""
    from orchestrator.trees.local_target import prepare_target, try_abilities

    match work:
        case TargetTrial():
            return try_abilities(work.root.path, work.abilities)
        case TargetPreparation():
            return prepare_target(work.root.path, work.job, work.folders, stored=work.stored)


def _moved_more(step: Step, done: int) -> bool:
    """Return whether a bounded step moved more than was seen before; of one that expects nothing nobody has looked how much it moves."""
    return step.most is not None and 0 < (step.expected or 0) < done


def _grew(step: Step, done: int | None) -> LookAgain:
    return LookAgain(
        f"the source grew in the middle of the copy: {show_size(done)} were read, and {show_size(step.expected)} were seen before",
        hint="the next run looks again; what arrived stays",
    )


def _is_held_still(journal: RunRecorder) -> bool:
    """Return True when the job has hooks around the instant of a snapshot."""
    return bool(journal.job.hooks.of("snapshot-before") or journal.job.hooks.of("snapshot-after"))


def _patience(step: Step, stall_after: Seconds) -> Seconds:
    """Return how long a step may be silent. Why longer for small ones: a removal or a lock wait prints nothing."""
    return Seconds(stall_after * 1.5 if step.copies else max(stall_after * 1.5, _QUIET))


class _StepEnd:
    """The result of one step; `index`: its index in the report."""

    step: Step

    def __init__(self, *, began: float) -> None:
        self.began = began
        self.took = 0.0
        self.moved: int | None = None
        self.result: PipelineResult | None = None
        self.error: OrchestratorError | None = None
        self.left_out: SkippedEntries | None = None
        self.row = 0
        self.index = 0


def _write(path: str, content: bytes) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
