"""`drill`: restores a sample of the newest verified point, or all of it, to scratch and compares it; the evidence stays.

Why a part of a job, and no job of its own: it needs the attached disk, the point that [keep] must not remove meanwhile, and the
job's time window; all of these belong to the job whose copies are tested.
"""

import contextlib
import os

from orchestrator.domain.drill import DrillRunResult
from orchestrator.domain.errors import (
    HostUnreachable,
    OrchestratorError,
    OutsideError,
    StreamBroken,
)
from orchestrator.domain.hint_phrases import phrases_of_reader
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import Verdict, VerificationResult
from orchestrator.domain.problem import DAMAGE_FOUND, DRILL_FAILED
from orchestrator.domain.run import Outcome, RunReport, RunType, outcome_of
from orchestrator.domain.units import show_duration, show_size
from orchestrator.planners.drill import PastDrill, decide_drill
from orchestrator.process.executor import Writer
from orchestrator.runner.context import RunContext
from orchestrator.runner.drill import files as trees
from orchestrator.runner.drill.evidence import DrillEvidence, DrillRequest
from orchestrator.runner.drill.scratch_dir import folder_of, refuse_place, scratch_folder
from orchestrator.runner.drill.user_check import run_user_check, user_check_command, user_check_text
from orchestrator.runner.hooks import call_hooks
from orchestrator.runner.locks import lock_point
from orchestrator.runner.run_recorder import begin_run, error_evidence
from orchestrator.runner.verify.read_files import describe_counts, describe_first_findings


def due_drill(job: Job, tools: RunContext) -> str:
    """Return "whole", "sample", or "": the restore test that the job's [drill] makes due at its place now."""
    if not job.drill.requested:
        return ""
    known = tools.history.drills.of(job.name)
    past = [PastDrill(at=each.at, drilled=each.drilled) for each in known if each.drilled.place == job.target.name]
    return decide_drill(job.drill, past, tools.clock())


def drill_when_due(job: Job, tools: RunContext) -> DrillRunResult | None:
    """Run the restore test that [drill] makes due after a successful run; None: none is due."""
    kind = due_drill(job, tools)
    if not kind:
        _tidy(job, tools)
        return None
    why = "[drill] whole-every" if kind == "whole" else "[drill] every"
    return drill_job(job, tools, DrillRequest(whole=kind == "whole"), why=f"{kind} drill, as {why} asks")


def _tidy(job: Job, tools: RunContext) -> None:
    """Remove what a killed restore test left."""
    folder = folder_of(job, tools.state)
    if folder.startswith("/") and os.path.isdir(folder):
        with (
            contextlib.suppress(OrchestratorError, OSError),
            scratch_folder(folder, tools.state, stop=tools.stop, patience=0.0),
        ):
            pass


def drill_job(job: Job, tools: RunContext, drill_request: DrillRequest, *, why: str = "drill") -> DrillRunResult:
    """Run one restore test and record it. All errors are in the report; only a lost history raises."""
    journal = begin_run(job, tools, why, RunType.DRILL, phrases_of_reader(drill_request.command(job.name)))
    evidence = DrillEvidence(journal, drill_request)
    journal.attempt_begun()
    tools.history.heal(tools.alive, journal.now)
    try:
        report = _drill(evidence)
    except OrchestratorError as error:
        again = "drill again; it starts from the beginning"
        error.hint = evidence.with_next(error.hint)
        what = "no drill: " if outcome_of(error) is Outcome.REFUSED else DRILL_FAILED
        report = _put_off(evidence, error) or journal.ended_by(
            error, continues=again, what=what, found=evidence.differences
        )
    except OSError as error:
        hint = evidence.with_next(f"see whether {folder_of(job, tools.state)} can be written")
        report = journal.ended(Outcome.FAILED, f"{DRILL_FAILED}{error}", hint=hint)
    drilled = evidence.evidence(report.outcome, report.why)
    tools.history.drills.keep(journal.run, job.name, drilled, journal.now)
    if report.outcome in (Outcome.FAILED, Outcome.REFUSED) and not drill_request.self_test:
        call_hooks(report.outcome.value, journal, report)
    return DrillRunResult(report=report, drilled=drilled, findings=evidence.findings)


def _put_off(evidence: DrillEvidence, error: OrchestratorError) -> RunReport | None:
    """Return the report "waiting" when a host or its link ended the restore test: it shows nothing about the copy. Else None.

    Why not for a stream of datasets that breaks off: a copy that cannot be sent breaks off too.
    """
    journal, datasets = evidence.journal, evidence.journal.tools.engine.needs_datasets
    hosts = [journal.job.target.location.host, journal.job.source.host if datasets else None]
    host = next(filter(None, hosts), None)  # where both sides have a host, the evidence names the right one
    if host is None or evidence.differences:
        return None
    if not isinstance(error, HostUnreachable) and (datasets or not isinstance(error, StreamBroken)):
        return None
    hint = f"{error.hint}; one that [drill] asks for comes again with the next run"
    why = f"no drill for now: {_named(error) or host.name} cannot be reached: {error.why}"
    return journal.ended(Outcome.WAITING, why, hint=hint, evidence=error_evidence(error))


def _named(error: OrchestratorError) -> str | None:
    """Return the host on which the failed program should run."""
    return error.evidence.host if isinstance(error, OutsideError) else None


def _drill(evidence: DrillEvidence) -> RunReport:
    job, tools = evidence.journal.job, evidence.journal.tools
    notes = f"{tools.state}/notes/drill-{job.name}"
    os.makedirs(notes, mode=0o700, exist_ok=True)
    if tools.engine.needs_datasets:
        from orchestrator.runner.drill.dataset_drill import drill_dataset_copies

        return drill_dataset_copies(evidence, notes)
    folder = folder_of(job, tools.state)
    refused = refuse_place(job, folder)
    if refused:
        return evidence.refuse(refused)
    with scratch_folder(folder, tools.state, stop=tools.stop, patience=tools.lock_wait) as inherit:
        return _drill_tree(evidence, tools.writer(inherit), f"{folder}/tree", notes)


def _drill_tree(evidence: DrillEvidence, writer: Writer, tree: str, notes: str) -> RunReport:
    journal = evidence.journal
    job, tools = journal.job, journal.tools
    lot = trees.choose_files(journal, writer, notes, whole=evidence.drill_request.whole, seed=evidence.seed)
    if isinstance(lot, Refusal):
        return evidence.refuse(lot)
    evidence.point, evidence.of_files, evidence.of_bytes = lot.point.name, lot.of_files, lot.of_bytes
    with lock_point(job, tools.state, lot.point.name):
        took = trees.restore_files(lot, journal, writer, tree, notes)
        if isinstance(took, Refusal):
            return evidence.refuse(took)
        evidence.restore_s, evidence.files, evidence.bytes = took, len(lot.pieces), lot.size
        if evidence.drill_request.self_test:
            harmed = trees.damage_files(lot, tree, evidence.seed)
            return evidence.end_self_test(harmed, trees.compare_files(lot, journal, writer, tree, notes))
        reading = trees.compare_files(lot, journal, writer, tree, notes)
        if not reading.sound:
            evidence.note(reading.findings)  # an unreachable host from here on does not remove this finding
            return _report_damage(evidence, lot, reading, trees.compare_copy(lot, journal, writer, notes), tree)
    return _check(evidence, tree) or _done(evidence, lot, took)


def _report_damage(
    evidence: DrillEvidence, lot: trees.FileSample, reading: VerificationResult, copy: VerificationResult, tree: str
) -> RunReport:
    """Report a difference: a second reading shows whether the copy is damaged, or else the restore path."""
    name = evidence.journal.job.name
    point, damaged = (
        lot.point.name,
        [each for each in copy.findings if each.verdict not in (Verdict.EXTRA, Verdict.UNPROVED)],
    )
    if damaged:  # also where somebody changed its metadata alone: else this machine would be blamed
        evidence.findings = tuple(damaged)
        hint = (
            f"`poolferry run {name}` copies damaged files again from the source; `poolferry verify {name}` reads all of the point; "
            "look at the disk's health (smartctl -a)"
        )
        return evidence.fail(f"{DAMAGE_FOUND}{point}: {describe_counts(copy)}: {describe_first_findings(copy)}", hint)
    hint = (
        f"the copy itself was read again and is sound: look at the disk below {tree} and at this machine's memory, "
        f"then `poolferry drill {name} --seed {evidence.seed}`"
    )
    told = f"{describe_counts(reading)}: {describe_first_findings(reading)}"
    return evidence.fail(f"of point {point} was not restored correctly: files differ from the manifest: {told}", hint)


def _done(evidence: DrillEvidence, lot: trees.FileSample, took: float) -> RunReport:
    told = (
        f"{evidence.told_files()} of point {lot.point.name} were restored and match the manifest: {show_size(lot.size)}"
    )
    return evidence.journal.ended(
        Outcome.DONE, f"{told} in {show_duration(took)}{user_check_text(evidence)}{evidence.estimate()}"
    )


def _check(evidence: DrillEvidence, tree: str) -> RunReport | None:
    """Run the owner's check on the restored data; None: it succeeded, or none is configured."""
    return (
        run_user_check(evidence, user_check_command(evidence, tree))
        if evidence.journal.job.drill.check_command
        else None
    )
