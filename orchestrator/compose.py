"""The only module that builds the real objects and passes them on: directories, clocks, engines, executors."""

import contextlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING

from orchestrator.config.directories import Directories, find_directories

if TYPE_CHECKING:  # a command imports only the modules that it needs, as the start must be quick
    from orchestrator.config.models import Configuration, EngineSection
    from orchestrator.domain.events import RunEvent
    from orchestrator.domain.gate import Gate
    from orchestrator.domain.job import Job, SnapshotRules
    from orchestrator.domain.machine import MachineConfig
    from orchestrator.domain.permit import RunPermit
    from orchestrator.domain.place import Location
    from orchestrator.engines.contract.snapshots import Snapshotter
    from orchestrator.engines.rsync.parse import TargetMarker
    from orchestrator.history.store import History
    from orchestrator.history.views import HistoryReader
    from orchestrator.process.executor import Reader
    from orchestrator.process.stop import StopRequest
    from orchestrator.runner.context import ProcessIdentity, RunContext
    from orchestrator.runner.progress_note import ProgressNote

__all__ = ["Directories", "find_directories"]

_HERE = os.path.dirname(os.path.abspath(__file__))
_MARKER = ".poolferry/target.json"


class EngineSections(Mapping[str, "EngineSection"]):
    """The sections that engines add to a job file; an engine is imported when a file names it."""

    def __init__(self) -> None:
        self._known: dict[str, EngineSection] = {}

    def __getitem__(self, name: str) -> "EngineSection":
        if name not in self._known:
            self._known[name] = self._section(name)
        return self._known[name]

    def _section(self, name: str) -> "EngineSection":
        from orchestrator.config.models import EngineSection
        from orchestrator.engines.registry import load_engine

        found = load_engine(name)
        return EngineSection(
            name=found.name,
            options=found.options,
            datasets=found.needs_datasets,
            check=found.mistakes,
            lands=found.lands,
            stays=found.stays,
            without=found.without,
            rules=_rules if found.needs_datasets else None,
            arrivals=hasattr(found, "received_points"),
        )

    def __iter__(self) -> Iterator[str]:
        from orchestrator.engines.registry import engine_names

        return iter(engine_names())

    def __len__(self) -> int:
        return len(tuple(iter(self)))


def _rules(snapshots: "SnapshotRules", source: "Location", copy: "Location | None") -> "Iterable[tuple[str, str, str]]":
    """Return sanoid's mistakes in the given rules."""
    from orchestrator.engines.sanoid.options import snapshot_mistakes

    return snapshot_mistakes(snapshots, source, copy)


def read_configuration(where: Directories, *, texts: "Mapping[str, bytes] | None" = None) -> "Configuration":
    """Return all jobs and places. `texts`: read in place of the files of these paths. Raises: DeclarationError."""
    from orchestrator.config.load import load_configuration

    return load_configuration(where.config, EngineSections(), texts=texts)


def has_machine_config(where: Directories) -> bool:
    """Return True when there is a poolferry.toml."""
    return os.path.exists(os.path.join(where.config, "poolferry.toml"))


def read_machine_config(where: Directories, jobs: "Collection[str] | None" = None) -> "MachineConfig":
    """Return the settings of the whole machine. `jobs`: names that channels may name. Raises: DeclarationError."""
    from orchestrator.config.machine import load_machine_config

    return load_machine_config(where.config, jobs)


def read_gate(where: Directories, name: str) -> "Gate":
    """Return what a key may do. Raises: DeclarationError."""
    from orchestrator.config.gates import load_gate

    return load_gate(where.config, name)


def now() -> datetime:
    """Return the present instant."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Return the seconds of a clock that is never set."""
    from time import monotonic

    return monotonic()


def sleep(seconds: float) -> None:
    """Wait."""
    from time import sleep

    sleep(seconds)


def random_fraction() -> float:
    """Return a random number from 0 to 1. Few runs need one, and the import takes 2 ms."""
    from random import random

    return random()  # noqa: S311 - it spreads waits and protects no secret


def seconds_until(clock: time, instant: datetime) -> float:
    """Return the seconds from the instant until the machine's own clocks next show this time of day."""
    today = instant.astimezone().date()
    days = (datetime.combine(today + timedelta(days=ahead), clock).astimezone() for ahead in range(3))
    return next((day - instant).total_seconds() for day in days if day > instant)


def make_stop_request(job: "Job | None") -> "StopRequest":
    """Return the request to stop, which the end of the job's time window triggers.

    Why not for a run that begins outside its window: a person started it, and knows the time.
    """
    from orchestrator.domain.units import Seconds
    from orchestrator.process.stop import StopRequest

    instant = now()
    if job is not None and job.stop_at is not None:
        from orchestrator.domain.due import BY_STOP_AT

        left = Seconds(seconds_until(job.stop_at, instant))
        return StopRequest(deadline=left, because=f"the time window ended at {job.stop_at:%H:%M} {BY_STOP_AT}")
    if job is not None and job.window is not None and job.window.holds(instant.astimezone().time()):
        left = Seconds(seconds_until(job.window.end, instant))
        return StopRequest(deadline=left, because=f"its window, {job.window}, ended")
    return StopRequest()


def open_history_reader(where: Directories) -> "HistoryReader":
    """Open the history for reading. Raises: HistoryError."""
    from orchestrator.history.views import open_reader

    return open_reader(where.history)


def open_history(where: Directories) -> "History":
    """Open the history for writing. Raises: HistoryError."""
    from orchestrator.history.store import open_history

    return open_history(where.history)


@contextlib.contextmanager
def open_connections(job: "Job") -> Iterator[tuple[str, ...]]:
    """Yield the ssh options for all work on behalf of a job inside, with which it shares one connection to each host."""
    hosts = tuple(host for host in {job.source.host, job.target.location.host} if host and not host.here)
    if not hosts:
        yield job.pipe.ssh_options
        return
    from orchestrator.process.ssh_master import shared_connections

    with shared_connections(hosts, job.pipe.ssh_options) as options:
        yield options


@contextlib.contextmanager
def make_reader(
    job: "Job", stop: "StopRequest", log: Callable[[str], None], *, apart: bool = False
) -> Iterator["Reader"]:
    """Yield a reader on behalf of a job: it can run only commands that read. `apart`: all looks are made by programs."""
    from orchestrator.process.executor import Reader

    with open_connections(job) as options:
        yield Reader(log=log, ssh_options=options, stop=stop, apart=apart)


def make_run_context(
    job: "Job",
    where: Directories,
    history: "History",
    *,
    notify: Callable[["RunEvent"], None],
    log: Callable[[str], None],
    stop: "StopRequest",
    ssh_options: tuple[str, ...],
    watched: bool = False,
    permit: "RunPermit | None" = None,
) -> "RunContext":
    """Build the tools for a job's run. `log` receives each command line before it runs; `ssh_options`: of `open_connections`.

    `watched`: a person watches the progress.
    """
    from orchestrator.engines.registry import load_engine
    from orchestrator.process.executor import Writer
    from orchestrator.runner.context import RunContext

    return RunContext(
        engine=load_engine(job.engine),
        snapshotter=make_snapshotter(job),
        history=history,
        writer=lambda inherit: Writer(log=log, ssh_options=ssh_options, inherit=inherit, stop=stop),
        clock=now,
        monotonic=monotonic,
        chance=random_fraction,
        notify=notify,
        stop=stop,
        state=where.state,
        config=where.config,
        hook_folders=hook_folders(where),
        hook_environment=hook_environment(where, os.environ),
        identity=process_identity(),
        alive=is_process_alive,
        watched=watched,
        permit=permit,
        files=lambda: load_engine("rsync"),
    )


def make_progress_note(state: str, run: int, begun: float) -> "ProgressNote":
    """Return the note of a run's progress for other processes. `begun`: when the copy did that is going on."""
    from orchestrator.runner.progress_note import ProgressNote

    return ProgressNote(
        state, run, begun=begun, clock=now, monotonic=monotonic, identity=process_identity(), alive=is_process_alive
    )


def make_snapshotter(job: "Job") -> "Snapshotter | None":
    """Return sanoid, to run around the copies of datasets; a job that copies nothing needs none."""
    alone = job.source.path.startswith("/") or not job.copies
    if alone or (job.snapshots is None and job.keep.everything):
        return None
    from orchestrator.engines.sanoid import ENGINE

    return ENGINE


def hook_folders(where: Directories) -> tuple[str, ...]:
    """Return the folders for a bare hook name: the owner's hooks, then those that came with poolferry."""
    shipped = _shipped("hooks")
    return (os.path.join(where.config, "hooks"), *([shipped] if shipped else []))


def shipped_units() -> dict[str, str]:
    """Return the systemd units that came with poolferry, by name. Raises: OrchestratorError."""
    from orchestrator.domain.errors import OrchestratorError

    folder = _shipped("systemd")
    if folder is None:
        raise OrchestratorError("this installation came without its systemd units", hint="install poolferry again")
    units = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith((".service", ".socket", ".timer", ".rules", ".conf")):
            with open(os.path.join(folder, name), encoding="utf-8", newline="\n") as file:
                units[name] = file.read()
    return units


def shipped_page(folder: str) -> str:
    """Return the page (README.md) of the folder "jobs" or "hooks" that came with poolferry. Raises: OrchestratorError."""
    from orchestrator.domain.errors import OrchestratorError

    if (shipped := _shipped(folder)) is None:
        raise OrchestratorError(f"this installation came without the page on {folder}", hint="install poolferry again")
    with open(os.path.join(shipped, "README.md"), encoding="utf-8", newline="\n") as file:
        return file.read()


def _shipped(space: str) -> str | None:
    """Return a folder that came with poolferry: beside the modules when installed, else in the checkout."""
    installed, checkout = os.path.join(_HERE, f"{space}_shipped"), os.path.dirname(_HERE)
    if os.path.isdir(installed):
        return installed
    return os.path.join(checkout, space) if os.path.isfile(os.path.join(checkout, "pyproject.toml")) else None


def hook_environment(where: Directories, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the environment of hooks besides the facts: the directories, and systemd's credentials."""
    passed = [(name, environment[name]) for name in ("CREDENTIALS_DIRECTORY",) if name in environment]
    return (("POOLFERRY_CONFIG", where.config), ("POOLFERRY_STATE", where.state), *passed)


def process_identity() -> "ProcessIdentity":
    """Return the identity of this process."""
    from orchestrator.runner.context import ProcessIdentity

    pid = os.getpid()
    return ProcessIdentity(pid=pid, started=_started(pid) or 0, boot=_boot(), host=os.uname().nodename)


def is_process_alive(pid: int, started: int, boot: str) -> bool:
    """Return True when the process with this recorded identity still runs."""
    return boot == _boot() and _started(pid) == started


def _boot() -> str:
    """Return the kernel's id of the current boot."""
    with open("/proc/sys/kernel/random/boot_id", encoding="utf-8", newline="\n") as file:
        return file.read().strip()


def _started(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None: it has ended, or is dead and not reaped yet.

    Source: proc(5): field 22 of stat; field 2 is a name in brackets that may itself hold blanks and brackets.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def job_from_target(location: "Location", *, log: Callable[[str], None]) -> "Job":
    """Build a job from a target's own data, so that data can be restored where no configuration is left.

    Raises: OrchestratorError when the place holds no copies of poolferry, or does not answer.
    """
    from orchestrator.domain.fast_dataclass import replace
    from orchestrator.domain.job import Job
    from orchestrator.domain.place import FOUND, HERE, Place
    from orchestrator.engines.registry import load_engine

    found = load_engine("rsync")
    marker = location / _MARKER
    content = _content(marker, log) if marker.host else _local_content(marker.path)
    owner = _owner(content, location)
    if owner.stored and location.host is None:
        location = replace(location, host=HERE)
    place = Place(name=FOUND, location=location)
    options = found.options(fake_super=owner.stored)
    job = Job(name=owner.job, file=marker.path, engine=found.name, source=location, target=place, options=options)
    mirror = replace(job, options=replace(options, points=False))
    return mirror if _is_mirror(job, mirror, log=log) else job


def _is_mirror(job: "Job", mirror: "Job", *, log: Callable[[str], None]) -> bool:
    """Return True when a place holds no points and one plain tree with a manifest. Both are the same job, read each way."""
    import contextlib

    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.engines.contract.copies import PointLister
    from orchestrator.engines.contract.engine import implements
    from orchestrator.engines.registry import load_engine

    engine = load_engine("rsync")
    with contextlib.suppress(OrchestratorError), make_reader(job, make_stop_request(None), log) as reader:
        if implements(engine, PointLister):
            return not engine.points(job, reader) and bool(engine.points(mirror, reader))
    return False  # what is wrong with the place, the restore itself says


def _owner(marker: bytes, location: "Location") -> "TargetMarker":
    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.domain.names import JOB_NAME
    from orchestrator.engines.rsync.parse import TargetMarker, parse_marker

    found = parse_marker(marker)
    if found is not None and JOB_NAME.fullmatch(found.job):
        return found
    if (name := _name_in_manifest(location)) is not None:
        return TargetMarker(job=name, coarse=False)
    raise OrchestratorError(
        f"{location} does not say that it holds copies of poolferry"
        + (f": its {_MARKER} is damaged, and no manifest there can be read" if marker else ""),
        hint=f"name the directory in which {_MARKER} and points/ lie",
    )


def _name_in_manifest(location: "Location") -> str | None:
    """Return the job that the newest readable manifest of a folder of this machine names, whose marker is lost; None: there is none."""
    import contextlib

    from orchestrator.domain.errors import OrchestratorError
    from orchestrator.domain.names import JOB_NAME
    from orchestrator.verify.manifest import read_manifest

    if location.host is not None:
        return None
    points = os.path.join(location.path, "points")
    with contextlib.suppress(OSError):
        ours = os.path.join(location.path, os.path.dirname(_MARKER), "manifest.gz")
        dated = (
            sorted((name for name in os.listdir(points) if name.endswith(".manifest.gz")), reverse=True)
            if os.path.isdir(points)
            else []
        )
        for path in (*(os.path.join(points, name) for name in dated), ours):
            with contextlib.suppress(OSError, OrchestratorError):
                job = read_manifest(path)[0].job
                if JOB_NAME.fullmatch(job):
                    return job
    return None


def _local_content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(1 << 16)
    except (FileNotFoundError, NotADirectoryError):
        return b""


def _content(file: "Location", log: Callable[[str], None]) -> bytes:
    import tempfile

    from orchestrator.engines.registry import load_engine
    from orchestrator.process.executor import Writer, pipeline_failure
    from orchestrator.runner.context import tree_engine

    with tempfile.TemporaryDirectory() as folder:
        local = os.path.join(folder, "target.json")
        pipeline = tree_engine(load_engine("rsync")).fetch(file, local)
        result = Writer(log=log).stream(pipeline)
        if not result.well:
            raise load_engine("rsync").explain(pipeline_failure(pipeline, result))
        return _local_content(local)
