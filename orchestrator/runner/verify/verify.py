"""`verify`: a point is read again against its manifest, or compared with the source; the verdict is recorded."""

import contextlib
import os
import shlex
from collections import Counter
from collections.abc import Sequence

from orchestrator.domain.command_line import quoted
from orchestrator.domain.errors import OrchestratorError, VerificationFailed
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.hint_phrases import phrases_of_reader
from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name
from orchestrator.domain.plan import Refusal, TreeVerification
from orchestrator.domain.point import Finding, RestorePoint, Verdict, VerificationResult, VerifyJobResult
from orchestrator.domain.problem import ProblemType
from orchestrator.domain.run import Outcome, RunReport, RunType, unrecorded_report
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.engines.contract.comparison import CopyComparer
from orchestrator.engines.contract.engine import implements
from orchestrator.planners.restore import choose_point
from orchestrator.process.executor import Writer
from orchestrator.runner.after_run import is_verification_due
from orchestrator.runner.context import RunContext
from orchestrator.runner.last_look import find_points, look_at_place, note_seen
from orchestrator.runner.locks import lock_point
from orchestrator.runner.manifests import require_authentic
from orchestrator.runner.problems import end_mirror_begun, follow_renamed_place, look_for_points
from orchestrator.runner.run_recorder import ENDS_A_RUN, RunRecorder, begin_run, fetch_file
from orchestrator.runner.source_state import remember_refusal
from orchestrator.runner.verify.compare_sides import compare_copy, comparison_report
from orchestrator.runner.verify.read_files import DAMAGE, describe_counts, read_tree, verify_tree

_SHOWN = 5  # names in warnings


def verify_job(
    job: Job,
    tools: RunContext,
    *,
    point: str | None = None,
    against_source: bool = False,
    content: bool = False,
    why: str = "",
) -> VerifyJobResult:
    """Read one point (the newest, if none is named) and report all differences from its manifest.

    `content`: also compare contents, where the usual verification is a survey of both sides. `why`: for the records; empty: it says itself.
    """
    if point and (wrong := _refuse_name(job, tools, point)):
        return VerifyJobResult(report=wrong, point=point, reading=None)
    words = (
        *(("--point", point) if point else ()), *(("--source",) if against_source else ()), *(("--content",) if content else ()),
    )  # fmt: skip
    typed = shlex.join(("poolferry", "verify", job.name, *words))
    why = why or "verify" + (f" point {point}" if point else "")
    journal = begin_run(job, tools, why, RunType.VERIFY, phrases_of_reader(typed))
    journal.attempt_begun()
    try:
        if implements(tools.engine, CopyComparer):
            return _compare(journal, tools.writer(()), tools.engine, point, content or against_source)
        return _verify(journal, tools.writer(()), point, against_source)
    except ENDS_A_RUN as error:
        report = journal.ended_by(error, continues="verify again; it starts from the beginning")
    return VerifyJobResult(report=report, point=point, reading=None)


def _refuse_name(job: Job, tools: RunContext, name: str) -> RunReport | None:
    """Return the report for a name that no point ever had; None: one has it, or is gone, or the look fails, which is to be recorded.

    Why unrecorded: a mistyped name says nothing about the copies.
    """
    known = tools.history.point_names(job.name, job.target.name)
    try:
        points = look_at_place(
            job, tools.engine, tools.writer(()), held=lambda: known, remembered=lambda: tools.history.memory(job.name)
        )
    except OrchestratorError:
        return None
    chosen = choose_point(points, point=name, at=None)
    if not (points and isinstance(chosen, Refusal)) or known - {each.name for each in points}:
        return None
    return unrecorded_report(job.name, Outcome.REFUSED, chosen.why, hint=chosen.hint, evidence=chosen.evidence)


def _verify(journal: RunRecorder, writer: Writer, name: str | None, against_source: bool) -> VerifyJobResult:
    job, tools = journal.job, journal.tools
    points = look_for_points(journal, writer)
    chosen = choose_point(points, point=name, at=None)
    if isinstance(chosen, Refusal):
        return VerifyJobResult(
            report=journal.ended(Outcome.REFUSED, chosen.why, hint=chosen.hint, evidence=chosen.evidence),
            point=name,
            reading=None,
        )
    notes = f"{tools.state}/notes/verify-{job.name}"
    os.makedirs(notes, mode=0o700, exist_ok=True)
    with lock_point(job, tools.state, chosen.name):
        work = TreeVerification(point=chosen, tree=chosen.tree, apart=chosen.apart, workers=job.verify.workers)
        journal.say(f"reading point {chosen.name} at {chosen.tree}")
        reading = verify_tree(work, journal, writer, notes)
        if chosen.unfinished and reading.sound:
            end_mirror_begun(journal)  # the run that was to change it had not changed anything yet
        source = _read_source(chosen, journal, writer, notes) if against_source else None
    report = _judge(journal, chosen, reading, source, beside=_look_beside(journal, writer, notes))
    return VerifyJobResult(report=report, point=chosen.name, reading=reading, source=source)


def _look_beside(journal: RunRecorder, writer: Writer, notes: str) -> str:
    """Return what is damaged beside the copies, and record it; empty: nothing."""
    from orchestrator.runner.kit_digests import record_damage_beside

    return record_damage_beside(journal, writer, notes)


def _compare(
    journal: RunRecorder, writer: Writer, engine: CopyComparer, name: str | None, content: bool
) -> VerifyJobResult:
    """Verify a copy without a manifest. When [verify] every is due, its contents are compared too."""
    job, tools = journal.job, journal.tools
    follow_renamed_place(journal, writer)
    chosen = choose_point(find_points(job, tools, writer), point=name, at=None) if name else None
    if not isinstance(chosen, Refusal):
        content = content or is_verification_due(journal)
        with lock_point(job, tools.state, chosen.name) if chosen else contextlib.nullcontext():
            compared = compare_copy(
                journal, writer, engine, f"{tools.state}/notes/verify-{job.name}",
                point=chosen.name if chosen else None, content=content,
            )  # fmt: skip
        if not isinstance(compared, Refusal):
            note_seen(job, tools)
            report = comparison_report(journal, compared, content=content)
            point = compared.comparison.point
            return VerifyJobResult(report=report, point=point, reading=compared.reading, source=compared.source)
        find_points(job, tools, writer)  # which says so if the place lacks the copies that it held
        remember_refusal(journal, compared)
        chosen = compared
    report = journal.ended(Outcome.REFUSED, chosen.why, hint=chosen.hint, evidence=chosen.evidence)
    return VerifyJobResult(report=report, point=name, reading=None)


def _read_source(point: RestorePoint, journal: RunRecorder, writer: Writer, notes: str) -> VerificationResult:
    """Read the source against the same manifest: new or edited files are no error there, rotten ones are."""
    if point.manifest is None:
        raise VerificationFailed(f"point {point.name} has no manifest", hint="choose another point")
    tree = journal.job.tree
    journal.say(f"reading the source {tree}")
    manifest = fetch_file(point.manifest, journal, writer, notes)
    require_authentic(point, manifest, journal, writer, notes)
    work = replace(journal.tools.trees.comparison_of(journal.job, point, tree.root), restored=False, of_source=True)
    if not tree.parts:
        return read_tree(work, manifest, journal, writer, notes)
    found = []
    for part, folder in zip(tree.parts, tree.folders, strict=True):
        prefix = part.encode("utf-8", "surrogateescape")
        reading = read_tree(replace(work, tree=folder, prefix=prefix), manifest, journal, writer, notes)
        found.append(_below(prefix, reading))
    return _joined(found)


def _below(prefix: bytes, reading: VerificationResult) -> VerificationResult:
    """Return the result of one of several folders, with paths as the point has them."""
    findings = (replace(each, path=prefix + b"/" * bool(each.path) + each.path) for each in reading.findings)
    return replace(reading, findings=tuple(findings))


def _joined(found: list[VerificationResult]) -> VerificationResult:
    """Return the result of several folders as one."""
    counts: Counter[Verdict] = Counter()
    for each in found:
        counts.update(dict(each.counts))
    return VerificationResult(
        entries=sum(each.entries for each in found), files_read=sum(each.files_read for each in found),
        bytes_read=sum(each.bytes_read for each in found), took_s=sum(each.took_s for each in found),
        counts=tuple(counts.items()), findings=tuple(finding for each in found for finding in each.findings),
    )  # fmt: skip


def _bring_back(job: Job, point: RestorePoint, path: bytes) -> str:
    """Return the command that restores one file of the point to its place in the source."""
    name = path.decode("utf-8", "surrogateescape")
    words = (
        "poolferry",
        "restore",
        "run",
        job.name,
        "--point",
        point.name,
        "--path",
        name,
        "--to",
        str(job.source / name),
        "--aside",
    )
    return show_name(shlex.join(words))


def _warn_of_source(
    journal: RunRecorder, point: RestorePoint, source: VerificationResult
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return what is rotten at the source, and what could not be read there, once both were warned of."""
    rotten = tuple(found for found in source.findings if found.verdict is Verdict.ROTTEN)
    unread = tuple(found for found in source.findings if found.verdict is Verdict.UNREADABLE)
    for found in rotten:
        journal.warn(
            f"rotten at the source: {show_name(found.path)} ({found.detail}); the good copy is in point {point.name} and stays"
        )
    for found in unread[:_SHOWN]:
        journal.warn(f"cannot be read at the source: {show_name(found.path) or '.'} ({found.detail})")
    return rotten, unread


def _note_rotten_source(journal: RunRecorder, point: RestorePoint, rotten: Sequence[Finding], *, whole: bool) -> None:
    """Record which files are rotten at the source, until a reading finds none: no run sees them, and a good one does not end it."""
    job, place = journal.job.name, journal.job.target.name
    if rotten:
        paths = sorted(os.fsdecode(found.path) for found in rotten)
        kind, why = ProblemType.SOURCE_ROTTEN, point.name
        journal.verdicts.problems.open(job, place, kind, "", why=why, paths=paths, count=len(paths), now=journal.now)
    elif whole:
        by = "all of the source was read, and none was found"
        journal.tools.history.problems.end(job, place, (ProblemType.SOURCE_ROTTEN,), None, by=by, now=journal.now)


def _hint_of_difference(job: str, point: RestorePoint, reading: VerificationResult) -> str:
    """Return what helps where a point does not match its manifest."""
    if point.unfinished:
        return f"it is half written, as a run that changed it did not end: `poolferry run {job}` goes on with it"
    if any(found.verdict in DAMAGE for found in reading.findings):
        return (
            f"`poolferry run {job}` copies damaged files again from the source, and says what it cannot mend; look at the disk's health "
            "(smartctl -a)"
        )
    return (
        f"the copy was changed, its bytes are sound: `poolferry run {job}` mends what the newest point has alike, but removes nothing that "
        f"was added; to keep the rest as it is: poolferry points accept {job} --point {quoted(point.name)}"
    )


def _judge(
    journal: RunRecorder,
    point: RestorePoint,
    reading: VerificationResult,
    source: VerificationResult | None,
    *,
    beside: str,
) -> RunReport:
    rotten, unread = _warn_of_source(journal, point, source) if source else ((), ())
    if source:
        _note_rotten_source(journal, point, rotten, whole=not unread)
    read = (
        f"{show_count(reading.files_read, 'file')}, {show_size(reading.bytes_read)}, in {show_duration(reading.took_s)}"
    )
    if reading.sound and not rotten and beside:
        hint = f"`poolferry run {journal.job.name}` writes it anew; look at the disk's health, too (smartctl -a)"
        return journal.ended(Outcome.FAILED, f"{beside}; point {point.name} matches its manifest: {read}", hint=hint)
    if beside:
        journal.warn(beside)
    if reading.sound and not rotten and unread:
        why = f"point {point.name} matches its manifest: {read}; at the source {show_count(len(unread), 'entry', 'entries')} could not be read"
        return journal.ended(
            Outcome.INCOMPLETE,
            why,
            hint="all else of the source was judged; as root, or once what is named can be read, this judges it too: "
            f"`poolferry verify {journal.job.name} --source`",
        )
    if reading.sound and not rotten:
        unproved = dict(reading.counts).get(Verdict.UNPROVED, 0)
        left = (
            f"; {show_count(unproved, 'file')} could not be read, or was left out, when it was made, and so not copied"
            if unproved
            else ""
        )
        return journal.ended(Outcome.DONE, f"point {point.name} matches its manifest: {read}{left}")
    evidence = tuple(
        f"{show_name(found.path) or '.'}: {found.verdict.value}: {found.detail}"
        for found in (*reading.findings, *rotten)[:50]
    )
    if reading.sound:
        hint = f"bring the good copy back, the rotten one is kept: {_bring_back(journal.job, point, rotten[0].path)}"
        return journal.ended(
            Outcome.FAILED,
            f"rotten at the source: {show_count(len(rotten), 'file')}; point {point.name} is sound",
            hint=hint,
            evidence=evidence,
        )
    hint = _hint_of_difference(journal.job.name, point, reading)
    return journal.ended(
        Outcome.FAILED,
        f"point {point.name} does not match its manifest: {describe_counts(reading)}",
        hint=hint,
        evidence=evidence,
    )
