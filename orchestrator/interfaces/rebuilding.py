"""A pool is made anew, step by step: is it all elsewhere; by the user: destroy and create; bring back; compare; chains.

What is done is seen on the pools themselves; history keeps only what they cannot tell while the pool is gone.

Changes things.
"""

import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator import compose
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Job
from orchestrator.domain.leaving import Copy, KitFacts, Leaving, PoolSeen
from orchestrator.domain.place import Location
from orchestrator.domain.quick import dataclass
from orchestrator.engines.contract import Asked
from orchestrator.engines.shelf import engine
from orchestrator.planners.leaving import (
    best_copy,
    in_order,
    is_back,
    judge_leaving,
    lies_in,
    may_be_lost,
    missing_above,
)
from orchestrator.runner.disks import on_disk
from orchestrator.runner.rebuilder import Rebuilder

if TYPE_CHECKING:
    from orchestrator.domain.run import RunReport
    from orchestrator.history.rebuilds import Rebuild
    from orchestrator.history.store import History
    from orchestrator.history.views import Views
    from orchestrator.interfaces.cli.frame import Frame

Placed = tuple[Job, Copy]
Restore = Callable[[Job, Location], "RunReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """The pool as it is now, and the copies of what lies on it."""

    pool: PoolSeen
    jobs: tuple[Job, ...]
    placed: tuple[Placed, ...]

    @property
    def copies(self) -> tuple[Copy, ...]:
        """The copies without their jobs."""
        return tuple(copy for _, copy in self.placed)


def rebuilder(job: Job) -> Rebuilder | None:
    """The job's engine, where it can tell of pools."""
    found = engine(job.engine)
    return found if isinstance(found, Rebuilder) and job.copies else None


def look(frame: "Frame", name: str, views: "Views") -> Here:
    """Looks at the pool and at every copy that can be reached. Raises: OrchestratorError."""
    jobs = tuple(job for job in frame.configuration().jobs if lies_in(job, name) and rebuilder(job))
    if not jobs:
        cure = f'`poolferry check` lists the jobs; a job copies it by source = "{name}/…"'
        raise OrchestratorError(f"no job copies a dataset of the pool {name} of this machine", cure=cure)
    placed = tuple(one for job in jobs for one in _copies(frame, job, views))
    return Here(pool=look_at_pool(frame, name, jobs[0]), jobs=jobs, placed=placed)


def look_at_pool(frame: "Frame", name: str, job: Job) -> PoolSeen:
    """The pool alone, on behalf of a job that copies something of it. Raises: OrchestratorError."""
    with compose.reader(job, compose.stop_for(None), frame.log) as reader:
        return _engine(job).survey_pool(name, reader)


def _engine(job: Job) -> Rebuilder:
    found = rebuilder(job)
    if found is None:
        raise TypeError(f"the engine {job.engine} makes no pools anew")
    return found


def _copies(frame: "Frame", job: Job, views: "Views") -> Iterator[Placed]:
    """The job's copy; of a rotation set, that on each of its disks."""
    rotation = job.target.rotation
    known = {copy.place: copy.current_at for copy in views.health_facts(job.name).copies}
    for one in (job,) if rotation is None else (on_disk(job, disk) for disk in rotation.disks):
        place, why = one.target.name, "its pool is not imported, or holds nothing of it"
        try:
            with compose.reader(one, compose.stop_for(None), frame.log) as reader:
                held = _engine(one).survey_held(one, _asked(frame), reader) or None
        except OrchestratorError as error:
            held, why = None, error.why
        yield one, Copy(job=job.name, place=place, held=held, why="" if held else why, known_at=known.get(place))


def _asked(frame: "Frame") -> Asked:
    return Asked(now=compose.now(), notes=frame.where.state)


def judged(here: Here, lose: Sequence[str]) -> Leaving:
    """How each dataset of the pool stands."""
    return judge_leaving(here.pool, here.copies, lose)


# What is remembered while the pool is gone.


def remembered(here: Here, views: "Views") -> dict[str, str]:
    """The newest kit of each job, as history has it."""
    found = ((job.name, views.kits.of(job.name)) for job in here.jobs)
    return {name: record.kit.content for name, record in found if record is not None}


def fresh_kits(frame: "Frame", here: Here, history: "History") -> dict[str, str]:
    """A kit of each job's source as it is at this moment, in history too. Raises: OrchestratorError."""
    made = {}
    for job in here.jobs:
        with compose.reader(job, compose.stop_for(None), frame.log) as reader:
            kit = _engine(job).survey_kit(job, compose.now(), reader)
        history.kits.keep(job.name, kit, compose.now())
        made[job.name] = kit.content
    return made


def facts(here: Here, kits: dict[str, str]) -> dict[str, KitFacts]:
    """What each kit says of the pool."""
    return {name: _engine(here.jobs[0]).read_kit(content, here.pool.name) for name, content in kits.items()}


def is_anew(here: Here, known: "Rebuild | None", told: dict[str, KitFacts]) -> bool:
    """Whether the pool that is here is another one than that of which the kits tell."""
    tops = {known.top_guid} if known else {one.top_guid for one in told.values()}
    return here.pool.guid is not None and bool(tops - {None}) and here.pool.guid not in tops


def lines_to_make(pool: str, told: dict[str, KitFacts], *, there: bool) -> tuple[str, ...]:
    """What the user has to say to make the pool, and what lies above the sources, anew."""
    create = next((one.create for one in told.values()), "")
    above = dict.fromkeys(line for one in told.values() for line in one.above)
    return (*((f"zpool destroy {pool}",) if there else ()), *filter(None, (create,)), *above)


def missing(here: Here, told: dict[str, KitFacts]) -> tuple[str, ...]:
    """Lines for what lies above the sources and is not there."""
    names = {name for source, _ in in_order(here.jobs) for name in missing_above(source, here.pool)}
    lines = dict.fromkeys(line for one in told.values() for line in one.above)
    return tuple(line for line in lines if shlex.split(line)[-1] in names)


# Bringing back.


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One source on its way: `copy` it comes back from; None: none can be reached, as `why` tells."""

    source: Location
    job: Job | None
    copy: Copy | None
    back: bool
    why: str = ""


def parts(here: Here, told: dict[str, KitFacts]) -> tuple[Part, ...]:
    """Each source, in the order in which they return."""
    return tuple(_part(here, source, jobs, told) for source, jobs in in_order(here.jobs))


def _part(here: Here, source: Location, jobs: Sequence[Job], told: dict[str, KitFacts]) -> Part:
    names = {job.name for job in jobs}
    known = {name: guids for job in names & told.keys() for name, guids in told[job].guids.items()}
    placed = [(job, copy) for job, copy in here.placed if copy.job in names]
    best = best_copy(source, [copy for _, copy in placed], known)
    if best is None:
        why = "; ".join(f"{copy.place}: {copy.why or 'holds nothing of it'}" for _, copy in placed)
        return Part(source=source, job=None, copy=None, back=False, why=why)
    job = next(job for job, copy in placed if copy is best)
    return Part(source=source, job=job, copy=best, back=is_back(source, here.pool, best))


def differences(frame: "Frame", here: Here, kits: dict[str, str], lost: Sequence[str]) -> tuple[str, ...]:
    """What is not as the kits have it, but for what may be lost. Raises: OrchestratorError."""
    found: dict[str, None] = {}
    for job in here.jobs:
        if job.name not in kits:
            continue
        with compose.reader(job, compose.stop_for(None), frame.log) as reader:
            now = _engine(job).survey_kit(job, compose.now(), reader)
        found |= dict.fromkeys(_engine(job).compare_kits(kits[job.name], now.content))
    return tuple(line for line in found if not any(may_be_lost(_subject(line), name) for name in lost))


def _subject(line: str) -> str:
    """The dataset that a difference is about."""
    return line.removesuffix(" is not there").partition(": ")[0]


def part_value(part: Part) -> dict[str, Any]:
    """A part for programs."""
    return {
        "source": str(part.source), "job": part.copy.job if part.copy else None,
        "place": part.copy.place if part.copy else None, "back": part.back, "why": part.why,
    }  # fmt: skip
