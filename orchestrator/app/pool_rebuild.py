"""A pool's rebuild, step by step: check that all data is elsewhere; by the user: destroy and create; restore; compare; bases.

Progress is read from the pools themselves; history keeps only facts that they cannot show while the pool is gone.
"""

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator import compose
from orchestrator.app.pool_evacuation import EvacuationSurvey, datasets_of_files, find_rebuilder, waits_for_mount
from orchestrator.domain.command_line import quoted
from orchestrator.domain.evacuation import KitFacts
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.kit import KitContents
from orchestrator.domain.place import Location
from orchestrator.domain.run import Outcome, RunType
from orchestrator.planners.evacuation import (
    choose_best_copy,
    dataset_of,
    has_come_back,
    may_be_lost,
    missing_above,
    restore_order,
)
from orchestrator.runner.restore.request import restore_reason
from orchestrator.views.pool_rebuild import RebuildPart

if TYPE_CHECKING:
    from orchestrator.app.settings import Settings
    from orchestrator.domain.run import RunReport
    from orchestrator.history.rebuilds import PoolRebuild
    from orchestrator.history.store import History
    from orchestrator.history.views import HistoryReader

Restore = Callable[[Job, Location], "RunReport"]
_FILES = "files of "  # before a job's name and a dataset: a kit of a dataset that is restored as files
_PLACE = "place of "  # the same for a dataset that holds a job's copies
_RUNS = 50


# Facts that are remembered while the pool is gone.


def remembered_kits(here: EvacuationSurvey, views: "HistoryReader") -> dict[str, str]:
    """Return the newest kit of each job from history."""
    found = ((job.name, views.kits.of(job.name)) for job in here.jobs)
    return {name: record.kit.content for name, record in found if record is not None}


def fresh_kits(settings: "Settings", here: EvacuationSurvey, history: "History") -> dict[str, str]:
    """Make a kit of each job's source as of now, and record it in history. Raises: OrchestratorError."""
    made = survey_kits(settings, here)
    save_kits(history, made)
    contents = {name: kit.content for name, kit in made.items()}
    return contents | dict(_kits_of_files(settings, here)) | dict(_kits_of_places(settings, here))


def rename_kits(kits: Mapping[str, str], before: str, now: str, *, keep_paths: bool) -> dict[str, str]:
    """Return the kits as they are for a pool of another name. Raises: OrchestratorError."""
    rebuilder = find_rebuilder()
    return {
        _renamed_key(key, before, now): rebuilder.rename_kit(kit, before, now, keep_paths=keep_paths)
        for key, kit in kits.items()
    }


def _renamed_key(key: str, before: str, now: str) -> str:
    """Return a kit's key with the new name: one that is about a dataset names it last."""
    if not key.startswith((_FILES, _PLACE)):
        return key
    front = _FILES if key.startswith(_FILES) else _PLACE
    job, _, dataset = key.removeprefix(front).partition(" ")
    return f"{front}{job} {now}{dataset.removeprefix(before)}"


def survey_kits(settings: "Settings", here: EvacuationSurvey) -> dict[str, KitContents]:
    """Make a kit of each job's source as of now. Raises: OrchestratorError."""
    made = {}
    for job in here.jobs:
        with compose.make_reader(job, compose.make_stop_request(None), settings.log) as reader:
            made[job.name] = find_rebuilder().survey_kit(job, compose.now(), reader)
    return made


def save_kits(history: "History", made: Mapping[str, KitContents]) -> None:
    """Record the kits in history, as the known state of the jobs' sources from now on."""
    for name, kit in made.items():
        history.kits.keep(name, kit, compose.now())


def _kits_of_files(settings: "Settings", here: EvacuationSurvey) -> Iterator[tuple[str, str]]:
    """Yield the kits that recreate the datasets of which only files are copied."""
    for job in here.trees:
        for dataset in _only_files(here, job):
            if "/" in dataset:  # the pool's own dataset is created with it
                yield f"{_FILES}{job.name} {dataset}", _kit_of(settings, job, dataset)


def _kits_of_places(settings: "Settings", here: EvacuationSurvey) -> Iterator[tuple[str, str]]:
    """Yield the kits that recreate the parent datasets of other copies; their jobs send those copies again."""
    for job in here.homes:
        place = job.target.location.path.rpartition("/")[0]
        if "/" in place and any(one.name == place for one in here.pool.datasets) and not _comes_back(here, place):
            yield f"{_PLACE}{job.name} {place}", _kit_of(settings, job, place)


def _comes_back(here: EvacuationSurvey, dataset: str) -> bool:
    """Return True when a dataset is one of those that are restored from a copy."""
    return any(f"{dataset}/".startswith(f"{one.source.path}/") for one in here.jobs)


def mounts_of_datasets(here: EvacuationSurvey) -> tuple[str, ...]:
    """Return the mount points of datasets restored as such: a copy of files that overlaps them restores the rest."""
    names = {one.name for one in here.pool.datasets if _comes_back(here, one.name)}
    return tuple(at for what, at in here.pool.mounts if what in names)


def _only_files(here: EvacuationSurvey, job: Job) -> tuple[str, ...]:
    """Return the datasets of a file job that are not restored as datasets."""
    return tuple(name for name in datasets_of_files(job, here.pool) if not _comes_back(here, name))


def _kit_of(settings: "Settings", job: Job, dataset: str) -> str:
    local = replace(job, source=Location(path=dataset))
    with compose.make_reader(job, compose.make_stop_request(None), settings.log) as reader:
        return find_rebuilder().survey_kit(local, compose.now(), reader).content


def datasets_of_kits(kits: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Return the datasets that the kits list for each file job, by job."""
    found: dict[str, tuple[str, ...]] = {}
    for key in kits:
        if key.startswith(_FILES):
            job, _, dataset = key.removeprefix(_FILES).partition(" ")
            found[job] = (*found.get(job, ()), dataset)
    return found


def read_kit_facts(pool: str, kits: dict[str, str]) -> dict[str, KitFacts]:
    """Return each kit's facts about the pool."""
    return {name: find_rebuilder().read_kit(content, pool) for name, content in kits.items()}


def is_new_pool(here: EvacuationSurvey, known: "PoolRebuild | None", told: dict[str, KitFacts]) -> bool:
    """Return True when the present pool is not the pool that the kits describe."""
    tops = {known.top_guid} if known else {one.top_guid for one in told.values()}
    return here.pool.guid is not None and bool(tops - {None}) and here.pool.guid not in tops


def commands_to_create(pool: str, told: dict[str, KitFacts], *, there: bool) -> tuple[str, ...]:
    """Return the commands for the user that recreate the pool, and the parents of the sources."""
    create = next((one.create for one in told.values()), "")
    return (*((f"zpool destroy {quoted(pool)}",) if there else ()), *filter(None, (create,)), *_above(told))


def _above(told: dict[str, KitFacts]) -> tuple[str, ...]:
    """Return the commands for datasets that are not restored as such, parents first; restores create the others."""
    lines = [line for one in told.values() for line in one.above]
    lines += [one.own for name, one in told.items() if name.startswith((_FILES, _PLACE))]
    by_name = {shlex.split(line)[-1]: line for line in filter(None, lines)}
    return tuple(by_name[name] for name in sorted(by_name, key=lambda name: (name.count("/"), name)))


def missing_dataset_lines(here: EvacuationSurvey, told: dict[str, KitFacts]) -> tuple[str, ...]:
    """Return the commands for missing parents of the sources, and for missing datasets that files need."""
    names = {name for source, _ in restore_order(here.jobs) for name in missing_above(source, here.pool)}
    for key in told:
        if key.startswith((_FILES, _PLACE)):  # the dataset itself too
            dataset = key.removeprefix(_FILES).removeprefix(_PLACE).partition(" ")[2]
            names |= set(missing_above(Location(path=f"{dataset}/"), here.pool))
    sources = {job.source.path for job in here.jobs}
    return tuple(line for line in _above(told) if (name := shlex.split(line)[-1]) in names and name not in sources)


# The restore.


def plan_parts(
    here: EvacuationSurvey, told: dict[str, KitFacts], back: "Callable[[Job], bool]"
) -> tuple[RebuildPart, ...]:
    """Return each source, in the order of restore. `back`: checks that a job's files are restored."""
    datasets = [_part(here, source, jobs, told) for source, jobs in restore_order(here.jobs)]
    known = datasets_of_kits(told)
    trees = [
        job
        for job in here.trees
        if job.name in known or _only_files(here, job) or waits_for_mount(job, here.pool, here.jobs)
    ]
    return (*datasets, *(_part_of_files(here, job, back) for job in trees))


def _part_of_files(here: EvacuationSurvey, job: Job, back: "Callable[[Job], bool]") -> RebuildPart:
    """Return the part of a file job: its newest reachable point, for the folder, which must be on the pool again."""
    source, own = job.source, [(one, copy) for one, copy in here.placed if copy.job == job.name]
    usable = [(one, copy) for one, copy in own if copy.point]
    if not usable:
        why = "; ".join(f"{copy.called}: {copy.why}" for _, copy in own)
        return RebuildPart(source=source, job=None, copy=None, back=False, why=why)
    if dataset_of(os.path.realpath(source.path), here.pool) is None:
        why = f"{source.path} does not lie on {here.pool.name}: mount it (zfs mount -a)"
        return RebuildPart(source=source, job=None, copy=None, back=False, why=why, mounted=False)
    placed, copy = max(usable, key=lambda each: each[1].point)
    return RebuildPart(source=source, job=placed, copy=copy, back=back(placed))


def _part(here: EvacuationSurvey, source: Location, jobs: Sequence[Job], told: dict[str, KitFacts]) -> RebuildPart:
    names = {job.name for job in jobs}
    known = {name: guids for job in names & told.keys() for name, guids in told[job].guids.items()}
    placed = [(job, copy) for job, copy in here.placed if copy.job in names]
    best = choose_best_copy(source, [copy for _, copy in placed], known)
    if best is None:
        why = "; ".join(f"{copy.called}: {copy.why or 'holds nothing of it'}" for _, copy in placed)
        return RebuildPart(source=source, job=None, copy=None, back=False, why=why)
    job = next(job for job, copy in placed if copy is best)
    return RebuildPart(source=source, job=job, copy=best, back=has_come_back(source, here.pool, best))


def were_files_restored(job: Job, views: "HistoryReader", since: datetime | None) -> bool:
    """Return True when a job's files were restored to their source since an instant.

    Why by history: the folder shows nothing, as a restored dataset below it creates a folder of its own.
    """
    return since is not None and any(
        run.kind is RunType.RESTORE
        and run.outcome is Outcome.DONE
        and run.begun_at >= since
        and run.begun_why == restore_reason(b"", job.source)
        for run in views.runs(job.name, _RUNS)
    )


def find_differences(
    settings: "Settings",
    here: EvacuationSurvey,
    kits: dict[str, str],
    made: Mapping[str, KitContents],
    lost: Sequence[str],
) -> tuple[str, ...]:
    """Return the differences from the kits, except for data that may be lost. `made`: new kits. Raises: OrchestratorError."""
    found: dict[str, None] = {}
    for name, kit in made.items():
        if name in kits:
            found |= dict.fromkeys(find_rebuilder().compare_kits(kits[name], kit.content))
    for job in here.trees:
        for dataset in datasets_of_kits(kits).get(job.name, ()):
            now = _kit_of(settings, job, dataset)
            found |= dict.fromkeys(find_rebuilder().compare_kits(kits[f"{_FILES}{job.name} {dataset}"], now))
    return tuple(line for line in found if not any(may_be_lost(_subject(line), name) for name in lost))


def _subject(line: str) -> str:
    """Return the dataset that a difference is about."""
    return line.removesuffix(" is not there").partition(": ")[0]
