"""A pool that is to be recreated, and all known copies of its data: here, on disks, on other hosts, as files.

Disks that are plugged in are attached for the look, by what it is given for that.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.evacuation import Copy, Leaving, PoolSeen
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Nothing, Refusal
from orchestrator.engines.contract import Asked
from orchestrator.engines.registry import engine, engine_names
from orchestrator.planners.evacuation import as_told, dataset_of, is_in, judge_leaving, lies_in, touched_by
from orchestrator.runner.contract_rebuild import Rebuilder
from orchestrator.runner.disk.state import find_known, on_disk

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from orchestrator.app.attached_disks import Stays
    from orchestrator.app.settings import Frame
    from orchestrator.domain.place import Host
    from orchestrator.history.values import PointRecord
    from orchestrator.history.views import Views
    from orchestrator.process.executor import Reader

Placed = tuple[Job, Copy]
Guids = Mapping[str, frozenset[int]]
_ON_IT = "it lies on this very pool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """The pool as it is now, and the copies of its data.

    `jobs`: that copy datasets of it. `trees`: of files that lie on it. `homes`: whose copies are datasets of it. `keeps`: by
    dataset, jobs whose copies lie in it.
    """

    pool: PoolSeen
    jobs: tuple[Job, ...]
    placed: tuple[Placed, ...]
    trees: tuple[Job, ...] = ()
    homes: tuple[Job, ...] = ()
    keeps: Mapping[str, tuple[str, ...]]

    @property
    def copies(self) -> tuple[Copy, ...]:
        """Return the copies without their jobs."""
        return tuple(copy for _, copy in self.placed)


def judged(here: Here, lose: "Sequence[str]", trusted: "Sequence[str]" = ()) -> Leaving:
    """Return the judgement of each dataset of the pool."""
    return judge_leaving(here.pool, here.copies, lose, trusted=trusted, keeps=here.keeps)


def any_rebuilder() -> Rebuilder:
    """Return the engine that can describe pools. Raises: TypeError."""
    found = next((one for name in engine_names() if isinstance(one := engine(name), Rebuilder)), None)
    if found is None:
        raise TypeError("no engine makes pools anew")
    return found


def of_datasets(job: Job) -> bool:
    """Return True when a job copies datasets, and can restore them."""
    return job.copies and isinstance(engine(job.engine), Rebuilder)


def look(frame: "Frame", name: str, views: "Views", stays: "Stays", files_of: Iterable[str] = ()) -> Here:
    """Survey the pool and every copy that can be reached. Raises: OrchestratorError.

    `files_of`: jobs of files that belong to it, while nothing of it is there to tell.
    """
    known, remembered = frame.configuration().jobs, set(files_of)
    jobs = tuple(job for job in known if lies_in(job, name) and of_datasets(job))
    seen = look_at_pool(frame, name)
    others = [job for job in known if job.copies and not of_datasets(job)]
    trees = tuple(job for job in others if job.name in remembered or _touched(job, seen))
    if not jobs and not trees:
        cure = f'`poolferry check` lists the jobs; a job copies it by source = "{name}/…"'
        raise OrchestratorError(f"no job copies a dataset of the pool {name} of this machine", cure=cure)
    looked = _Look(frame, seen, views, stays)
    placed = [one for job in jobs for one in looked.at_datasets(job)]
    placed += [one for job in trees for one in looked.at_files(job)]
    homes = tuple(
        job for job in known if of_datasets(job) and is_in(job.target.location, name) and not job.target.rotates
    )
    placed += [one for job in homes if not lies_in(job, name) for one in looked.at_home(job)]
    return Here(pool=seen, jobs=jobs, placed=tuple(placed), trees=trees, homes=homes, keeps=_keeps(known, seen))


def own_place(frame: "Frame", pool: PoolSeen) -> Refusal | None:
    """Return a refusal when our own files are on the pool: without them the rebuild could not continue."""
    ours = [path for path in (frame.where.config, frame.where.history) if dataset_of(os.path.realpath(path), pool)]
    if not ours:
        return None
    cure = (
        "copy them to another filesystem, and say this with --config and --state; or, once a kit of today lies beside a copy, "
        "destroy it by hand, and begin with `poolferry restore bootstrap`"
    )
    return Refusal(
        why=f"poolferry's own {' and '.join(ours)} {'lies' if len(ours) == 1 else 'lie'} on it", evidence=(), cure=cure
    )


def look_at_pool(frame: "Frame", name: str) -> PoolSeen:
    """Survey the pool alone. Raises: OrchestratorError."""
    from orchestrator.process.executor import Reader

    return any_rebuilder().survey_pool(name, Reader(log=frame.log))


def _engine(job: Job) -> Rebuilder:
    found = engine(job.engine)
    if not isinstance(found, Rebuilder):
        raise TypeError(f"the engine {job.engine} makes no pools anew")
    return found


def _host(host: "Host | None") -> str:
    return host.name if host else ""


def datasets_of_files(job: Job, pool: PoolSeen) -> tuple[str, ...]:
    """Return the datasets from which a file job copies files."""
    return tuple(_touched(job, pool))


def _touched(job: Job, pool: PoolSeen) -> dict[str, str]:
    """Return the datasets of which a file job copies something, each with what it does not copy."""
    if job.source.host is not None or not job.source.path.startswith("/"):
        return {}
    below = not getattr(job.options, "one_file_system", True)
    return touched_by(os.path.realpath(job.source.path), pool, below=below)


def _on_pool(job: Job, pool: PoolSeen) -> bool:
    """Return True when a job's copies are on the pool."""
    place = job.target.location
    if place.host is not None:
        return False
    if place.path.startswith("/"):
        return dataset_of(os.path.realpath(place.path), pool) is not None
    return is_in(place, pool.name)


def _keeps(jobs: Iterable[Job], pool: PoolSeen) -> dict[str, tuple[str, ...]]:
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


class _Look:
    """A survey of the copies of one pool."""

    def __init__(self, frame: "Frame", pool: PoolSeen, views: "Views", stays: "Stays") -> None:
        self._frame, self._pool, self._views, self._stays = frame, pool, views, stays

    def at_datasets(self, job: Job) -> Iterator[Placed]:
        """Yield the job's copy; of a rotation set, the copy on each of its disks."""
        if job.target.rotation is None and _on_pool(job, self._pool):
            yield job, Copy(job=job.name, place=job.target.name, held=None, why=_ON_IT)
            return
        found, home = _engine(job), list[Guids]()
        for one, copy in self._places(job):
            held, why = None, copy.why or "its pool is not imported, or holds nothing of it"
            try:
                with self._reader(one) as reader:
                    held = found.survey_held(one, self._asked(), reader) or None
                    if held is None and copy.disk:
                        home = home or [found.survey_home(one, self._asked(), reader)]
            except OrchestratorError as error:
                why = error.why
            told = self._told(job, copy.place, home[0]) if held is None and home else {}
            yield one, replace(copy, held=held, why="" if held else why, told=told)

    def at_home(self, job: Job) -> Iterator[Placed]:
        """Yield what the source holds of the same snapshots, for a job whose copy is on the pool."""
        copy = Copy(job=job.name, place=f"its source {job.source.path}", where=_host(job.source.host), held=None)
        try:
            with self._reader(job) as reader:
                held = _engine(job).survey_home(job, self._asked(), reader)
        except OrchestratorError as error:
            yield job, replace(copy, why=error.why)
            return
        at = len(job.source.path)
        yield job, replace(copy, held={job.target.location.path + name[at:]: guids for name, guids in held.items()})

    def at_files(self, job: Job) -> Iterator[Placed]:
        """Yield the copies of a file job; each shows whether its newest point equals the source now."""
        touched = _touched(job, self._pool)
        if job.target.rotation is None and _on_pool(job, self._pool):
            yield job, Copy(job=job.name, place=job.target.name, held=None, why=_ON_IT)
            return
        for one, copy in self._places(job):
            try:
                point, why = self._files(one) if touched else (self._newest(one), "")
            except OrchestratorError as error:
                yield one, replace(copy, why=copy.why or error.why)
                continue
            if not point:
                yield one, replace(copy, why=copy.why or why or "it holds no point of it")
                continue
            files = {name: less or why for name, less in touched.items()}
            yield one, replace(copy, held={}, files=files, point=point, why="")

    def _files(self, job: Job) -> tuple[str, str]:
        """Return (newest point, why it is not all of the source); at a complete one a run has nothing to do."""
        from orchestrator.runner.dry_run import Known, plan_job

        facts = self._views.memory(job.name)
        with self._reader(job) as reader:
            decision = plan_job(
                job, engine(job.engine), reader, Known(facts=facts, sound=()), state=self._frame.where.state,
                now=compose.now(), allowed=frozenset(),
            ).decision  # fmt: skip
        newest = self._newest(job)
        excludes = getattr(job.options, "excludes", ())
        if isinstance(decision, Refusal):
            return newest, decision.why
        if not isinstance(decision, Nothing):
            return newest, "something has changed since its newest point"
        if excludes:
            return newest, f"it leaves out {', '.join(excludes)}"
        record = next((one for one in self._points(job) if one.name == decision.current), None)
        if record is None or record.proved_at is None or record.sound is False:
            return (
                newest,
                f"its newest point {decision.current} is {'damaged' if record and record.proved_at else 'not proved'}",
            )
        return decision.current or newest, ""

    def _newest(self, job: Job) -> str:
        with self._reader(job) as reader:
            points = engine(job.engine).points(job, reader)
        return points[-1].name if points else ""

    def _points(self, job: Job) -> "list[PointRecord]":
        return [one for one in self._views.points(job.name) if one.place == job.target.name]

    def _places(self, job: Job) -> Iterator[Placed]:
        """Yield the job at each place, with what is known there; attach the disks that are here."""
        rotation = job.target.rotation
        known = {copy.place: copy.current_at for copy in self._views.health_facts(job.name).copies}
        if rotation is None:
            name, host = job.target.name, _host(job.target.location.host)
            yield job, Copy(job=job.name, place=name, held=None, where=host, known_at=known.get(name))
            return
        enrolled, at = self._views.disks.known(), self._views.disks.places()
        for disk in rotation.disks:
            why = self._stays.bring(rotation, disk)
            own = find_known(enrolled, disk)
            where = at.get(own.disk) if own else None
            away = where.place if where and why else ""
            yield on_disk(job, disk), Copy(
                job=job.name, place=disk.name, held=None, why=why, known_at=known.get(disk.name), disk=disk.name, where=away
            )  # fmt: skip

    def _told(self, job: Job, place: str, home: Guids) -> Guids:
        """Return what a disk holds by history: points that were verified there, or older than a verified one."""
        records = [one for one in self._views.points(job.name) if one.place == place and one.sound is not False]
        proved = [one.taken_at for one in records if one.proved_at is not None and one.taken_at is not None]
        if not proved:
            return {}
        points = [(one.name, one.taken_at) for one in records if one.taken_at and one.taken_at <= max(proved)]
        told = as_told(self._pool, home, points)
        return {name: guids & home[name] for name, guids in told.items() if guids & home[name]}

    def _reader(self, job: Job) -> "AbstractContextManager[Reader]":
        return compose.reader(job, compose.stop_for(None), self._frame.log)

    def _asked(self) -> Asked:
        return Asked(now=compose.now(), notes=self._frame.where.state)
