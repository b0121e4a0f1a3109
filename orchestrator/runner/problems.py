"""Problems of copies that a look at the target shows: points that vanished, manifests that are missing, noted damage."""

from collections.abc import Sequence

from orchestrator.domain.point import RestorePoint
from orchestrator.domain.problem import ProblemType
from orchestrator.engines.contract.copies import PointLister
from orchestrator.engines.contract.engine import implements
from orchestrator.runner.decide import USED
from orchestrator.runner.run_recorder import RunRecorder


def see_points(journal: RunRecorder, points: Sequence[RestorePoint]) -> None:
    """Record which points the target holds, and what is wrong with them by this look alone. Nothing is written while all is well."""
    job, history = journal.job, journal.tools.history
    known = {point.name: point.taken for point in points}
    if not implements(journal.tools.engine, PointLister):  # snapshots of a copy are pruned by others, too
        history.points_seen(job.name, job.target.name, known, journal.now)
        return
    gone = history.point_names(job.name, job.target.name) - known.keys()
    moved = _moved_from(journal) if gone else ""
    if moved:
        journal.warn(
            f"{job.target.name} was {moved} and is {job.target.location} now; points that stayed there are not counted any more"
        )
    history.points_seen(job.name, job.target.name, known, journal.now, lost=not moved)
    _see_state(journal, points)


def _moved_from(journal: RunRecorder) -> str:
    """Return where the place was at the last run, if it lies elsewhere now; a disk is known by its name, not by its path."""
    job = journal.job
    before = journal.tools.history.recall(job.name, USED)
    return "" if before in (None, str(job.target.location)) or job.target.disk else str(before)


def _see_state(journal: RunRecorder, points: Sequence[RestorePoint]) -> None:
    """Record what the names beside the points show: a missing manifest, or damage that a lost history knew."""
    seen = [(ProblemType.MANIFEST, point.name, "its manifest is missing") for point in points if point.manifest is None]
    seen += [(ProblemType.DAMAGED, point.name, "a note beside it says so") for point in points if point.damaged]
    if not seen:
        return
    job, place, history = journal.job, journal.job.target.name, journal.tools.history
    told = {each.point for each in history.problems.of(job.name) if each.place == place}
    for kind, name, why in seen:
        if name not in told:
            history.problems.open(job.name, place, kind, name, why=why, paths=(), count=0, now=journal.now)
            told.add(name)


def note_bad_manifest(journal: RunRecorder, point: RestorePoint, why: str) -> None:
    """Record that the manifest of a point cannot be used."""
    job = journal.job
    journal.tools.history.problems.open(
        job.name, job.target.name, ProblemType.MANIFEST, point.name, why=why, paths=(), count=0, now=journal.now
    )


def note_shared_damage(
    journal: RunRecorder, point: RestorePoint, found_in: RestorePoint, paths: Sequence[bytes]
) -> None:
    """Record damage of files that a point shares with another one, in which a reading found it."""
    job = journal.job
    told = tuple(path.decode("utf-8", "surrogateescape") for path in paths)
    why = f"the same files as in point {found_in.name}"
    journal.tools.history.problems.open(
        job.name,
        job.target.name,
        ProblemType.DAMAGED,
        point.name,
        why=why,
        paths=told,
        count=len(told),
        now=journal.now,
    )
