"""Work after a successful run: verify if it is due, let [keep] remove points, store the history and recovery kits beside the copies.

A kit is what a restore needs when this machine is lost. One of datasets is made once a day after a copy and kept in history too.
Beside copies of files lie a recovery page, our configuration, renewed once a day and when it has changed, and the history, renewed
by each run that changed something. A failure to store any of this is a warning: the copy itself is good.
"""

import os
from typing import TYPE_CHECKING

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.plan import Refusal, Step, TreeVerification
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.contract.copies import PointRemover
from orchestrator.engines.contract.engine import implements
from orchestrator.process.executor import Writer
from orchestrator.runner.decide import decide_points, points_to_remove, protected_points
from orchestrator.runner.locks import points_being_read
from orchestrator.runner.problems import see_points
from orchestrator.runner.run_recorder import RunRecorder, run_small
from orchestrator.runner.steps import StepExecutor

if TYPE_CHECKING:
    from orchestrator.engines.contract.comparison import CopyComparer
import io
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256

from orchestrator.domain.answers import parse_instant
from orchestrator.domain.errors import PermissionDenied
from orchestrator.domain.kit import KitContents
from orchestrator.engines.contract.pools import KitMaker


def has_after_run(journal: RunRecorder, *, changed: bool) -> bool:
    """Return True when `finish_run` has something to do."""
    return _asks_points(journal, changed=changed) or journal.tools.snapshotter is not None


def _asks_points(journal: RunRecorder, *, changed: bool) -> bool:
    job = journal.job
    often = changed or not job.keep.everything or job.verify.every is not None or journal.tools.engine.stays
    return often or bool(journal.tools.history.problems.open_of(job.name, job.target.name))


def finish_run(journal: RunRecorder, writer: Writer, executor: StepExecutor, *, changed: bool) -> bool:
    """Do the work that follows a copy; return True when points were read or removed.

    A removal that fails is a warning: the copy itself is good.
    """
    job, tools = journal.job, journal.tools
    points: tuple[RestorePoint, ...] | None = None
    if _asks_points(journal, changed=changed):
        points = tools.engine.points(job, writer)
        see_points(journal, points)
    if points and tools.engine.stays:  # there is no copy: such a job exists for the newest snapshot itself
        tools.history.point_verified(job.name, job.target.name, points[-1].name, journal.run, journal.now)
    if points and tools.history.problems.open_of(job.name, job.target.name):
        from orchestrator.runner.mend import mend_points

        mend_points(journal, writer, points, notes=executor.notes, changed=changed)
    verified = bool(points) and is_verification_due(journal)
    if points and verified:
        _verify(journal, writer, executor, points[-1])
    if tools.snapshotter is not None:
        from orchestrator.runner.snapshots import prune_snapshots

        prune_snapshots(journal, writer, changed=changed)
    elif points and not job.keep.everything:
        return _prune(journal, executor, points) or verified
    return verified


def verification_step(point: RestorePoint, workers: int) -> Step:
    """Return the step that reads a point again."""
    work = TreeVerification(point=point, tree=point.tree, apart=point.apart, workers=workers)
    return Step(
        action=f"read point {point.name} again",
        why="[verify] every asks for it",
        worker="main",
        work=work,
        expected=None,
    )


def _compare(journal: RunRecorder, writer: Writer, engine: "CopyComparer") -> None:
    """Compare the contents of both sides, as [verify] every requires. Raises: VerificationFailed."""
    from orchestrator.runner.verify.compare_sides import compare_copy, require_same

    notes = f"{journal.tools.state}/notes/verify-{journal.job.name}"
    compared = compare_copy(journal, writer, engine, notes, point=None, content=True)
    if isinstance(compared, Refusal):
        journal.warn(f"nothing could be compared: {compared.why}")
    else:
        require_same(compared, journal)


def is_verification_due(journal: RunRecorder) -> bool:
    """Return True when [verify] every makes a reading of the newest point due; each disk of a set has its own due time."""
    every = journal.job.verify.every
    if every is None:
        return False
    known = journal.tools.history.views.points(journal.job.name)
    read = [point.whole_at for point in known if point.whole_at and point.place == journal.job.target.name]
    return not every or not read or (journal.now - max(read)).total_seconds() > every


def _verify(journal: RunRecorder, writer: Writer, executor: StepExecutor, newest: RestorePoint) -> None:
    from orchestrator.engines.contract.comparison import CopyComparer

    engine = journal.tools.engine
    if implements(engine, CopyComparer):
        _compare(journal, writer, engine)
    elif newest.manifest is not None:
        executor.do((verification_step(newest, journal.job.verify.workers),))


def _prune(journal: RunRecorder, executor: StepExecutor, points: tuple[RestorePoint, ...]) -> bool:
    """Remove the points that no rule keeps; return True when there were some."""
    job = journal.job
    tools = journal.tools
    sound = [known.name for known in tools.history.views.points(job.name) if known.sound]
    protected = protected_points(sound, points_being_read(job, tools.state, [point.name for point in points]))
    # The later of two points in one second gets the name of the next second: that is no sign of a wrong clock.
    now = max([journal.now, *(point.taken for point in points if point.name in journal.points)])
    gone = points_to_remove(decide_points(points, job, now=now, protected=protected))
    engine = tools.engine
    if not gone or not implements(engine, PointRemover):
        return False
    names = tuple(decision.point.name for decision in gone)
    tools.history.removing(job.name, job.target.name, names)
    try:
        executor.do(engine.plan_removal(job, names, tuple(decision.reason for decision in gone)))
    except OrchestratorError as error:
        journal.warn(f"points could not be removed: {error}")
    return True


def copy_history(journal: RunRecorder, writer: Writer, *, changed: bool = True) -> None:
    """Copy a consistent history, with the end of this run, to the target; a failure is only a warning.

    `changed`: False for a run that found nothing to do; then the last copy tells the same, unless it failed or is gone. Raises:
    HistoryError when the history is damaged: then the older copy on the target stays as it is.
    """
    journal.tools.history.check_when_due(journal.now)
    job, history = journal.job, journal.tools.history
    missing = f"no history copy:{job.target.name}"
    try:
        if changed or history.recall(job.name, missing) or _is_gone(journal):
            _carry(journal, writer)
            if history.recall(job.name, missing):
                history.remember(job.name, missing, "")
    except (OrchestratorError, OSError) as error:
        history.remember(job.name, missing, "yes")
        journal.note(f"the history could not be copied to the target: {error}")


def _is_gone(journal: RunRecorder) -> bool:
    """Return True when the copy beside a local target is not there. A far one costs a login, so it is believed."""
    root = journal.job.target.location
    return root.host is None and not os.path.lexists(f"{root.path}/.poolferry/history.sqlite")


def _carry(journal: RunRecorder, writer: Writer) -> None:
    tools, root = journal.tools, journal.job.target.location
    if not root.path.startswith("/"):
        return  # a dataset that is never mounted
    if root.host is None:
        tools.history.backup_to(f"{root.path}/.poolferry/history.sqlite")
        return
    local = f"{tools.state}/notes/history-{journal.job.name}.sqlite"
    tools.history.backup_to(local)
    run_small(tools.trees.store(local, root / ".poolferry/history.sqlite"), journal, writer)
    os.unlink(local)


OWN_FOLDER = ".poolferry"
PAGE, ARCHIVE = "RECOVERY.md", "configuration.tar"


def refresh_tree_kit(journal: RunRecorder, writer: Writer) -> None:
    """Store the page and the configuration beside a copy of files, when the stored ones are old."""
    try:
        _refresh(journal, writer)
    except (OrchestratorError, OSError) as error:
        journal.warn(f"the recovery kit could not be renewed: {error}")


def _refresh(journal: RunRecorder, writer: Writer) -> None:
    tools, job = journal.tools, journal.job
    files = tuple(config_files(tools.config))
    digest = sha256(repr(files).encode("utf-8", "surrogateescape")).hexdigest()
    key = f"configuration at {job.target.name}"
    if is_fresh(journal) and tools.history.memory(job.name).get(key) == digest:
        return
    folder = f"{tools.state}/notes/kit-{job.name}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    with open(f"{folder}/{PAGE}", "wb") as page:
        page.write(tools.trees.recovery(job, journal.now).encode("utf-8", "surrogateescape"))
    write_archive(f"{folder}/{ARCHIVE}", files)
    for name in (PAGE, ARCHIVE):
        run_small(tools.trees.store(f"{folder}/{name}", job.target.location / f"{OWN_FOLDER}/{name}"), journal, writer)
    tools.history.remember(job.name, key, digest)
    record_kit_sent(journal)


# Why not with each copy: of many snapshots the listing alone would take longer than most copies.
OFTEN = timedelta(hours=20)
_CONFIGURATION = (".toml",)


def refresh_kit(journal: RunRecorder, writer: Writer) -> None:
    """Make a new kit when the last one is a day old; a changed pool layout is a warning. Each disk of a set gets it."""
    tools, job = journal.tools, journal.job
    engine, known = tools.engine, tools.history.kits.of(job.name)
    if not implements(engine, KitMaker) or tools.engine.stays:
        return
    fresh = known is not None and journal.now - known.made_at < OFTEN
    if fresh and is_fresh(journal):  # made today, but this disk has no copy of it yet
        return
    try:
        kit = engine.kit_for_place(job, known.kit) if known and fresh else engine.survey_kit(job, journal.now, writer)
        if known and known.kit.layout != kit.layout:
            journal.warn(f"the pool of {job.source} is made otherwise than on {known.made_at:%Y-%m-%d}: {kit.layout}")
        if not fresh:
            tools.history.kits.keep(job.name, kit, journal.now)
        _kit_carry(journal, writer, engine, kit)
        record_kit_sent(journal)
    except PermissionDenied as error:
        journal.say(f"the recovery kit stays in history alone: {error.why}")
    except (OrchestratorError, OSError) as error:
        journal.warn(f"the recovery kit could not be renewed: {error}")


def is_fresh(journal: RunRecorder) -> bool:
    """Return True when the job's place (in a rotation set: this disk) has a kit younger than a day."""
    sent = journal.tools.history.fact(journal.job.name, _key(journal), parse_instant)
    return sent is not None and journal.now - sent < OFTEN


def record_kit_sent(journal: RunRecorder) -> None:
    """Record that the place has a kit of this moment."""
    journal.tools.history.remember(journal.job.name, _key(journal), journal.now.isoformat())


def _key(journal: RunRecorder) -> str:
    return f"kit at {journal.job.target.name}"


def _kit_carry(journal: RunRecorder, writer: Writer, engine: KitMaker, kit: KitContents) -> None:
    folder = f"{journal.tools.state}/notes/kit-{journal.job.name}"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    archive = f"{folder}/kit.tar"
    journal.tools.history.backup_to(f"{folder}/history.sqlite")
    write_archive(
        archive,
        (*kit_files(kit), *config_files(journal.tools.config), ("history.sqlite", _read(f"{folder}/history.sqlite"))),
    )
    run_small(engine.store_kit(journal.job, archive), journal, writer)


def kit_files(kit: KitContents) -> Iterator[tuple[str, bytes]]:
    """Yield the kit's own files."""
    for name, text in (("RECOVERY.md", kit.recovery), ("kit.json", kit.content), ("guids.tsv", kit.guids)):
        yield name, text.encode("utf-8", "surrogateescape")


def config_files(config: str) -> Iterator[tuple[str, bytes]]:
    """Yield our configuration files, unchanged."""
    for folder, _, names in os.walk(config):
        for name in sorted(names):
            if name.endswith(_CONFIGURATION):
                path = os.path.join(folder, name)
                yield os.path.join("configuration", os.path.relpath(path, config)), _read(path)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def write_archive(path: str, files: tuple[tuple[str, bytes], ...]) -> None:
    """Write an archive that any tar reads, for its owner alone."""
    import tarfile  # most runs write no archive

    with open(path, "wb") as file, tarfile.open(fileobj=file, mode="w") as archive:
        os.chmod(path, 0o600)
        for name, content in files:
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(content), 0o600
            archive.addfile(about, io.BytesIO(content))
