"""Restore decisions: the point to restore, and what to do with existing data at the destination: never overwrite."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.names import POINT_NAME, point_name, show_name
from orchestrator.domain.place import MountPoint
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.units import show_count

_NEAREST = 3


def choose_point(points: Sequence[RestorePoint], *, point: str | None, at: datetime | None) -> RestorePoint | Refusal:
    """Find the point for a name, an unambiguous beginning of a name, "latest" (or nothing), or an instant.

    `at`: the newest point not later than that. Refuses: none fits, or several; the evidence lists the nearest.
    """
    ordered = sorted(points, key=lambda each: (each.taken, each.name))
    if point is not None and at is not None:
        return Refusal(
            why="both a point and a time were given",
            evidence=(f"--point {point}", f"--at {at}"),
            hint="give one of them",
        )
    if not ordered:
        return Refusal(why="there is no restore point", evidence=(), hint="run the job first")
    if at is not None:
        return _at(ordered, at)
    return ordered[-1] if point in (None, "latest") else _named(ordered, str(point))


@dataclass(frozen=True, slots=True, kw_only=True)
class WholePoint:
    """The newest point that each dataset has; `passed`: the newer ones, newest first, with the datasets that lack them."""

    point: RestorePoint
    passed: tuple[tuple[RestorePoint, tuple[str, ...]], ...]


def choose_whole_point(
    points: Sequence[RestorePoint], lacking: Mapping[str, Sequence[str]], *, at: datetime | None
) -> WholePoint | None:
    """Return the newest whole point, where a newer one lacks datasets; None: the newest is whole, or none is.

    `at`: of the points not later than that.
    """
    ordered = sorted(points, key=lambda each: (each.taken, each.name), reverse=True)
    early = [each for each in ordered if at is None or each.taken <= at]
    place = next((place for place, each in enumerate(early) if not lacking.get(each.name)), 0)
    passed = tuple((each, tuple(lacking[each.name])) for each in early[:place])
    return WholePoint(point=early[place], passed=passed) if passed else None


def _at(ordered: Sequence[RestorePoint], at: datetime) -> RestorePoint | Refusal:
    early = [each for each in ordered if each.taken <= at]
    if early:
        return early[-1]
    return _unfit(f"every restore point is later than {at.isoformat()}", [each.name for each in ordered[:_NEAREST]])


def _named(ordered: Sequence[RestorePoint], name: str) -> RestorePoint | Refusal:
    fitting = [each for each in ordered if each.name.startswith(name)]
    exact = [each for each in fitting if each.name == name]
    if len(exact or fitting) == 1:
        return (exact or fitting)[0]
    if fitting:
        return _unfit(
            f'{show_count(len(fitting), "restore point")} begin with "{show_name(name)}"',
            [each.name for each in fitting],
        )
    names = sorted(each.name for each in ordered)
    place = bisect_left(names, name)
    near = names[max(place - _NEAREST, 0) : place + _NEAREST]
    return _unfit(f'no restore point is called "{show_name(name)}"', near)


def _unfit(why: str, names: Sequence[str]) -> Refusal:
    return Refusal(why=why, evidence=tuple(names), hint=f"choose one, such as --point {names[-1]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationAbsent:
    """A destination that does not exist, or an empty directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationUnfinished:
    """Remains of an earlier restore, with poolferry's marker of what it restored; `path`: below the point, as it is shown."""

    job: str
    point: str
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationOccupied:
    """A directory with foreign entries; `examples`: the first ones."""

    entries: int
    examples: tuple[bytes, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DestinationNotDirectory:
    """A destination that is no directory; `kind`: "a file", "a symbolic link"."""

    kind: str


DestinationState = DestinationAbsent | DestinationUnfinished | DestinationOccupied | DestinationNotDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFresh:
    """A restore that begins with nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRestore:
    """A restore that continues an earlier restore of the same point."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveAside:
    """A restore that first renames the existing data to `path` (without replacing anything), then begins with nothing."""

    path: str


def decide_destination(
    found: DestinationState,
    *,
    job: str,
    point: str,
    path: str = "",
    destination: str,
    aside: bool,
    now: datetime,
    finish: str = "",
) -> StartFresh | ResumeRestore | MoveAside | Refusal:
    """Decide the start of a restore. Refuses: something else is there and `aside` was not given.

    An unfinished restore of the same point resumes, with `aside` too: so one command, repeated after an interruption,
    continues. `finish`: the command that finishes the unfinished restore that is there, "" where none is known.
    """
    if isinstance(found, DestinationAbsent):
        return StartFresh()
    if found == DestinationUnfinished(job=job, point=point, path=path):
        return ResumeRestore()
    whole = destination.rstrip("/")
    if aside and whole:
        return MoveAside(path=f"{whole}.aside-{point_name(now)}")
    hint = f"to finish that one: {finish}; or give another destination" if finish else "give another destination"
    if whole:
        hint += f", or use --aside: what is there is renamed to {whole}.aside-{point_name(now)} and kept"
    return Refusal(
        why=f"{destination} {_explain_mounts(found)}; a restore overwrites nothing",
        evidence=_evidence(found),
        hint=hint,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFolder:
    """A folder in which a restore may change nothing. `holds`: what is in it, such as "the copies of photos"."""

    path: str
    holds: str


def copy_folders(root: str, *, job: str, points: bool) -> tuple[OwnFolder, ...]:
    """Return the folders of a job's copies at a place. `points`: False for a mirror, which is all of the place."""
    paths = (f"{root}/points", f"{root}/.poolferry") if points else (root,)
    return tuple(OwnFolder(path=path, holds=f"the copies of {job}") for path in paths)


def refuse_own_rooms(destination: str, tree: str, *, job: str, shown: str = "") -> Refusal | None:
    """Refuse a destination among the copies themselves. Both are real paths on one machine; `tree`: the point's.

    `shown`: the destination as a message names it, where the two are paths inside their filesystem.
    """
    return refuse_inside(destination, own_copy_folders(tree, job=job), shown=shown)


def own_copy_folders(tree: str, *, job: str) -> tuple[OwnFolder, ...]:
    """Return the folders of the copies that a point's tree is one of."""
    above, _, name = tree.rstrip("/").rpartition("/")
    dated = bool(POINT_NAME.fullmatch(name)) and above.endswith("/points")
    return copy_folders(above.removesuffix("/points") if dated else tree.rstrip("/"), job=job, points=dated)


def refuse_inside(destination: str, folders: Sequence[OwnFolder], *, shown: str = "") -> Refusal | None:
    """Refuse a destination in one of the folders. All are real paths."""
    found = next((each for each in folders if _is_inside(destination, each.path)), None)
    return (
        _refuse_folder(f"{shown or destination} lies among {found.holds}, where nothing may change") if found else None
    )


def refuse_around(destination: str, folders: Sequence[OwnFolder]) -> Refusal | None:
    """Refuse a destination that is in the way and holds one of the folders: --aside would carry that off. All are real paths."""
    found = next((each for each in folders if _is_inside(each.path, destination)), None)
    return _refuse_folder(f"{destination} holds {found.holds}, which stay where they are") if found else None


def _is_inside(path: str, folder: str) -> bool:
    return f"{path.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")


def _refuse_folder(why: str) -> Refusal:
    return Refusal(why=why, evidence=(), hint="give a destination outside of them")


def refuse_mounts(mounts: Sequence[MountPoint], filling: Sequence[bytes], *, destination: str) -> Refusal | None:
    """Refuse to restore files into a mount point that holds files when the point has files for it too.

    An empty mounted filesystem is filled; one for which the point has no files is not changed. `filling`: mount points that an
    earlier, interrupted restore of the same point has begun to fill.
    """
    both = [one.path for one in mounts if one.full and one.wanted and one.path not in filling]
    if not both:
        return None
    places = tuple(f"{destination.rstrip('/')}/{show_name(path)}" for path in both[:_NEAREST])
    return Refusal(
        why=f"{places[0]} is mounted, and holds files; the point has files for it too, and a restore overwrites nothing",
        evidence=places,
        hint="give another destination; or bring back its parts, --path NAME each",
    )


def _explain_mounts(found: DestinationUnfinished | DestinationOccupied | DestinationNotDirectory) -> str:
    if isinstance(found, DestinationUnfinished):
        part = f" --path {found.path!r}" if found.path else ""
        return f"holds an unfinished restore of {found.job} {found.point}{part}"
    if isinstance(found, DestinationOccupied):
        return f"holds {found.entries} {'entry' if found.entries == 1 else 'entries'}"
    return f"is {found.kind}"


def _evidence(found: DestinationUnfinished | DestinationOccupied | DestinationNotDirectory) -> tuple[str, ...]:
    if isinstance(found, DestinationUnfinished):
        return (f"it is of job {found.job}",)
    return tuple(show_name(name) for name in found.examples) if isinstance(found, DestinationOccupied) else ()
