"""The keys of a job's [sanoid] section, and the rules of [snapshots]."""

from collections.abc import Iterator

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job, KeepRules, SnapshotRules, VerifyRules, config_key
from orchestrator.domain.place import Location
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.contract.engine import implements
from orchestrator.engines.contract.snapshots import DatasetSection
from orchestrator.engines.sanoid.model import INTERVALS, SanoidRules


@dataclass(frozen=True, slots=True, kw_only=True)
class SanoidOptions:
    """The datasets of a job that only takes snapshots; [snapshots] holds the rest."""

    recursive: bool = config_key("with all datasets below the source", default=True)
    exclude: tuple[str, ...] = config_key(
        "datasets below the source that are left out, with all below them; * stands for any part of a name",
        default=(), example='["scratch", "vm/*-tmp"]',
    )  # fmt: skip


def mistakes(
    options: SanoidOptions, source: SourceTree, _: Location, __: VerifyRules
) -> Iterator[tuple[str, str, str]]:
    """Yield mistakes for keys that contradict each other: (key, mistake, expected value)."""
    if options.recursive and " " in source.root.path:
        yield "source", "sanoid finds no datasets below a name with a blank", "recursive = false, or a name without one"
    if options.exclude:
        from orchestrator.domain.dataset_patterns import find_dataset_mistakes

        for number, what, wanted in find_dataset_mistakes(options.exclude, source.root.path):
            yield f"sanoid.exclude[{number}]", what, wanted


def snapshot_mistakes(
    snapshots: SnapshotRules, source: Location, copy: Location | None
) -> Iterator[tuple[str, str, str]]:
    """Yield mistakes in [snapshots]: (key, mistake, expected value).

    Why blanks: sanoid passes the name to a shell without quotes when it lists the datasets below.
    """
    if snapshots.use is not None and not snapshots.use.startswith("/"):
        yield "snapshots.use", f'"{snapshots.use}" is no absolute path', 'a directory such as "/etc/sanoid"'
    if snapshots.use is not None and rules_of(snapshots).kinds:
        yield "snapshots.use", "sanoid.conf has rules of its own", "either use, or numbers such as daily = 14"
    blank = [place.path for place in (source, copy) if place and " " in place.path]
    if snapshots.use is None and snapshots.recursive and blank:
        what = f'sanoid finds no datasets below "{blank[0]}", as the name has a blank'
        yield "snapshots.recursive", what, "recursive = false, or a name without one"


def snapshots_of(job: Job) -> SnapshotRules | None:
    """Return the job's [snapshots]; None: it has none, or an empty one."""
    told = job.snapshots
    return None if told is None or told.nothing else told


def rules_of(snapshots: SnapshotRules) -> SanoidRules:
    """Return the numbers of [snapshots]."""
    return SanoidRules(**{kind: getattr(snapshots, kind) for kind in INTERVALS})


def rules_on_target(snapshots: SnapshotRules | None, keep: KeepRules) -> SanoidRules:
    """Return the numbers for the copy: those of [keep], and at least one of each kind that comes from the source.

    Why at least one: the newest snapshot of a copy is the base of its next increment. `snapshots` None: other programs take
    them.
    """
    kept = {kind: getattr(keep, kind, 0) for kind in INTERVALS}
    comes = set(INTERVALS if snapshots is None or snapshots.use is not None else rules_of(snapshots).kinds)
    return SanoidRules(**{kind: max(number, int(kind in comes)) for kind, number in kept.items()})


def is_recursive(job: Job) -> bool:
    """Return True when datasets below the source belong to the job."""
    snapshots = job.snapshots
    return _scope(job).recursive and (snapshots is None or snapshots.recursive)


def excluded_patterns(job: Job) -> tuple[str, ...]:
    """Return the patterns of datasets that are left out."""
    return _scope(job).exclude if is_recursive(job) else ()


def _scope(job: Job) -> DatasetSection:
    """Return the job's own section, of any engine. Raises: TypeError when it copies no datasets, a mistake in our code."""
    if not implements(job.options, DatasetSection):
        raise TypeError(f"job {job.name} is not about datasets")
    return job.options
