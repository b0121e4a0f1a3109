"""A restore test of datasets: survey, clone or receive, choose, compare with the source's snapshots, drop."""

import contextlib
import os

from orchestrator.domain.command_line import quoted
from orchestrator.domain.drill import DrillPlan
from orchestrator.domain.errors import HostUnreachable, VerificationFailed
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.plan import Refusal
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.process.executor import Writer
from orchestrator.runner.drill import datasets
from orchestrator.runner.drill.evidence import DrillEvidence
from orchestrator.runner.drill.user_check import run_user_check, user_check_text, user_command
from orchestrator.runner.last_look import find_points, note_seen
from orchestrator.runner.locks import lock_job
from orchestrator.runner.problems import follow_renamed_place, missing_parts
from orchestrator.runner.verify.compare_sides import ComparisonResult, repair_commands
from orchestrator.runner.verify.read_files import PART, describe_counts, describe_first_findings


def drill_dataset_copies(evidence: DrillEvidence, notes: str) -> RunReport:
    """Run one restore test of a copy of datasets. Raises: OrchestratorError."""
    job, tools = evidence.journal.job, evidence.journal.tools
    with lock_job(job, tools.state, wait=tools.stop.wait, patience=tools.lock_wait) as inherit:
        writer = tools.writer(inherit)
        engine, request = datasets.dataset_driller(evidence.journal), RunRequest(now=tools.clock(), notes=notes)
        follow_renamed_place(evidence.journal, writer)
        seen = _look(evidence, writer, request)
        known = tools.history.kits.of(job.name)
        kit = known.kit.content if known else None
        drill_plan = engine.plan_drill(job, seen, request, whole=evidence.drill_request.whole, kit=kit)
        if isinstance(drill_plan, Refusal):
            if drill_plan.outcome is not Outcome.FAILED:
                find_points(job, tools, writer)  # which says so if the place lacks the copies that it held
            return _refused(evidence, drill_plan)
        note_seen(job, tools)
        evidence.point = drill_plan.point
        began = tools.monotonic()
        with datasets.make_scratch_datasets(drill_plan, evidence.journal, writer, notes):
            took = tools.monotonic() - began
            return _compare(evidence, seen, drill_plan, writer, request, took)


def _look(evidence: DrillEvidence, writer: Writer, request: RunRequest) -> object:
    """Survey both sides; or only the copy, when just the source's host does not answer. Raises: OrchestratorError."""
    job, engine = evidence.journal.job, datasets.dataset_driller(evidence.journal)
    try:
        return engine.survey_both(job, request, writer, content=True)
    except HostUnreachable as error:
        if job.source.host is None or job.source.host == job.target.location.host:
            raise
        away = f"the source's host {job.source.host.name} cannot be reached ({error.why})"
        return engine.survey_copy(job, writer, away=away)


def _refused(evidence: DrillEvidence, refusal: Refusal) -> RunReport:
    """Return the report when nothing can be tested, or when the survey alone shows a bad copy."""
    if refusal.outcome is not Outcome.FAILED:
        return evidence.refuse(refusal)
    evidence.journal.decided(refusal)
    evidence.differences = refusal.evidence
    return evidence.fail(refusal.why, refusal.hint)


def _compare(
    evidence: DrillEvidence, seen: object, drill_plan: DrillPlan, writer: Writer, request: RunRequest, took: float
) -> RunReport:
    """Compare the chosen files. `took`: the restore time of a real receive; for clones the reading time counts."""
    journal, whole, notes = evidence.journal, evidence.drill_request.whole, request.notes
    chosen = datasets.choose_files(drill_plan, journal, writer, notes, whole=whole, seed=evidence.seed)
    evidence.of_files, evidence.of_bytes = chosen.of_files, chosen.of_bytes
    if not chosen.pieces and drill_plan.encrypted_steps:
        return _drill_encrypted(evidence, drill_plan, took)
    if not chosen.pieces:
        why = f"the newest snapshots of {journal.job.target.location} hold no file"
        return evidence.refuse(Refusal(why=why, evidence=(), hint="look what the source holds"))
    harmed = (
        datasets.damage_files(drill_plan, chosen, journal, writer, notes) if evidence.drill_request.self_test else ()
    )
    compared = datasets.compare_files(seen, drill_plan, chosen, journal, writer, notes)
    evidence.files, evidence.bytes = len(chosen.pieces), chosen.size
    evidence.restore_s = took if whole else compared.reading.took_s
    if evidence.drill_request.self_test:
        return evidence.end_self_test(harmed, compared.reading)
    read, wanted = compared.reading.files_read, len(chosen.pieces)
    if compared.reading.sound and read != wanted:
        raise VerificationFailed(
            f"read {show_count(read, 'file')}, and there should be {wanted}: nothing is verified", hint="report this"
        )
    return _judge(
        evidence, drill_plan, replace(compared, heals=repair_commands(journal, seen, request, compared)), notes
    )


def _judge(evidence: DrillEvidence, drill_plan: DrillPlan, compared: ComparisonResult, notes: str) -> RunReport:
    journal, reading = evidence.journal, compared.reading
    job, point = journal.job, drill_plan.point
    for found in compared.source.findings[:5] if compared.source else ():
        journal.warn(f"of what it is compared with: {found.detail}; the copy of it is read, but cannot be compared")
    if not reading.sound:
        evidence.note(reading.findings)
        evidence.differences += tuple(f"to heal {line}" for line in compared.heals)
        if not evidence.drill_request.whole:  # a clone shares the copy's blocks; received data does not
            journal.verdicts.verified(job.name, job.target.name, point, reading=reading, now=journal.now, scope=PART)
        hint = (
            f"`poolferry verify {job.name} --content` reads all of it; `zpool status -v` after `zpool scrub` names what is "
            "damaged; how to repair it is shown below"
        )
        told = f"{describe_counts(reading)}: {describe_first_findings(reading)}"
        return evidence.fail(f"of point {point} differs from the source's snapshots: {told}", hint)
    if job.drill.check_command and (ended := _check(evidence, drill_plan, notes)) is not None:
        return ended
    many, alone = len(drill_plan.parts), sum(part.alone for part in drill_plan.parts)
    of = show_count(many, "dataset") if many == drill_plan.of else f"{many} of {show_count(drill_plan.of, 'dataset')}"
    how = "received again" if evidence.drill_request.whole else "in clones"
    seen = "can be read" if alone == many else "are as on the source"
    told = f"{evidence.told_files()} of point {point} ({of}, {how}) {seen}: {show_size(evidence.bytes)}"
    remarks = "".join(f"; {remark}" for remark in (*drill_plan.remarks, drill_plan.verifies) if remark)
    took = show_duration(evidence.restore_s)
    if lacking := _lacking(evidence, drill_plan):
        return _not_whole(evidence, drill_plan, lacking)
    return journal.ended(Outcome.DONE, f"{told} in {took}{user_check_text(evidence)}{evidence.estimate()}{remarks}")


def _drill_encrypted(evidence: DrillEvidence, drill_plan: DrillPlan, took: float) -> RunReport:
    """Return the report when nothing can be read without a key: it states only what was tried."""
    if evidence.drill_request.self_test:
        why = "no file of the copy can be read without its key, so none can be damaged on purpose"
        # Each dataset of a raw copy is its own encryption root (openzfs 15687).
        keys = f"zfs load-key -r {quoted(evidence.journal.job.target.location.path)}, where the copy lies"
        return evidence.refuse(Refusal(why=why, evidence=(), hint=keys))
    evidence.restore_s = took
    if lacking := _lacking(evidence, drill_plan):
        return _not_whole(evidence, drill_plan, lacking)
    return evidence.journal.ended(
        Outcome.DONE, f"{drill_plan.verifies} (point {drill_plan.point}, in {show_duration(took)})"
    )


def _lacking(evidence: DrillEvidence, drill_plan: DrillPlan) -> tuple[str, ...]:
    """Return the datasets that lack the point: by both sides, or as history knows where the source shows it no more."""
    job, tools = evidence.journal.job, evidence.journal.tools
    return drill_plan.lacking or missing_parts(tools.history.memory(job.name), job.target.name, drill_plan.point)


def _not_whole(evidence: DrillEvidence, drill_plan: DrillPlan, lacking: tuple[str, ...]) -> RunReport:
    """Report that a restore of the point would bring less than the source had, though all that is there is sound."""
    job = evidence.journal.job
    evidence.differences = tuple(f"{name} is not at point {drill_plan.point}" for name in lacking)
    count = f"{show_count(len(lacking), 'dataset')} of the source {'lacks' if len(lacking) == 1 else 'lack'} it"
    hint = (
        f"`poolferry run {job.name}` brings {'it' if len(lacking) == 1 else 'them'}, or says what hinders it; `poolferry restore "
        f"plan {job.name}` names whole points"
    )
    return evidence.fail(
        f"point {drill_plan.point} is not whole: {count}; what is there was restored and is sound", hint
    )


def _check(evidence: DrillEvidence, drill_plan: DrillPlan, notes: str) -> RunReport | None:
    """Run the owner's check on clones or received data; None: it succeeded, or could not run, which is a warning."""
    journal, tree = evidence.journal, f"{notes}/tree"
    command = datasets.dataset_driller(journal).drill_check(journal.job, drill_plan, tree, user_command(evidence, tree))
    if isinstance(command, Refusal):
        journal.warn(f"check-command was not run: {command.why}; {command.hint}")
        return None
    try:
        return run_user_check(evidence, command)
    finally:
        with contextlib.suppress(OSError):
            os.rmdir(tree)
