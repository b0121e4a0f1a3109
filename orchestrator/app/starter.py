"""The first configuration, and jobs beside those that are there: commented files."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.app.config_files import TARGETS, create_new_file, read_config_files, replace_file, require_valid
from orchestrator.app.pidfile import ask_to_reload
from orchestrator.app.settings import Settings, WrongRequest
from orchestrator.domain.command_line import quoted
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.place import url_of_ssh_place

if TYPE_CHECKING:
    from orchestrator.config.starter_files import StarterJob
    from orchestrator.domain.place import Location

COPIES = "/backup/home"
FOLDER, DATASET = "folder", "dataset"


@dataclass(frozen=True, slots=True, kw_only=True)
class StarterFiles:
    """Files written into a folder. `existing`: those that are there already, unchanged; `added`: sections that targets.toml got;
    `following`: the next commands; `understood`: a sentence for each job that was written.
    """

    folder: str
    written: tuple[str, ...]
    existing: tuple[str, ...]
    following: tuple[str, ...]
    understood: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


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

    @property
    def says_something(self) -> bool:
        """Return True when the words name a source, a target or a pool; else the usual first job is meant."""
        return bool(self.places or self.sources or self.target or self.disks or self.pools)


def write_starter(settings: Settings, request: StarterRequest) -> StarterFiles:
    """Write a commented configuration, or jobs beside those that are there; existing files stay as they are, but targets.toml gets the
    places of new jobs. Raises: WrongRequest · DeclarationError for a configuration with mistakes · OSError.
    """
    from orchestrator.config.starter_files import HOOKS, starter_job_files

    jobs, folder = plan_starter(request), settings.where.config
    there = read_config_files(folder)
    if there and not request.says_something:
        jobs = ()
    first = dict(starter_job_files(jobs))
    if _was_cut(folder, there, first):
        there = {}
    files, added, jobs = _beside(settings, there, jobs) if there else (first, (), jobs)
    if os.path.lexists(os.path.join(folder, HOOKS)):
        files.pop(HOOKS, None)
    written = []
    for name, text in files.items():
        path = os.path.join(folder, name)
        if name in there:
            replace_file(path, text)
            continue
        create_new_file(path, text.encode())
        written.append(path)
    if there and written:
        ask_to_reload(settings.where.state)  # a daemon that runs
    return StarterFiles(
        folder=folder, written=tuple(written), existing=tuple(os.path.join(folder, name) for name in there if name not in files),
        following=_following(settings, jobs), understood=tuple(map(_understood, jobs)), added=added,
    )  # fmt: skip


def _was_cut(folder: str, there: Mapping[str, str], files: Mapping[str, str]) -> bool:
    """Return True where all that is there is as these words write it, and something is missing."""
    ours = all(files.get(name) == text for name, text in there.items())
    return bool(there) and ours and not all(os.path.lexists(os.path.join(folder, name)) for name in files)


def _beside(
    settings: Settings, there: Mapping[str, str], jobs: "Sequence[StarterJob]"
) -> "tuple[dict[str, str], tuple[str, ...], tuple[StarterJob, ...]]":
    """Return the files that change, the sections that targets.toml gets, and the jobs that are new beside those that are there.

    Raises: WrongRequest for a job whose name is taken · DeclarationError when the configuration has, or would get, a mistake.
    """
    from orchestrator.config.starter_files import starter_job_files, starter_section

    if not jobs:
        return {}, (), ()
    known = settings.configuration()
    if taken := next((job.name for job in jobs if f"jobs/{job.name}.toml" in there), ""):
        raise WrongRequest(
            f"there is a job {taken} already",
            f"write another one by hand, as a copy of {known.directory}/jobs/{taken}.toml, or give that one another name first: "
            f"`{settings.repeat(f'rename {taken} NEW')}`",
        )
    held = {place.name: str(place.location) for place in known.places} | dict.fromkeys(
        (each.name for each in known.sets), ""
    )
    new: list[StarterJob] = []
    sections: dict[str, str] = {}
    for asked in jobs:
        place = asked.place
        while place in held and held[place] != asked.at:
            place = f"{place}-2"
        job = replace(asked, place=place)
        if place and place not in held:
            sections[f"[{'set' if job.disks else 'place'}.{place}]"] = starter_section(job)
            held[place] = job.at
        new.append(job)
    files = {name: text for name, text in starter_job_files(new).items() if name.startswith("jobs/")}
    if sections:
        before = there.get(TARGETS, "").rstrip("\n")
        # The place first: a job without one would be a mistake, should we be killed between the two.
        files = {TARGETS: (before + "\n" + "".join(sections.values())).lstrip("\n"), **files}
    require_valid(settings, {**there, **files})
    return files, tuple(sections), tuple(new)


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
            raise WrongRequest(f"{places[0]}: where to?", f"such as `poolferry init {quoted(places[0])} {like}`")
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
            f"{bare}: there is no such folder here",
            f"write an absolute path, or for a pool where in another one its copy goes: `poolferry init {quoted(bare)} vault/copies`",
        )
    place = _absolute if kind == FOLDER else lambda text: str(_dataset(text))
    texts = [place(text) for text in sources]
    at = place(target) if target else ""
    if request.together:
        return (_together(kind, texts, at, request),)
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
    """Return a name for the job of a place: its last part; of a user's own home it is home."""
    from orchestrator.config.migrate.result import make_name

    if text == _usual():
        return "home"
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
