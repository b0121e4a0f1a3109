"""The stages of a copy over a new tree that is linked to the newest point before. Pure."""

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, FileCloning, FolderTimes, Pipeline, SmallFileCopy, Step, TreeLinking
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.units import Bytes, show_count, show_size
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync import commands, script_commands
from orchestrator.engines.rsync.model import LARGE_FILE, PARTIAL, RESERVED, DifferingPaths, RsyncSurvey
from orchestrator.engines.rsync.options import options_of

MOST_BY_CALLS = 20_000  # paths; one thread, so with more a program beside it is quicker
Stage = tuple[Step, ...]


def link_unchanged(
    job: Job, world: RsyncSurvey, work: Location, base: RestorePoint | None, request: RunRequest
) -> tuple[Stage, ...]:
    """Return the stage that links what is unchanged before the copy; none where rsync alone does it, with --link-dest.

    Why: rsync 3.5 opens each part of the path to --link-dest anew, twice for each file, and takes four times as long. Only into a
    work tree that is new, and from the very point that was compared with the source: then what differs is known. A copy over what is
    linked must change nothing of it, so rsync passes over it, whatever the source did meanwhile; but another user's rsync changes the
    mode of a file before it deletes it.
    """
    differing = world.differing
    if not _may_link(job, world, work, base) or base is None or differing is None:
        return ()
    step = Step(
        action=f"link unchanged entries from point {base.name}",
        why="what is as in the newest point takes no space and no copying",
        worker="main",
        work=TreeLinking(
            tree=work,
            point=base,
            source=job.tree,
            differing=differing.paths,
            joined=differing.joined,
            reserved=RESERVED,
        ),
        expected=None,
    )
    return ((step if work.host is None else _linked_there(step, work, base, differing, request),),)


def _linked_there(
    step: Step, work: Location, base: RestorePoint, differing: DifferingPaths, request: RunRequest
) -> Step:
    """Return the same step by programs of a host, which link all of the point, and then remove what differs.

    Why sorted: what lies below a folder or a link is gone with it before its own name comes.
    """
    names = f"{request.notes}/not-linked"
    programs = Pipeline(stages=(script_commands.link_tree_command(work, base),), reads=names)
    return replace(
        step, work=programs, links=True, counts_links=True, needs=((names, _listed(tuple(sorted(differing.paths)))),)
    )


def _may_link(job: Job, world: RsyncSurvey, work: Location, base: RestorePoint | None) -> bool:
    """Return whether what is unchanged can be linked before the copy; to or from a host only where the copy is told names."""
    target, differing = world.target, world.differing
    if base is None or base.manifest is None or base.damaged or base.name != world.points[-1].name:
        return False
    if differing is None or world.unread or world.changes is None or world.crowded or _is_split(world):
        return False
    if not target.by_root or target.work or target.damaged or target.led or target.open or target.owner != job.identity:
        return False
    if job.source.host is None and work.host is None:
        return True
    return (
        world.walled
        and not (world.adds or target.coarse or options_of(job).fake_super)
        and _names_all(job, world, differing)
        and not any(b".." in path.split(b"/") for path in differing.paths)
        and (job.source.host is None or _may_ask_by_name(world, differing))
    )


def _may_ask_by_name(world: RsyncSurvey, differing: DifferingPaths) -> bool:
    """Return whether a far source may be asked for what differs by name.

    Why no backslash: rsync 3.2.5 to 3.3 refuses some of such names that it asked for itself. Our own names, which a far source shows
    to the comparison alone, and files that are left out for their holes stay a matter of rules.
    """
    asked = commands.may_name_what_is_missing(world) and not (world.reserved or world.sparse)
    return asked and not any(b"\\" in path for path in (*differing.paths, *differing.folders))


def copy_crowded(job: Job, world: RsyncSurvey, work: Location, request: RunRequest) -> Stage:
    """Return the stage that copies files of many names before all else, linked to no point: each stays one file with all its names.

    Why before: linked to the point, one of them ends rsync at the first name that its filesystem refuses. The copy that follows passes
    over what is there, or it would link it to the point all the same.
    """
    names = f"{request.notes}/crowded"
    return copy_over(
        commands.copy_command(job, work, world, base=None, names=names),
        action=f"copy files of {show_count(len(world.crowded), 'name')} anew",
        why="the points have used up the names that one of these files can have",
        keeps=f"{request.notes}/moved-crowded",
        expected=None,
        needs=((names, _listed(world.crowded)),),
    )


def _is_split(world: RsyncSurvey) -> bool:
    found = world.parallel_copies
    return found is not None and len(getattr(found, "parallel_copies", ())) > 1


def differing_by_name(job: Job, world: RsyncSurvey, work: Location, base: RestorePoint | None) -> DifferingPaths | None:
    """Return what a copy over linked entries can be told by name, so that rsync walks through no tree again; None: it must.

    Why only with the patterns with which the point was made: what others exclude since then is linked, and only rsync knows it.
    Further names of a file are found while it is linked. Of several folders rsync makes the ones above them by itself. And only behind
    the wall: an owner may put a link in place of a folder meanwhile, which rsync follows in a path that it is told.
    """
    differing = world.differing
    if not world.walled or not _may_link(job, world, work, base) or differing is None:
        return None
    return differing if _names_all(job, world, differing) else None


def _names_all(job: Job, world: RsyncSurvey, differing: DifferingPaths) -> bool:
    """Return whether these are the names of all that a copy over linked entries has to bring."""
    patterned = bool(options_of(job).excludes) and not world.made_with_the_same_patterns
    return not (differing.joined or job.parts or patterned)


def copy_by_name(
    job: Job,
    world: RsyncSurvey,
    work: Location,
    base: RestorePoint | None,
    differing: DifferingPaths,
    request: RunRequest,
) -> tuple[Stage, ...]:
    """Return the stages that copy what differs, and then give folders their metadata and times.

    What the source changes between the look and this copy is copied by the next run. The names of both sides are compared after it,
    as rsync's counts say nothing of what is linked.
    """
    shown = base.name if base else ""
    names = f"{request.notes}/differing"
    before = (
        clone_large_files(job, world, work, base, differing.present, names, request) if base and world.clones else ()
    )
    paths, moving = differing.present, world.changes.moving if world.changes else None
    if world.ahead_of_large and not world.clones:
        before, paths = _copy_large(job, world, work, paths, request)
        moving = None if moving is None else max(0, moving - sum(size for _, size in world.large))
    copy = copy_over(
        commands.copy_command(job, work, world, base=base, linked=True, names=names),
        action=f"copy {job.tree}",
        why=f"what differs from point {shown}; the rest is linked to it",
        keeps=f"{request.notes}/moved-0",
        expected=None if moving is None else Bytes(moving),
        needs=((names, _listed(paths)),),
    )
    copies = (_by_calls_first(copy[0], job, world, work, paths, request),) if paths else ()
    return (*before, *((copies,) if paths else ()), _times_by_name(job, world, work, differing, request))


def _by_calls_first(
    copy: Step, job: Job, world: RsyncSurvey, work: Location, paths: tuple[bytes, ...], request: RunRequest
) -> Step:
    """Return the copy with small files written by system calls before it, which for few takes less than its start; else as it is."""
    from orchestrator.engines.rsync.write_ahead import may_write

    if len(paths) > MOST_BY_CALLS or not may_write(job, world) or not isinstance(copy.work, Pipeline):
        return copy
    ((left, _),) = copy.needs
    here = SmallFileCopy(
        tree=work, source=job.source, paths=paths, moved=f"{request.notes}/moved-small", left=left, otherwise=copy.work
    )
    return replace(copy, work=here, needs=())


def _copy_large(
    job: Job, world: RsyncSurvey, work: Location, present: tuple[bytes, ...], request: RunRequest
) -> tuple[tuple[Stage, ...], tuple[bytes, ...]]:
    """Return the stages that write large files and then let rsync see to them, and the paths that are left.

    Why a copy of their own: that of all else passes over what is there.
    """
    from orchestrator.engines.rsync.write_ahead import large_files_ahead

    large = dict(world.large)
    left, names = tuple(path for path in present if path not in large), f"{request.notes}/large"
    copy = copy_over(
        commands.copy_command(job, work, world, base=None, names=names),
        action=f"copy large files of {job.tree}",
        why="what is there as at the source gets the rest of its metadata; anything else is copied",
        keeps=f"{request.notes}/moved-large",
        expected=Bytes(sum(large.values())),
        needs=((names, _listed(tuple(path for path in present if path in large))),),
    )
    return (large_files_ahead(job, world, request), copy), left


def clone_large_files(
    job: Job,
    world: RsyncSurvey,
    work: Location,
    base: RestorePoint,
    paths: tuple[bytes, ...],
    names: str,
    request: RunRequest,
) -> tuple[Stage, ...]:
    """Return the stages that clone the point's large files, and write in the clones what changed; the copy passes over them.

    First programs that compare blocks; of what these leave, such as a file with holes, rsync finds what changed.
    """
    from orchestrator.engines.rsync.write_ahead import large_files_ahead

    ahead = (large_files_ahead(job, world, request, base),) if world.ahead_of_large else ()
    cloning = FileCloning(tree=work, point=base, source=job.source, paths=paths, partial=PARTIAL, least=LARGE_FILE)
    clone = Step(
        action=f"clone large files of point {base.name}",
        why="what did not change in them takes no space",
        worker="main",
        work=cloning,
        expected=None,
    )
    copy = copy_over(
        commands.copy_command(job, work, world, base=base, linked=True, names=names, least=LARGE_FILE),
        action=f"copy large files of {job.tree}",
        why=f"of files of {show_size(LARGE_FILE)} and more only the changed blocks are written",
        keeps=f"{request.notes}/moved-large",
        expected=None,
        needs=((names, _listed(paths)),),
    )
    return (*ahead, (clone,), copy)


def _times_by_name(
    job: Job, world: RsyncSurvey, work: Location, differing: DifferingPaths, request: RunRequest
) -> Stage:
    """Return the stage that gives the folders their times in which something is copied, and those that are new or differ themselves."""
    names = f"{request.notes}/folders"
    found = dict.fromkeys((b".", *differing.folders))  # rsync sets the root's time only where it is named
    for path in (
        differing.paths if work.host else differing.present
    ):  # on a host all was linked, and what is gone removed
        found[path] = None  # a new folder; of others the filter lets none pass
        above, slash, _ = path.rpartition(b"/")
        while slash and above not in found:
            found[above] = None
            above, slash, _ = above.rpartition(b"/")
    (times,) = folder_times(job, world, work, request, names=names, listed=_listed(found))
    local = job.source.host is None and work.host is None
    if not (local and world.target.by_root and isinstance(times.work, Pipeline)):
        return (times,)
    here = FolderTimes(tree=work, source=job.source, paths=tuple(found), left=names, otherwise=times.work)
    return (replace(times, work=here, needs=()),)


def folder_times(
    job: Job, world: RsyncSurvey, work: Location, request: RunRequest, *, names: str = "", listed: bytes = b""
) -> Stage:
    """Return the stage that gives folders their times, which the copy over linked entries leaves alone."""
    return copy_over(
        commands.folder_times_command(job, work, world, names=names),
        action="give folders their times",
        why="the copy changed what is in them, and touches nothing that is linked to a point",
        keeps=f"{request.notes}/moved-folders",
        needs=((names, listed),) if names else (),
    )


def copy_over(
    command: Command,
    *,
    action: str,
    why: str,
    keeps: str,
    expected: Bytes | None = Bytes(0),
    needs: tuple[tuple[str, bytes], ...] = (),
) -> Stage:
    """Return the stage with one rsync over a tree that is there. `keeps`: the file for what it moved."""
    work = Pipeline(stages=(command,), keeps=keeps)
    return (Step(action=action, why=why, worker="main", work=work, expected=expected, copies=True, needs=needs),)


def small_step(action: str, why: str, command: Command) -> Step:
    """Return the step with one command whose bytes are not counted."""
    return Step(action=action, why=why, worker="main", work=Pipeline(stages=(command,)), expected=None)


def _listed(paths: "dict[bytes, None] | tuple[bytes, ...]") -> bytes:
    return b"".join(b"./" + path + b"\0" for path in paths)


def with_files_ahead(
    job: Job, world: RsyncSurvey, copies: Stage, work: Location, request: RunRequest
) -> tuple[Stage, ...]:
    """Return the stages of first copies of all, and before them that of the programs that write small or large files; without one, rsync's."""
    if not (world.ahead or world.ahead_of_large):
        return (copies,)
    from orchestrator.engines.rsync.write_ahead import files_ahead  # few runs are first copies of many or large files

    return files_ahead(job, world, copies, work, request)
