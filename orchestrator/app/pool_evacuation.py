"""A pool that is going to be recreated, and all known copies of its data: here, on disks, on other hosts, as files.

Plugged-in disks are attached for the survey through the given `AttachedDisks`.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.evacuation import DatasetCopy, PoolContents, PoolEvacuation
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.plan import NothingToDo, Refusal
from orchestrator.domain.rotation import AT_MACHINE, ATTACHED, IN_TRANSIT
from orchestrator.engines.contract.copies import CopyFinder
from orchestrator.engines.contract.engine import RunRequest, implements
from orchestrator.engines.contract.pools import PoolRebuilder
from orchestrator.engines.registry import engine_names, load_engine
from orchestrator.planners.evacuation import (
    dataset_of,
    dataset_to_mount,
    datasets_of_folder,
    guids_from_history,
    is_in_pool,
    is_source_in,
    judge_evacuation,
)
from orchestrator.runner.disk.state import find_disk_record, job_on_disk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from orchestrator.app.attached_disks import AttachedDisks
    from orchestrator.app.settings import Settings
    from orchestrator.domain.place import Host
    from orchestrator.history.values import PointRecord
    from orchestrator.history.views import HistoryReader
    from orchestrator.process.executor import Reader

Placed = tuple[Job, DatasetCopy]
Guids = Mapping[str, frozenset[int]]
_ON_IT = "it lies on this very pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvacuationSurvey:
    """The pool as it is now, and the copies of its data.

    `jobs`: those that copy datasets of it; `trees`: those that copy files on it; `homes`: those whose copies are datasets of
    it. `keeps`: by dataset, the jobs whose copies lie in it.
    """

    pool: PoolContents
    jobs: tuple[Job, ...]
    placed: tuple[Placed, ...]
    trees: tuple[Job, ...] = ()
    homes: tuple[Job, ...] = ()
    keeps: Mapping[str, tuple[str, ...]]

    @property
    def copies(self) -> tuple[DatasetCopy, ...]:
        """Return the copies without their jobs."""
        return tuple(copy for _, copy in self.placed)


def judge_copies(here: EvacuationSurvey, lose: "Sequence[str]", trusted: "Sequence[str]" = ()) -> PoolEvacuation:
    """Return the judgement of each dataset of the pool."""
    return judge_evacuation(here.pool, here.copies, lose, trusted=trusted, keeps=here.keeps)


def find_rebuilder() -> PoolRebuilder:
    """Return the engine that can describe pools. Raises: TypeError."""
    found = next((one for name in engine_names() if implements(one := load_engine(name), PoolRebuilder)), None)
    if found is None:
        raise TypeError("no engine creates pools")
    return found


def restores_datasets(job: Job) -> bool:
    """Return True when a job copies datasets, and can restore them."""
    return job.copies and implements(load_engine(job.engine), PoolRebuilder)


def survey_evacuation(
    settings: "Settings", name: str, views: "HistoryReader", stays: "AttachedDisks", files_of: Iterable[str] = ()
) -> EvacuationSurvey:
    """Survey the pool and every copy that can be reached. Raises: OrchestratorError.

    `files_of`: file jobs that belong to it, while the pool itself is gone and cannot show them.
    """
    known, remembered = settings.configuration().jobs, set(files_of)
    jobs = tuple(job for job in known if is_source_in(job, name) and restores_datasets(job))
    seen = survey_pool(settings, name)
    others = [job for job in known if job.copies and not restores_datasets(job)]
    trees = tuple(
        job for job in others if job.name in remembered or _touched(job, seen) or waits_for_mount(job, seen, jobs)
    )
    if not jobs and not trees:
        hint = f'`poolferry check` lists the jobs; a job copies it by source = "{name}/…"'
        raise OrchestratorError(f"no job copies a dataset of the pool {name} of this machine", hint=hint)
    looked = CopySurveyor(settings, seen, views, stays)
    placed = [one for job in jobs for one in looked.at_datasets(job)]
    placed += [one for job in trees for one in looked.at_files(job)]
    homes = tuple(
        job
        for job in known
        if restores_datasets(job) and is_in_pool(job.target.location, name) and not job.target.rotates
    )
    placed += [one for job in homes if not is_source_in(job, name) for one in looked.at_home(job)]
    return EvacuationSurvey(
        pool=seen, jobs=jobs, placed=tuple(placed), trees=trees, homes=homes, keeps=_keeps(known, seen)
    )


def refuse_own_place(settings: "Settings", pool: PoolContents) -> Refusal | None:
    """Return a refusal when our own files are on the pool: without them the rebuild could not continue."""
    ours = [
        path for path in (settings.where.config, settings.where.history) if dataset_of(os.path.realpath(path), pool)
    ]
    if not ours:
        return None
    hint = (
        "copy them to another filesystem, and say this with --config and --state; or, once a kit of today lies beside a copy, "
        "destroy it by hand, and begin with `poolferry restore bootstrap`"
    )
    return Refusal(
        why=f"poolferry's own {' and '.join(ours)} {'lies' if len(ours) == 1 else 'lie'} on it", evidence=(), hint=hint
    )


def survey_pool(settings: "Settings", name: str) -> PoolContents:
    """Survey the pool alone. Raises: OrchestratorError."""
    from orchestrator.process.executor import Reader

    return find_rebuilder().survey_pool(name, Reader(log=settings.log))


def _engine(job: Job) -> PoolRebuilder:
    found = load_engine(job.engine)
    if not implements(found, PoolRebuilder):
        raise TypeError(f"the engine {job.engine} creates no pools")
    return found


def _host(host: "Host | None") -> str:
    return host.name if host else ""


def datasets_of_files(job: Job, pool: PoolContents) -> tuple[str, ...]:
    """Return the datasets from which a file job copies files."""
    return tuple(_touched(job, pool))


def _touched(job: Job, pool: PoolContents) -> dict[str, str]:
    """Return the datasets from which a file job copies, each with the parts that it does not copy."""
    if job.source.host is not None or not job.source.path.startswith("/"):
        return {}
    below = not getattr(job.options, "one_file_system", True)
    found: dict[str, str] = {}
    for folder in job.tree.folders:
        found |= datasets_of_folder(os.path.realpath(folder.path), pool, below=below)
    return found


def waits_for_mount(job: Job, pool: PoolContents, jobs: Iterable[Job]) -> bool:
    """Return True when a file job copies a folder that is empty here, or not there, until a dataset of the pool is mounted.

    `jobs`: those that copy datasets: what they bring back is no file job's to wait for.
    """
    if job.source.host is not None or not job.source.path.startswith("/"):
        return False
    waits = (dataset_to_mount(each.path, pool) for each in job.tree.folders if not _has_entries(each.path))
    return any(name and not any(f"{name}/".startswith(f"{one.source.path}/") for one in jobs) for name in waits)


def _has_entries(folder: str) -> bool:
    """Return True for a folder in which something is; one that cannot be read may hold anything."""
    try:
        with os.scandir(folder) as entries:
            return any(True for _ in entries)
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _on_pool(job: Job, pool: PoolContents) -> bool:
    """Return True when a job's copies are on the pool."""
    place = job.target.location
    if place.host is not None:
        return False
    if place.path.startswith("/"):
        return dataset_of(os.path.realpath(place.path), pool) is not None
    return is_in_pool(place, pool.name)


def _keeps(jobs: Iterable[Job], pool: PoolContents) -> dict[str, tuple[str, ...]]:
    """Return the jobs whose copies are in each dataset, by dataset."""
    found: dict[str, list[str]] = {}
    for job in jobs:
        if not job.copies or job.target.rotates or not _on_pool(job, pool):
            continue
        path = job.target.location.path
        if path.startswith("/"):
            on = dataset_of(os.path.realpath(path), pool)
            names = [on[0]] if on else []
        else:
            names = [one.name for one in pool.datasets if f"{one.name}/".startswith(f"{path}/")]
        for name in names:
            found.setdefault(name, []).append(f"{job.name} (of {job.source})")
    return {name: tuple(told) for name, told in found.items()}


class CopySurveyor:
    """A survey of the copies of one pool."""

    def __init__(
        self, settings: "Settings", pool: PoolContents, views: "HistoryReader", stays: "AttachedDisks"
    ) -> None:
        self._settings, self._pool, self._views, self._stays = settings, pool, views, stays

    def at_datasets(self, job: Job) -> Iterator[Placed]:
        """Yield the job's copy; of a rotation set, the copy on each of its disks."""
        if job.target.rotation is None and _on_pool(job, self._pool):
            yield job, DatasetCopy(job=job.name, place=job.target.name, held=None, why=_ON_IT)
            return
        found, home = _engine(job), list[Guids]()
        for one, copy in self._places(job):
            held, why = None, copy.why or "its pool is not imported, or has no copy of it"
            try:
                with self._reader(one) as reader:
                    held = found.survey_copy_guids(one, self._request(), reader) or None
                    if held is None and not copy.why:
                        why = self._renamed(one, reader) or why
                    if held is None and copy.disk:
                        home = home or [found.survey_source_guids(one, self._request(), reader)]
            except OrchestratorError as error:
                why = error.why
            told = self._told(job, copy.place, home[0]) if held is None and home else {}
            yield one, replace(copy, held=held, why="" if held else why, told=told)

    def _renamed(self, job: Job, reader: "Reader") -> str:
        """Return where the copy lies now, by its guid, and how to go on; empty: nowhere that shows it. Raises: OrchestratorError."""
        engine = load_engine(job.engine)
        moved = (
            engine.explain_moved_copy(job, self._views.memory(job.name), reader)
            if implements(engine, CopyFinder)
            else None
        )
        return f"{moved.why}: {moved.hint}" if moved else ""

    def at_home(self, job: Job) -> Iterator[Placed]:
        """Yield the same snapshots that the source holds, for a job whose copy is on the pool."""
        copy = DatasetCopy(job=job.name, place=f"its source {job.source.path}", where=_host(job.source.host), held=None)
        try:
            with self._reader(job) as reader:
                held = _engine(job).survey_source_guids(job, self._request(), reader)
        except OrchestratorError as error:
            yield job, replace(copy, why=error.why)
            return
        at = len(job.source.path)
        yield job, replace(copy, held={job.target.location.path + name[at:]: guids for name, guids in held.items()})

    def at_files(self, job: Job) -> Iterator[Placed]:
        """Yield the copies of a file job; each shows whether its newest point equals the source now."""
        touched = _touched(job, self._pool)
        if job.target.rotation is None and _on_pool(job, self._pool):
            yield job, DatasetCopy(job=job.name, place=job.target.name, held=None, why=_ON_IT)
            return
        for one, copy in self._places(job):
            try:
                point, why = self._files(one) if touched else (self._newest(one), "")
            except OrchestratorError as error:
                yield one, replace(copy, why=copy.why or error.why)
                continue
            if not point:
                yield one, replace(copy, why=copy.why or why or "it has no restore point of it")
                continue
            files = {name: less or why for name, less in touched.items()}
            yield one, replace(copy, held={}, files=files, point=point, why="")

    def _files(self, job: Job) -> tuple[str, str]:
        """Return (newest point, why it does not hold all of the source); a complete one leaves a run nothing to do."""
        from orchestrator.runner.dry_run import RememberedFacts, plan_job

        facts = self._views.memory(job.name)
        with self._reader(job) as reader:
            decision = plan_job(
                job, load_engine(job.engine), reader, RememberedFacts(facts=facts, sound=()), state=self._settings.where.state,
                now=compose.now(), allowed=frozenset(),
            ).decision  # fmt: skip
        newest = self._newest(job)
        excludes = getattr(job.options, "excludes", ())
        if isinstance(decision, Refusal):
            return newest, decision.why
        if not isinstance(decision, NothingToDo):
            return newest, "something has changed since its newest point"
        if excludes:
            return newest, f"it leaves out {', '.join(excludes)}"
        record = next((one for one in self._points(job) if one.name == decision.current), None)
        if record is None or record.verified_at is None or record.sound is False:
            return (
                newest,
                f"its newest point {decision.current} is {'damaged' if record and record.verified_at else 'not verified'}",
            )
        return decision.current or newest, ""

    def _newest(self, job: Job) -> str:
        with self._reader(job) as reader:
            points = load_engine(job.engine).points(job, reader)
        return points[-1].name if points else ""

    def _points(self, job: Job) -> "list[PointRecord]":
        return [one for one in self._views.points(job.name) if one.place == job.target.name]

    def _places(self, job: Job) -> Iterator[Placed]:
        """Yield the job at each place, with the facts known there; attach the plugged-in disks."""
        rotation = job.target.rotation
        known = {copy.place: copy.current_at for copy in self._views.health_facts(job.name).copies}
        if rotation is None:
            name, host = job.target.name, _host(job.target.location.host)
            yield job, DatasetCopy(job=job.name, place=name, held=None, where=host, known_at=known.get(name))
            return
        enrolled, at = self._views.disks.known(), self._views.disks.places()
        for disk in rotation.disks:
            why = self._stays.bring(rotation, disk)
            own = find_disk_record(enrolled, disk)
            where = at.get(own.disk) if own else None
            noted = (
                where.place if where and where.place not in (ATTACHED, IN_TRANSIT, AT_MACHINE) else ""
            )  # by a person
            away = noted if why else ""
            yield job_on_disk(job, disk), DatasetCopy(
                job=job.name, place=disk.name, held=None, why=why, known_at=known.get(disk.name), disk=disk.name, where=away
            )  # fmt: skip

    def _told(self, job: Job, place: str, home: Guids) -> Guids:
        """Return the contents of a disk by history: points that were verified there, or older than a verified one."""
        records = [one for one in self._views.points(job.name) if one.place == place and one.sound is not False]
        verified = [one.taken_at for one in records if one.verified_at is not None and one.taken_at is not None]
        if not verified:
            return {}
        points = [(one.name, one.taken_at) for one in records if one.taken_at and one.taken_at <= max(verified)]
        told = guids_from_history(self._pool, home, points)
        return {name: guids & home[name] for name, guids in told.items() if guids & home[name]}

    def _reader(self, job: Job) -> "AbstractContextManager[Reader]":
        return compose.make_reader(job, compose.make_stop_request(None), self._settings.log)

    def _request(self) -> RunRequest:
        return RunRequest(now=compose.now(), notes=self._settings.where.state)
