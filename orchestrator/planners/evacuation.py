"""Check before a pool is destroyed: whether copies hold all its data, by guid, and the order of its restore; and the jobs of a pool.

Only data that a survey found at a target counts; for disks that are away, history counts only when a person names the disk.
Copies of files count only for data without snapshots, and only as long as nothing has changed since.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from orchestrator.domain.command_line import quoted
from orchestrator.domain.evacuation import (
    DatasetCopy,
    DatasetStatus,
    GuestPool,
    JobEvacuation,
    PoolContents,
    PoolDataset,
    PoolEvacuation,
)
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import Verdict, VerifyJobResult
from orchestrator.domain.run import Outcome, RunReport
from orchestrator.domain.source_identity import parse_identity
from orchestrator.domain.units import show_count, show_size

KITS = "poolferry-kit"
_TOGETHER = timedelta(hours=1)
_SHOWN = 12
Mount = tuple[str, str]  # what is mounted, where
Counted = tuple[DatasetCopy, Mapping[str, frozenset[int]]]


def judge_evacuation(
    pool: PoolContents,
    copies: Sequence[DatasetCopy],
    let_go: Iterable[str],
    *,
    trusted: Iterable[str] = (),
    keeps: Mapping[str, tuple[str, ...]] | None = None,
) -> PoolEvacuation:
    """Judge each dataset of the pool. `let_go`: names that may be lost; a name with a slash at its end includes all below.

    `trusted`: disks that are away and count by their history. `keeps`: by dataset, the jobs whose copies lie in it.
    """
    names, sure = tuple(let_go), frozenset(trusted)
    counted = [(copy, held) for copy in copies if (held := _counts(copy, sure)) is not None]
    standings = tuple(_dataset_status(one, counted, names, (keeps or {}).get(one.name, ())) for one in pool.datasets)
    unseen = tuple(copy for copy in copies if _counts(copy, sure) is None)
    return PoolEvacuation(standings=standings, unseen=unseen, trusted=sure)


def _counts(copy: DatasetCopy, trusted: frozenset[str]) -> Mapping[str, frozenset[int]] | None:
    """Return the snapshots by which a copy counts; None when it does not count."""
    return copy.told if copy.held is None and copy.disk and copy.place in trusted else copy.held


def _dataset_status(
    one: PoolDataset, counted: Sequence[Counted], let_go: tuple[str, ...], keeps: tuple[str, ...]
) -> DatasetStatus:
    own = {guid for _, guid in one.snapshots}
    holding = ((copy, len(own & held.get(one.name, frozenset()))) for copy, held in counted)
    files = tuple(copy for copy, _ in counted if one.name in copy.files)
    return DatasetStatus(
        dataset=one.name,
        snapshots=len(own),
        copies=tuple((copy, count) for copy, count in holding if count),
        lost="" if holds_only_kits(one) else _lost(one, counted, files),
        files=files,
        keeps=keeps,
        let_go=any(may_be_lost(one.name, name) for name in let_go),
    )


def holds_only_kits(one: PoolDataset) -> bool:
    """Return True when the dataset holds only recovery kits, which each job's next run renews."""
    return one.name.rpartition("/")[2] == KITS and not one.snapshots


def may_be_lost(dataset: str, told: str) -> bool:
    """Return True when a given name covers a dataset. Why not always all below: a pool's own name would cover all."""
    return dataset == told.rstrip("/") or (told.endswith("/") and dataset.startswith(told))


def _lost(one: PoolDataset, counted: Sequence[Counted], files: Sequence[DatasetCopy]) -> str:
    """Return the data of a dataset that no copy holds, as text; empty when copies hold all of it."""
    held = frozenset().union(*(each.get(one.name, frozenset()) for _, each in counted))
    missing = [name for name, guid in one.snapshots if guid not in held]
    if not one.snapshots:
        return "" if one.empty else _lost_files(one, files)
    if len(missing) == len(one.snapshots):
        return f"{show_count(len(missing), 'snapshot')}, and no copy"
    told = [f"{_few(missing)} on no copy"] if missing else []
    if one.snapshots[-1][1] in held and one.written:
        told.append(f"{show_size(one.written)} written since @{one.snapshots[-1][0]}")
    return ", ".join(told)


def _lost_files(one: PoolDataset, files: Sequence[DatasetCopy]) -> str:
    """Return the files of a dataset without snapshots that no copy holds, as text; empty when copies hold all."""
    whys = [copy.files[one.name] for copy in files]
    if "" in whys:
        return ""
    return f"no snapshot, and not all its files on a copy: {whys[0]}" if whys else "no snapshot, so no copy of it"


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(f"@{name}" for name in names[:3]) + more


def refuse_evacuation(pool: PoolContents, leaving: PoolEvacuation) -> Refusal | None:
    """Return why the pool must not be destroyed yet; None when all is on copies or may be lost."""
    lost = leaving.lost
    if not lost:
        return None
    words = " ".join(f"--lose {one.dataset}" for one in lost[:3])
    away = [copy for copy in leaving.unseen if copy.disk and any(_helps(copy, one, pool) for one in lost)]
    fetch = f"plug in disk {_disks(away)}, or count by what history knows: {_trust(away)}; " if away else ""
    hint = (
        f"{fetch}let nobody write there (zfs unmount), take a last snapshot and run the job that copies it; "
        f"or say that it may be lost: {words}{' …' if len(lost) > 3 else ''}"
    )
    return Refusal(
        why=f"{show_count(len(lost), 'dataset')} of {pool.name} would be lost",
        evidence=tuple(f"{one.dataset}: {one.lost}" for one in lost[:_SHOWN]),
        hint=hint,
    )


def refuse_guests(pool: PoolContents) -> Refusal | None:
    """Return a refusal while other pools in use lie on this one; exported pools go and return with their datasets."""
    if not pool.guests:
        return None
    names = tuple(dict.fromkeys(one.pool for one in pool.guests))
    many = len(names) > 1
    exports = " and ".join(f"`zpool export {quoted(name)}`" for name in names[:_SHOWN])
    return Refusal(
        why=f"the {'pools' if many else 'pool'} {', '.join(names[:_SHOWN])} {'lie' if many else 'lies'} on it, and would go with it",
        evidence=tuple(_guest_line(one, pool) for one in pool.guests[:_SHOWN]),
        hint=(
            f"bring what {'they hold' if many else 'it holds'} elsewhere, or move the devices (`zpool replace`); then {exports}: "
            "what they lay on goes, and returns, as any dataset does"
        ),
    )


def _guest_line(one: GuestPool, pool: PoolContents) -> str:
    if not one.dataset:
        return f"{one.pool}: {one.device} is a volume, and udev has no link that names its dataset (/dev/zvol)"
    volume = next((each.volume for each in pool.datasets if each.name == one.dataset), False)
    return f"{one.pool}: {one.device} is {'on the volume' if volume else 'a file in'} {one.dataset}"


def _helps(copy: DatasetCopy, one: DatasetStatus, pool: PoolContents) -> bool:
    """Return True when history says that an unreachable copy held some snapshot of a dataset."""
    own = next((each.snapshots for each in pool.datasets if each.name == one.dataset), ())
    return bool(copy.told.get(one.dataset, frozenset()) & {guid for _, guid in own})


def _disks(copies: Sequence[DatasetCopy]) -> str:
    return " or ".join(dict.fromkeys(f"{copy.disk} (at {copy.where})" if copy.where else copy.disk for copy in copies))


def _trust(copies: Sequence[DatasetCopy]) -> str:
    return " ".join(dict.fromkeys(f"--trust {copy.place}" for copy in copies))


# History of disks that are away, and the location of data.


def guids_from_history(
    pool: PoolContents, datasets: Iterable[str], points: Iterable[tuple[str, datetime]]
) -> dict[str, frozenset[int]]:
    """Return the snapshot guids that a disk held, by the names and instants of its points. `datasets`: of the job.

    Why the instant too: a snapshot may have been destroyed and another one created with its name. A recursive snapshot has one
    name everywhere, but datasets may get it some seconds apart.
    """
    known = dict(points)
    copied = set(datasets)

    def is_it(name: str, guid: int) -> bool:
        taken, was = pool.taken.get(guid), known.get(name)
        return taken is not None and was is not None and abs(taken - was) < _TOGETHER

    return {
        one.name: frozenset(guid for name, guid in one.snapshots if is_it(name, guid))
        for one in pool.datasets
        if one.name in copied
    }


def dataset_of(folder: str, pool: PoolContents) -> tuple[str, str] | None:
    """Return (dataset, mountpoint) of the pool for a folder; None when the folder lies elsewhere."""
    found = _mounted_over(folder, pool.mounts)
    return found if found and any(one.name == found[0] for one in pool.datasets) else None


def _mounted_over(folder: str, mounts: Sequence[Mount]) -> Mount | None:
    """Return the mount that holds a folder: of the longest paths the last one, which hides the others; None: there is none."""
    over = [(what, at) for what, at in mounts if f"{folder}/".startswith(f"{at.rstrip('/')}/")]
    return max(reversed(over), key=lambda each: len(each[1])) if over else None


def datasets_of_folder(folder: str, pool: PoolContents, *, below: bool) -> dict[str, str]:
    """Return the pool's datasets that a file job copies, each with the parts that it leaves out; empty: none.

    `below`: the job also copies filesystems that are mounted below its folder.
    """
    on = dataset_of(folder, pool)
    if on is None and not below:
        return {}
    found = {}
    if on is not None:
        found[on[0]] = "" if on[1].rstrip("/") == folder.rstrip("/") else f"only what is below {folder}"
    if below:
        names = {one.name for one in pool.datasets}
        found |= {what: "" for what, at in pool.mounts if what in names and at.startswith(f"{folder.rstrip('/')}/")}
    return found


def dataset_to_mount(folder: str, pool: PoolContents) -> str | None:
    """Return the dataset of the pool on which a folder lies as soon as `zfs mount -a` has mounted it; None: there is none."""
    over = [(what, at) for what, at in pool.unmounted if f"{folder}/".startswith(f"{at.rstrip('/')}/")]
    return max(over, key=lambda each: len(each[1]))[0] if over else None


# The restore.


def is_source_in(job: Job, pool: str) -> bool:
    """Return True when a job's source is a dataset of this machine's pool."""
    return is_in_pool(job.source, pool)


def is_in_pool(place: Location, pool: str) -> bool:
    """Return True when a location is a dataset of this machine's pool."""
    return place.host is None and f"{place.path}/".startswith(f"{pool}/")


def restore_order(jobs: Iterable[Job]) -> tuple[tuple[Location, tuple[Job, ...]], ...]:
    """Return the sources to restore, each once with the jobs that copy it; parents come first."""
    by_source: dict[str, list[Job]] = {}
    for job in jobs:
        by_source.setdefault(job.source.path, []).append(job)
    return tuple((Location(path=path), tuple(by_source[path])) for path in sorted(by_source, key=_depth))


def _depth(path: str) -> tuple[int, str]:
    return path.count("/"), path


def has_come_back(source: Location, pool: PoolContents, copy: DatasetCopy) -> bool:
    """Return True when all datasets of a source that a copy holds are in the pool again, by guid, and in use."""
    there = {one.name: one for one in pool.datasets}
    held = _of(source, copy)
    return bool(held) and all(name in there and _came_back(there[name], guids) for name, guids in held.items())


def _came_back(one: PoolDataset, guids: frozenset[int]) -> bool:
    return not one.unsettled and any(guid in guids for _, guid in one.snapshots)


def choose_best_copy(
    source: Location, copies: Sequence[DatasetCopy], known: Mapping[str, Sequence[int]]
) -> DatasetCopy | None:
    """Return the copy to restore a source from: the newest, then the one that holds most; None when none is usable.

    `known`: the guids of each dataset's snapshots, the oldest first, from the source's own kit.
    """
    usable = [copy for copy in copies if copy.held is not None and _of(source, copy)]
    return max(usable, key=lambda copy: _worth(source, copy, known), default=None)


def _of(source: Location, copy: DatasetCopy) -> dict[str, frozenset[int]]:
    below = f"{source.path}/"
    return {name: guids for name, guids in (copy.held or {}).items() if f"{name}/".startswith(below) and guids}


def _worth(source: Location, copy: DatasetCopy, known: Mapping[str, Sequence[int]]) -> tuple[int, int]:
    held = _of(source, copy)
    newest = sum(_newest(known.get(name, ()), guids) for name, guids in held.items())
    return newest, sum(map(len, held.values()))


def _newest(order: Sequence[int], guids: frozenset[int]) -> int:
    return max((place for place, guid in enumerate(order, 1) if guid in guids), default=0)


def missing_above(source: Location, pool: PoolContents) -> Iterator[str]:
    """Yield the missing parent datasets that must exist before a source can be restored."""
    there = {one.name for one in pool.datasets}
    parts = source.path.split("/")
    yield from (name for end in range(1, len(parts)) if (name := "/".join(parts[:end])) not in there)


# The pool itself.


def refuse_other_pool(pool: str, now: int | None, meant: int | None, remembered: Mapping[str, int]) -> Refusal | None:
    """Return why the pool of this name is not the one that is meant; None: it is, as far as anybody knows.

    `now`: its guid; None: it cannot be read. `meant`: as a person named it; None: nobody did. `remembered`: the guid of the pool from
    which each job copied last.
    """
    if meant is not None:
        if now == meant:
            return None
        there = f"has the guid {now}" if now is not None else "cannot be asked for its guid"
        return Refusal(
            why=f"the pool {pool} {there}, and not {meant}: it is another pool of that name, or is not imported",
            evidence=(), hint=f"`zpool list -o name,guid {quoted(pool)}` shows it",
        )  # fmt: skip
    others = {job: guid for job, guid in remembered.items() if now is not None and guid != now}
    if not others:
        return None
    return Refusal(
        why=f"the pool {pool} has the guid {now}, and is not the one that {', '.join(others)} copied last: it was made anew",
        evidence=tuple(f"{job} copied from the pool {guid}" for job, guid in others.items()),
        hint=f"if this one is meant: `poolferry evacuate --guid {now} {quoted(pool)}`",
    )


def remembered_guids(pool: str, identities: Mapping[str, str]) -> dict[str, int]:
    """Return the guid of the pool of this name from which each job copied last. `identities`: as each job's source is remembered.

    Not of a job whose source lay on a pool of another name then, nor where only a kit tells of the source, which knows no pool's guid.
    """
    known = {job: parse_identity(text) for job, text in identities.items()}
    return {job: one.pool for job, one in known.items() if one and one.pool and one.root.partition("/")[0] == pool}


def explain_changed_pool(pool: str, before: int | None, after: int | None) -> str:
    """Return why the pool is not sure to be the one of before the runs, by its guids; empty: it is. None: it could not be read."""
    if before == after:
        return ""
    if before is None:
        return f"the guid of the pool {pool} could not be read before the runs, so it may be another pool now"
    if after is None:
        return f"the pool {pool} cannot be asked for its guid any more, so it may be another one, or gone"
    return f"the pool {pool} has the guid {after}, and had {before} before the runs: another pool took its place"


# The jobs of a pool, before anybody thinks of destroying it.


def find_jobs_of_pool(
    pool: str, jobs: Iterable[Job], mounts: Sequence[Mount], own_names: Container[str] = ()
) -> tuple[tuple[Job, str], ...]:
    """Return the jobs whose source lies on a pool of this machine, each with why it brings nothing elsewhere; empty: it does.

    `mounts`: all of this machine in their order; what is no dataset has no name. `own_names`: by which ssh reaches this machine itself.
    """
    return tuple(
        (job, _kept_here(job, pool, mounts, own_names)) for job in jobs if pool in _pools_of_source(job, mounts)
    )


def find_source_pools(jobs: Iterable[Job], mounts: Sequence[Mount]) -> tuple[str, ...]:
    """Return the pools of this machine on which sources lie, by name."""
    return tuple(sorted({pool for job in jobs for pool in _pools_of_source(job, mounts)}))


def _kept_here(job: Job, pool: str, mounts: Sequence[Mount], own_names: Container[str]) -> str:
    if not job.copies:
        return "it copies nothing"
    at = job.target.location
    # A port may be a tunnel's, to another machine.
    by_name = at.host is not None and at.host.port is None and at.host.name.lower() in own_names
    if at.host is not None and (at.host.here or by_name):
        at = replace(at, host=None)
    if not (job.target.rotates or job.target.disk) and pool in _pools_at(at, mounts):
        return "its copy lies on this very pool" + (", by the name of its host" if by_name else "")
    return ""


def _pools_of_source(job: Job, mounts: Sequence[Mount]) -> frozenset[str]:
    below = not getattr(job.options, "one_file_system", True)
    return frozenset(pool for folder in job.tree.folders for pool in _pools_at(folder, mounts, below=below))


def _pools_at(place: Location, mounts: Sequence[Mount], *, below: bool = False) -> frozenset[str]:
    """Return the pools of this machine on which a location lies. `below`: also those that are mounted below it.

    Why by the path as it is written: a look at a folder may hang, and whoever asks waits.
    """
    if place.host is not None:
        return frozenset()
    if not place.path.startswith("/"):
        return frozenset({place.path.partition("/")[0]})
    over = _mounted_over(place.path, mounts)
    inside = [what for what, at in mounts if below and at.startswith(f"{place.path.rstrip('/')}/")]
    return frozenset(what.partition("/")[0] for what in (*((over[0],) if over else ()), *inside) if what)


def judge_job(
    job: Job, kept: str, ran: RunReport | None, read: VerifyJobResult | None, *, changed: str = ""
) -> JobEvacuation:
    """Judge whether a job's place holds all of its source, by its run and the verification after it; None: it did not begin.

    `kept`: why it brings nothing elsewhere, and so was not run; empty: it does. `changed`: why the pool is not the one that was to be evacuated.
    """
    whole, why = (
        (False, changed)
        if changed
        else (False, f"there is no other place: {kept}")
        if kept
        else _judge_copy(job, ran, read)
    )
    return JobEvacuation(job=job.name, source=str(job.tree), place=job.target.name, whole=whole, why=why)


def _judge_copy(job: Job, ran: RunReport | None, read: VerifyJobResult | None) -> tuple[bool, str]:
    sound = read is not None and read.report.outcome is Outcome.DONE
    told = read.report.why if read else "it was not verified"
    if ran is None:
        return False, "its run did not begin"
    if ran.outcome not in (Outcome.DONE, Outcome.NOTHING):
        older = f"; its newest copy is sound: {told}" if sound else ""
        return False, f"{ran.outcome}: {ran.why}{older}"
    if not sound:
        return False, f"the run ended as {ran.outcome}, but: {told}"
    if left_out := (*getattr(job.options, "excludes", ()), *getattr(job.options, "exclude", ())):
        return False, f"{told}; but the job leaves out {', '.join(left_out)}"
    if read and read.reading and dict(read.reading.counts).get(Verdict.UNPROVED):
        return False, told
    return True, f"{told}{_bounds(job)}"


def _bounds(job: Job) -> str:
    """Return what a copy of datasets is a copy of: a snapshot, which may be older than the newest file; empty for files."""
    if job.source.path.startswith("/"):
        return ""
    below = "" if getattr(job.options, "recursive", True) else ", nor of datasets below it"
    return f"; that is what its snapshots hold: nothing that was written since the newest one{below}"
