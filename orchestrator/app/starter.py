"""The first configuration: commented example files."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.command_line import quoted
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import url_of_ssh_place

if TYPE_CHECKING:
    from orchestrator.config.starter_files import StarterJob
    from orchestrator.domain.place import Location

COPIES = "/backup/home"
FOLDER, DATASET = "folder", "dataset"


@dataclass(frozen=True, slots=True, kw_only=True)
class StarterFiles:
    """Files written into a folder. `existing`: those that are there already, unchanged; `following`: the next commands;
    `understood`: a sentence for each job.
    """

    folder: str
    written: tuple[str, ...]
    existing: tuple[str, ...]
    following: tuple[str, ...]
    understood: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StarterRequest:
    """The words of a person. `places`: sources and, as the last, the target, unless that is named; `disks`: a rotation set to be the
    target; `pools`: to watch; `together`: all folders become one job.
    """

    places: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    target: str | None = None
    disks: str | None = None
    pools: tuple[str, ...] = ()
    together: bool = False


def write_starter(settings: Settings, request: StarterRequest) -> StarterFiles:
    """Write a commented configuration; existing files stay unchanged. Raises: WrongRequest."""
    from orchestrator.config.starter_files import starter_job_files

    jobs = plan_starter(request)
    files = starter_job_files(jobs)
    folder = settings.where.config
    left = _left_alone(folder, files)
    written = []
    for name, text in files.items():
        path = os.path.join(folder, name)
        if path not in left:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
            written.append(path)
    made = [job for job in jobs if os.path.join(folder, f"jobs/{job.name}.toml") in (*written, *left)]
    there = [job for job in made if os.path.lexists(os.path.join(folder, f"jobs/{job.name}.toml"))]
    return StarterFiles(
        folder=folder, written=tuple(written), existing=tuple(left), following=_following(settings, there),
        understood=tuple(map(_understood, jobs)) if written else (),
    )  # fmt: skip


def plan_starter(request: StarterRequest) -> "tuple[StarterJob, ...]":
    """Return the jobs that these words ask for. Raises: WrongRequest for words that cannot be understood together."""
    from orchestrator.config.starter_files import POOL, StarterJob

    sources, target = _ends(request)
    watches = tuple(
        StarterJob(name=f"{_job_name(_pool(pool))}-watch", kind=POOL, source=_pool(pool)) for pool in request.pools
    )
    if not sources:
        return watches
    return (*_copies(sources, target, request), *watches)


def _ends(request: StarterRequest) -> tuple[tuple[str, ...], str]:
    """Return the sources and the target; what is usual where nothing is said."""
    places = request.places
    if not places and not request.sources and request.pools and not request.target:
        return (), ""
    if request.disks:
        if request.target:
            raise WrongRequest("--disks and --target: the disks are the target")
        return places + request.sources or (_usual(),), ""
    if places and request.target is None:
        if len(places) < 2 and not request.sources:
            like = "/backup/copies" if _kind(places[0]) == FOLDER else "vault/copies"
            raise WrongRequest(f"{places[0]}: where to? Such as: poolferry init {quoted(places[0])} {like}")
        return places[:-1] + request.sources, places[-1]
    return places + request.sources or (_usual(),), request.target or COPIES


def _usual() -> str:
    return "/home" if os.geteuid() == 0 else os.path.expanduser("~")


def _copies(sources: Sequence[str], target: str, request: StarterRequest) -> "tuple[StarterJob, ...]":
    """Return a job for each source. Why the kind is one for all: a place holds either datasets or folders."""
    from orchestrator.config.starter_files import StarterJob

    sure = {_kind(text) for text in (*sources, *([target] if target else []))} - {None}
    if len(sure) > 1:
        told = [f"{text} is a {_kind(text)}" for text in (*sources, target) if text and _kind(text)]
        raise WrongRequest(f"{', '.join(told)}: datasets are copied to a dataset, folders to a folder")
    kind = next((each for each in sure if each), FOLDER)
    if not sure and (bare := next((text for text in sources if "://" not in text and ":" not in text), None)):
        raise WrongRequest(
            f"{bare}: there is no such folder here; write an absolute path, or for a pool where in another one its copy goes: "
            f"poolferry init {quoted(bare)} vault/copies"
        )
    place = _absolute if kind == FOLDER else lambda text: str(_dataset(text))
    texts = [place(text) for text in sources]
    at = place(target) if target else ""
    if request.together:
        return (_together(kind, texts, at, request),)
    if kind == FOLDER and len(sources) == 1 and not request.places and not request.disks:
        return (StarterJob(name="home", kind=FOLDER, source=texts[0], place="home-copies", at=at),)
    names: list[str] = []
    for text in texts:
        name = _job_name(text)
        names.append(name if name not in names else f"{name}-{len(names) + 1}")
    jobs = []
    for name, text in zip(names, texts, strict=True):
        if request.disks:
            jobs.append(StarterJob(name=name, kind=kind, source=text, place=request.disks, disks=True))
        elif kind == FOLDER:
            below = at if len(texts) == 1 else f"{at.rstrip('/')}/{name}"
            jobs.append(StarterJob(name=name, kind=kind, source=text, place=f"{name}-copies", at=below))
        else:
            jobs.append(StarterJob(name=name, kind=kind, source=text, place=_job_name(at), at=at))
    return tuple(jobs)


def _together(kind: str, texts: Sequence[str], at: str, request: StarterRequest) -> "StarterJob":
    """Return the one job of several folders. Raises: WrongRequest."""
    from orchestrator.config.models import parse_any_location
    from orchestrator.config.starter_files import StarterJob
    from orchestrator.domain.source_tree import join_folders

    if kind != FOLDER:
        raise WrongRequest("--together: is for folders; a dataset is copied with all below it")
    try:
        join_folders([parse_any_location(text) for text in texts])
    except ValueError as error:
        raise WrongRequest(": expected ".join(map(str, error.args))) from None
    place = request.disks or "folders-copies"
    return StarterJob(
        name="folders", kind=kind, source=texts[0], sources=tuple(texts), place=place, at="" if request.disks else at,
        disks=bool(request.disks),
    )  # fmt: skip


def _job_name(text: str) -> str:
    """Return a name for the job of a place: its last part."""
    from orchestrator.config.migrate.result import make_name

    return make_name(os.path.basename(text.rstrip("/")) or "root")


def _kind(text: str) -> str | None:
    """Return the kind of a place that its text tells; None for what may be either, such as ssh://nas/tank/x."""
    if _is_here(text) or text.startswith(("/", "~", "./", "../", "file://")):
        return FOLDER
    if "://" in text:
        return None
    if url_of_ssh_place(text):
        path = text.partition("]:" if "]:" in text else ":")[2]
        return FOLDER if path.startswith("/") else DATASET if "/" in path else None
    return DATASET if "/" in text else None


def _is_here(text: str) -> bool:
    return "://" not in text and os.path.lexists(os.path.expanduser(text))


def _dataset(text: str) -> "Location":
    """Return a dataset, here or on a host. Raises: WrongRequest."""
    from orchestrator.config.models import parse_any_location
    from orchestrator.config.parse_job import dataset_location, dataset_mistake

    try:
        found = dataset_location(parse_any_location(text if "://" in text else url_of_ssh_place(text) or text))
    except ValueError as error:
        raise WrongRequest(f"{text}: expected {error}") from None
    if wrong := dataset_mistake(found):
        raise WrongRequest(f"{wrong[0]}: expected {wrong[1]}")
    return found


def _pool(text: str) -> str:
    """Return a pool to watch. Raises: WrongRequest."""
    found = _dataset(text)
    if "/" in found.path:
        raise WrongRequest(f"{text} is a dataset: --watch takes a whole pool, such as {found.path.partition('/')[0]}")
    return str(found)


def _understood(job: "StarterJob") -> str:
    """Return the sentence about one job."""
    if job.kind == "pool":
        return f"{job.name}: watch the pool {job.source}, and scrub it each month"
    what = "the folder" if job.kind == FOLDER else "the dataset"
    below = ", with all below it," if job.kind == DATASET else ""
    to = f"the disks of the set {job.place}" if job.disks else f"{what} {job.at}"
    if job.sources:
        return f"{job.name}: copy the folders {', '.join(job.sources)}, into one restore point each time, to {to}"
    return f"{job.name}: copy {what} {job.source}{below} to {to}"


def _following(settings: Settings, jobs: "Sequence[StarterJob]") -> tuple[str, ...]:
    """Return the next commands, those that work in this state."""
    import shlex

    disks = next((job.place for job in jobs if job.disks), "")
    enroll = (
        (settings.repeat(f"disks enroll /dev/disk/by-id/usb-… --set {shlex.quote(disks)} --name red"),) if disks else ()
    )
    first = [shlex.quote(job.name) for job in jobs]
    runs = (
        () if disks or not first else (settings.repeat(f"plan {first[0]}"), settings.repeat(f"run {' '.join(first)}"))
    )
    return (*enroll, settings.repeat("check --system"), *runs)


def _absolute(place: str) -> str:
    """Return the folder as a job file names it; `host:/path` becomes a URL. Raises: WrongRequest for what it cannot be."""
    if "://" in place or _is_here(place):
        return place if "://" in place else os.path.abspath(os.path.expanduser(place))
    if url := url_of_ssh_place(place):
        if not place.partition("]:" if "]:" in place else ":")[2].startswith("/"):
            raise WrongRequest(f"{place}: write an absolute path, as in ssh://nas/srv/photos")
        return url
    return os.path.abspath(os.path.expanduser(place))


def _left_alone(folder: str, files: Mapping[str, str]) -> list[str]:
    """Return the files to leave unchanged. Jobs and targets belong together: parts of two examples do not fit."""
    jobs = os.path.join(folder, "jobs")
    there = [os.path.join(folder, name) for name in files if os.path.lexists(os.path.join(folder, name))]
    held = [os.path.join(jobs, name) for name in os.listdir(jobs)] if os.path.isdir(jobs) else []
    others = [path for path in sorted(held) if path.endswith(".toml") and path not in there]
    if others or any(path.endswith(".toml") for path in there):
        pair = [os.path.join(folder, name) for name in files if name.endswith(".toml")]
        return [*there, *others, *(path for path in pair if path not in there)]
    return there
