"""A restore test of datasets: survey, clone or receive, choose, compare with the source's snapshots, drop."""

import contextlib
import os

from orchestrator.domain.drill_plan import Rehearsal
from orchestrator.domain.errors import HostUnreachable, ProofFailed
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.plan import Refusal
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.engines.contract import Asked
from orchestrator.process.executor import Writer
from orchestrator.runner.drill import datasets
from orchestrator.runner.drill.evidence import Sheet
from orchestrator.runner.drill.user_check import check, owner_command, told_checked
from orchestrator.runner.locks import locked
from orchestrator.runner.verify.compare_sides import Compared, heals
from orchestrator.runner.verify.read_files import PART, tell_counts, tell_first


def drill_copies(sheet: Sheet, notes: str) -> RunReport:
    """Run one restore test of a copy of datasets. Raises: OrchestratorError."""
    job, tools = sheet.journal.job, sheet.journal.tools
    with locked(job, tools.state, wait=tools.stop.wait, patience=tools.lock_wait) as inherit:
        writer = tools.writer(inherit)
        engine, asked = datasets.rehearser(sheet.journal), Asked(now=tools.clock(), notes=notes)
        seen = _look(sheet, writer, asked)
        known = tools.history.kits.of(job.name)
        kit = known.kit.content if known else None
        rehearsal = engine.plan_rehearsal(job, seen, asked, whole=sheet.wish.whole, kit=kit)
        if isinstance(rehearsal, Refusal):
            return _refused(sheet, rehearsal)
        sheet.point = rehearsal.point
        began = tools.monotonic()
        with datasets.made(rehearsal, sheet.journal, writer, notes):
            took = tools.monotonic() - began
            return _compare(sheet, seen, rehearsal, writer, asked, took)


def _look(sheet: Sheet, writer: Writer, asked: Asked) -> object:
    """Survey both sides; or only the copy, when just the source's host does not answer. Raises: OrchestratorError."""
    job, engine = sheet.journal.job, datasets.rehearser(sheet.journal)
    try:
        return engine.survey_both(job, asked, writer, content=True)
    except HostUnreachable as error:
        if job.source.host is None or job.source.host == job.target.location.host:
            raise
        away = f"the source's host {job.source.host.name} cannot be reached ({error.why})"
        return engine.survey_copy(job, writer, away=away)


def _refused(sheet: Sheet, refusal: Refusal) -> RunReport:
    """Return the report when nothing can be tested, or when the survey alone shows a bad copy."""
    if refusal.outcome is not Outcome.FAILED:
        return sheet.refuse(refusal)
    sheet.journal.decided(refusal)
    sheet.differences = refusal.evidence
    return sheet.fail(refusal.why, refusal.cure)


def _compare(sheet: Sheet, seen: object, rehearsal: Rehearsal, writer: Writer, asked: Asked, took: float) -> RunReport:
    """Compare the chosen files. `took`: the restore time of a real receive; for clones the reading time counts."""
    journal, whole, notes = sheet.journal, sheet.wish.whole, asked.notes
    chosen = datasets.choose(rehearsal, journal, writer, notes, whole=whole, seed=sheet.seed)
    sheet.of_files, sheet.of_bytes = chosen.of_files, chosen.of_bytes
    if not chosen.pieces and rehearsal.sealed:
        return _sealed(sheet, rehearsal, took)
    if not chosen.pieces:
        why = f"the newest snapshots of {journal.job.target.location} hold no file"
        return sheet.refuse(Refusal(why=why, evidence=(), cure="look what the source holds"))
    harmed = datasets.harm(rehearsal, chosen, journal, writer, notes) if sheet.wish.proves else ()
    compared = datasets.read(seen, rehearsal, chosen, journal, writer, notes)
    sheet.files, sheet.bytes = len(chosen.pieces), chosen.size
    sheet.restore_s = took if whole else compared.reading.took_s
    if sheet.wish.proves:
        return sheet.prove(harmed, compared.reading)
    read, wanted = compared.reading.files_read, len(chosen.pieces)
    if compared.reading.sound and read != wanted:
        raise ProofFailed(
            f"{read} files were read, and there should be {wanted}: nothing is proved", cure="report this"
        )
    return _judge(sheet, rehearsal, replace(compared, heals=heals(journal, seen, asked, compared)), notes)


def _judge(sheet: Sheet, rehearsal: Rehearsal, compared: Compared, notes: str) -> RunReport:
    journal, reading = sheet.journal, compared.reading
    job, point = journal.job, rehearsal.point
    for found in compared.source.findings[:5] if compared.source else ():
        journal.warn(f"of what it is compared with: {found.detail}; the copy of it is read, but cannot be compared")
    if not reading.sound:
        sheet.note(reading.findings)
        sheet.differences += tuple(f"to heal {line}" for line in compared.heals)
        if not sheet.wish.whole:  # a clone is the copy's own blocks; what a receive wrote is not
            journal.tools.history.verified(
                job.name, job.target.name, point, reading=reading, now=journal.now, scope=PART
            )
        cure = (
            f"`poolferry verify {job.name} --content` reads all of it; `zpool status -v` after `zpool scrub` names what is "
            "damaged; what heals it is told below"
        )
        told = f"{tell_counts(reading)}: {tell_first(reading)}"
        return sheet.fail(f"of point {point} came back otherwise than the source's snapshots: {told}", cure)
    if job.drill.check_command and (ended := _check(sheet, rehearsal, notes)) is not None:
        return ended
    many, alone = len(rehearsal.parts), sum(part.alone for part in rehearsal.parts)
    of = show_count(many, "dataset") if many == rehearsal.of else f"{many} of {show_count(rehearsal.of, 'dataset')}"
    how = "received anew" if sheet.wish.whole else "in clones"
    seen = "can be read" if alone == many else "are as on the source"
    told = f"{sheet.told_files()} of point {point} ({of}, {how}) {seen}: {show_size(sheet.bytes)}"
    remarks = "".join(f"; {remark}" for remark in (*rehearsal.remarks, rehearsal.proves) if remark)
    took = show_duration(sheet.restore_s)
    return journal.ended(Outcome.DONE, f"{told} in {took}{told_checked(sheet)}{sheet.estimate()}{remarks}")


def _sealed(sheet: Sheet, rehearsal: Rehearsal, took: float) -> RunReport:
    """Return the report when nothing can be read without a key: it states only what was tried."""
    if sheet.wish.proves:
        why = "no file of the copy can be read without its key, so none can be damaged on purpose"
        return sheet.refuse(Refusal(why=why, evidence=(), cure="zfs load-key on the copy, and drill again"))
    sheet.restore_s = took
    return sheet.journal.ended(Outcome.DONE, f"{rehearsal.proves} (point {rehearsal.point}, in {show_duration(took)})")


def _check(sheet: Sheet, rehearsal: Rehearsal, notes: str) -> RunReport | None:
    """Run the owner's check on clones or received data; None: it succeeded, or could not run, which is a warning."""
    journal, tree = sheet.journal, f"{notes}/tree"
    command = datasets.rehearser(journal).rehearsal_check(journal.job, rehearsal, tree, owner_command(sheet, tree))
    if isinstance(command, Refusal):
        journal.warn(f"check-command was not run: {command.why}; {command.cure}")
        return None
    try:
        return check(sheet, command)
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(tree)
