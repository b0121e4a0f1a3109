"""The story of a drill of datasets: look, clone or receive, choose, compare with the source's snapshots, drop. Changes things."""

from dataclasses import replace

from orchestrator.domain.errors import ProofFailed
from orchestrator.domain.plan import Refusal
from orchestrator.domain.rehearsal import Rehearsal
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.engines.contract import Asked
from orchestrator.process.executor import Writer
from orchestrator.runner import drill_datasets as datasets
from orchestrator.runner.comparing import Compared, heals
from orchestrator.runner.drill_sheet import Sheet
from orchestrator.runner.locks import locked
from orchestrator.runner.reading import PART, tell_counts, tell_first


def drill_copies(sheet: Sheet, notes: str) -> RunReport:
    """One drill of a copy of datasets. Raises: OrchestratorError."""
    job, tools = sheet.journal.job, sheet.journal.tools
    if job.drill.check_command:
        sheet.journal.warn("check-command is for drills of files, and is not run for datasets")
    with locked(job, tools.state, wait=tools.stop.wait, patience=tools.lock_wait) as inherit:
        writer = tools.writer(inherit)
        engine, asked = datasets.rehearser(sheet.journal), Asked(now=tools.clock(), notes=notes)
        seen = engine.survey_both(job, asked, writer, content=True)
        rehearsal = engine.plan_rehearsal(job, seen, asked, whole=sheet.wish.whole)
        if isinstance(rehearsal, Refusal):
            return sheet.refuse(rehearsal)
        sheet.point = rehearsal.point
        began = tools.monotonic()
        with datasets.made(rehearsal, sheet.journal, writer, notes):
            took = tools.monotonic() - began
            return _compare(sheet, seen, rehearsal, writer, asked, took)


def _compare(sheet: Sheet, seen: object, rehearsal: Rehearsal, writer: Writer, asked: Asked, took: float) -> RunReport:
    """`took`: how long making it took, which for a real receive is the time of a restore; of clones reading is what takes time."""
    journal, whole, notes = sheet.journal, sheet.wish.whole, asked.notes
    chosen = datasets.choose(rehearsal, journal, writer, notes, whole=whole, seed=sheet.seed)
    sheet.of_files, sheet.of_bytes = chosen.of_files, chosen.of_bytes
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
    return _judge(sheet, rehearsal, replace(compared, heals=heals(journal, seen, asked, compared)))


def _judge(sheet: Sheet, rehearsal: Rehearsal, compared: Compared) -> RunReport:
    journal, reading = sheet.journal, compared.reading
    job, point = journal.job, rehearsal.point
    for found in compared.source.findings[:5] if compared.source else ():
        journal.warn(f"of the source: {found.detail}; the copy of it is read, but cannot be compared")
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
    many = len(rehearsal.parts)
    of = show_count(many, "dataset") if many == rehearsal.of else f"{many} of {show_count(rehearsal.of, 'dataset')}"
    how = "received anew" if sheet.wish.whole else "in clones"
    told = f"{sheet.told_files()} of point {point} ({of}, {how}) are as on the source: {show_size(sheet.bytes)}"
    return journal.ended(Outcome.DONE, f"{told} in {show_duration(sheet.restore_s)}{sheet.estimate()}")
