"""The sentences of a plan: what it makes, what it resumes, and its warnings."""

from orchestrator.domain.job import Job
from orchestrator.domain.names import show_name, show_short_name
from orchestrator.domain.units import show_count, show_size
from orchestrator.engines.rsync.left_out import left_out_entries
from orchestrator.engines.rsync.model import ROOT, RsyncSurvey
from orchestrator.engines.rsync.options import options_of

_NAMED = 5


def warnings(job: Job, world: RsyncSurvey) -> tuple[str, ...]:
    """Return warnings for a person about a run that does its work."""
    found = []
    if ROOT in world.target.open:
        found.append(
            f"{job.target.location} could be changed by other users of that machine; now it is root's, and only root writes there"
        )
    if closed := [folder for folder in world.target.open if folder != ROOT]:
        what = " and ".join(closed)
        found.append(
            f"{what} in {job.target.location} could be entered by other users of that machine; now only by the owner (0700), "
            "if modes are kept"
        )
    if world.target.unwritten:
        found.append(
            f"it is not certain that the disk took all that the last run wrote to {job.target.location}: that is copied anew; "
            "look at the kernel's messages and the disk's health (smartctl -a)"
        )
    if not world.points and world.changes and world.changes.entries_now == 0:
        empty = f"the source {job.tree} is empty, and so is this first copy"
        none = f"this first copy is empty: the source {job.tree} is, or excludes in [rsync] leave all of it out"
        found.append(f"{none if options_of(job).excludes else empty}: is it mounted?")
    elif not world.points:
        bare = [each.folder for each in world.parts if each.empty]
        found += [f"the source {folder} is empty, and so is its first copy: is it mounted?" for folder in bare]
    if world.others:
        where = (
            f"the points until {world.points[-1].name}" if world.points else f"{job.target.location}, where it stays"
        )
        found.append(f"no source of this job any more, and in {where}: {_few(world.others)}")
    lacking = left_out_entries(world)
    found += [f"left out: {show_short_name(path)}: {why}" for path, why in lacking[:_NAMED]]
    if len(lacking) > _NAMED:
        found.append(f"and {show_count(len(lacking) - _NAMED, 'more entry', 'more entries')} left out")
    if world.reserved:
        found.append(f"never copied, as poolferry uses these names itself: {_few(world.reserved)}")
    return tuple(found)


def _few(paths: tuple[bytes, ...]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(map(show_name, paths[:_NAMED])) + more


def describe_plan(world: RsyncSurvey, name: str) -> str:
    """Return what a run makes, in one line."""
    changes = world.changes
    if changes is None:
        return f"make point {name}"
    if not world.points:
        entries = show_count(changes.entries_now or 0, "entry", "entries")
        return f"first copy: make point {name} of {entries}, {show_size(changes.moving)}"
    counts = f"{changes.created} new, {changes.changed} changed, {changes.deleted} gone"
    damaged = "everything" if world.target.all_damaged else f"{len(world.target.damaged)} damaged"
    repaired = f", {damaged} copied again" if world.target.damaged else ""
    return f"make point {name}: {counts}{repaired}, {show_size(changes.moving)} to move"


def describe_resumed(world: RsyncSurvey) -> str | None:
    """Return what an interrupted run left; None: nothing."""
    if not world.target.work:
        return None
    half = sum(half.have for half in world.target.half)
    tail = f", {show_size(half)} of it half-copied files" if half else ""
    return f"an interrupted copy lies in the target{tail}"
