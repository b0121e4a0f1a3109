"""`drill`: restores a sample of the newest verified point, or all of it, to scratch and compares it; the evidence stays.

Why a part of a job, and no job of its own: it needs the disk that is here, the point that [keep] must leave alone
meanwhile, and the window in which the job may work; all of that belongs to the job whose copies are drilled.
"""

import contextlib
import os

from orchestrator.domain.drill_result import DrillEnd
from orchestrator.domain.errors import (
    HostUnreachable,
    NotNow,
    OrchestratorError,
    OutsideError,
    Stopped,
    StreamBroken,
)
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import Reading
from orchestrator.domain.run import Kind, Outcome, RunReport
from orchestrator.domain.units import show_duration, show_size
from orchestrator.planners.drill import Past, decide_drill
from orchestrator.process.executor import Writer
from orchestrator.runner.context import Tools
from orchestrator.runner.drill import files as trees
from orchestrator.runner.drill.evidence import DrillWish, Sheet
from orchestrator.runner.drill.scratch_dir import folder_of, refuse_place, scratch_folder
from orchestrator.runner.drill.user_check import check, check_command, told_checked
from orchestrator.runner.hooks import call_hooks
from orchestrator.runner.locks import reading as held
from orchestrator.runner.run_recorder import begin, evidence_of
from orchestrator.runner.verify.read_files import DAMAGE, tell_counts, tell_first


def due_drill(job: Job, tools: Tools) -> str:
    """ "whole", "sample", or "": what the job's [drill] owes at its place now."""
    if not job.drill.asked:
        return ""
    known = tools.history.drills.of(job.name)
    past = [Past(at=each.at, drilled=each.drilled) for each in known if each.drilled.place == job.target.name]
    return decide_drill(job.drill, past, tools.clock())


def drill_when_due(job: Job, tools: Tools) -> DrillEnd | None:
    """Run the restore test that [drill] makes due after a successful run; None: none is due."""
    kind = due_drill(job, tools)
    if not kind:
        _tidy(job, tools)
        return None
    why = "[drill] whole-every" if kind == "whole" else "[drill] every"
    return drill_job(job, tools, DrillWish(whole=kind == "whole"), why=f"{kind} drill, as {why} asks")


def _tidy(job: Job, tools: Tools) -> None:
    """Remove what a killed restore test left."""
    folder = folder_of(job, tools.state)
    if folder.startswith("/") and os.path.isdir(folder):
        with (
            contextlib.suppress(OrchestratorError, OSError),
            scratch_folder(folder, tools.state, stop=tools.stop, patience=0.0),
        ):
            pass


def drill_job(job: Job, tools: Tools, wish: DrillWish, *, why: str = "drill") -> DrillEnd:
    """Run one restore test and record it. All errors are in the report; only a lost history raises."""
    journal = begin(job, tools, why, Kind.DRILL)
    sheet = Sheet(journal, wish)
    journal.attempt_begun()
    tools.history.heal(tools.alive, journal.now)
    try:
        report = _drill(sheet)
    except NotNow as error:
        report = journal.ended(Outcome.WAITING, error.why, cure=error.cure)
    except Stopped as error:
        report = journal.ended(Outcome.INTERRUPTED, tools.stop.reason or error.why, cure="drill again; it begins anew")
    except OrchestratorError as error:
        journal.attempt_ended(error)
        report = _put_off(sheet, error) or journal.ended(
            Outcome.FAILED, f"the drill failed: {error.why}", cure=error.cure,
            evidence=(*sheet.differences, *evidence_of(error)),
        )  # fmt: skip
    except OSError as error:
        cure = f"see whether {folder_of(job, tools.state)} can be written"
        report = journal.ended(Outcome.FAILED, f"the drill failed: {error}", cure=cure)
    drilled = sheet.evidence(report.outcome, report.why)
    tools.history.drills.keep(journal.run, job.name, drilled, journal.now)
    if report.outcome in (Outcome.FAILED, Outcome.REFUSED) and not wish.proves:
        call_hooks(report.outcome.value, journal, report)
    return DrillEnd(report=report, drilled=drilled, findings=sheet.findings)


def _put_off(sheet: Sheet, error: OrchestratorError) -> RunReport | None:
    """Return the report "waiting" when a host or its link ended the restore test: it says nothing about the copy. Else None.

    Why not for a stream of datasets that breaks off: a copy that cannot be sent does so too.
    """
    journal, datasets = sheet.journal, sheet.journal.tools.engine.wants_datasets
    hosts = [journal.job.target.location.host, journal.job.source.host if datasets else None]
    host = next(filter(None, hosts), None)  # which one it is, where both have one, stands in the evidence
    if host is None or sheet.differences:
        return None
    if not isinstance(error, HostUnreachable) and (datasets or not isinstance(error, StreamBroken)):
        return None
    cure = f"{error.cure}; then `poolferry drill {journal.job.name}`; one that [drill] asks for comes again with the next run"
    why = f"no drill for now: {_named(error) or host.name} cannot be reached: {error.why}"
    return journal.ended(Outcome.WAITING, why, cure=cure, evidence=evidence_of(error))


def _named(error: OrchestratorError) -> str | None:
    """Return the host on which the failed program should run."""
    return error.evidence.host if isinstance(error, OutsideError) else None


def _drill(sheet: Sheet) -> RunReport:
    job, tools = sheet.journal.job, sheet.journal.tools
    notes = f"{tools.state}/notes/drill-{job.name}"
    os.makedirs(notes, mode=0o700, exist_ok=True)
    if tools.engine.wants_datasets:
        from orchestrator.runner.drill.dataset_drill import drill_copies

        return drill_copies(sheet, notes)
    folder = folder_of(job, tools.state)
    refused = refuse_place(job, folder)
    if refused:
        return sheet.refuse(refused)
    with scratch_folder(folder, tools.state, stop=tools.stop, patience=tools.lock_wait) as inherit:
        return _drill_tree(sheet, tools.writer(inherit), f"{folder}/tree", notes)


def _drill_tree(sheet: Sheet, writer: Writer, tree: str, notes: str) -> RunReport:
    journal = sheet.journal
    job, tools = journal.job, journal.tools
    lot = trees.choose_lot(journal, writer, notes, whole=sheet.wish.whole, seed=sheet.seed)
    if isinstance(lot, Refusal):
        return sheet.refuse(lot)
    sheet.point, sheet.of_files, sheet.of_bytes = lot.point.name, lot.of_files, lot.of_bytes
    with held(job, tools.state, lot.point.name):
        took = trees.bring(lot, journal, writer, tree, notes)
        if isinstance(took, Refusal):
            return sheet.refuse(took)
        sheet.restore_s, sheet.files, sheet.bytes = took, len(lot.pieces), lot.size
        if sheet.wish.proves:
            harmed = trees.harm(lot, tree, sheet.seed)
            return sheet.prove(harmed, trees.compare(lot, journal, writer, tree, notes))
        reading = trees.compare(lot, journal, writer, tree, notes)
        if not reading.sound:
            sheet.note(reading.findings)  # who cannot be reached from here on does not wash it away
            return _found(sheet, lot, reading, trees.compare_copy(lot, journal, writer, notes), tree)
    return _check(sheet, tree) or _done(sheet, lot, took)


def _found(sheet: Sheet, lot: trees.Lot, reading: Reading, copy: Reading, tree: str) -> RunReport:
    """Report a difference: a second reading shows whether the copy is damaged, or else the restore path."""
    name = sheet.journal.job.name
    point, damaged = lot.point.name, [each for each in copy.findings if each.verdict in DAMAGE]
    if damaged:
        sheet.findings = tuple(damaged)
        cure = (
            f"`poolferry run {name}` copies damaged files again from the source; `poolferry verify {name}` reads all of the point; "
            "look at the disk's health (smartctl -a)"
        )
        return sheet.fail(f"the copy is damaged in point {point}: {tell_counts(copy)}: {tell_first(copy)}", cure)
    cure = (
        f"the copy itself was read again and is sound: look at the disk below {tree} and at this machine's memory, "
        f"then `poolferry drill {name} --seed {sheet.seed}`"
    )
    told = f"{tell_counts(reading)}: {tell_first(reading)}"
    return sheet.fail(f"of point {point} came back otherwise than promised: {told}", cure)


def _done(sheet: Sheet, lot: trees.Lot, took: float) -> RunReport:
    told = f"{sheet.told_files()} of point {lot.point.name} came back as promised: {show_size(lot.size)}"
    return sheet.journal.ended(Outcome.DONE, f"{told} in {show_duration(took)}{told_checked(sheet)}{sheet.estimate()}")


def _check(sheet: Sheet, tree: str) -> RunReport | None:
    """Run the owner's check on the restored data; None: it succeeded, or none is configured."""
    return check(sheet, check_command(sheet, tree)) if sheet.journal.job.drill.check_command else None
