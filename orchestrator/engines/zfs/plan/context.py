"""What a decision is made from: the world, the job's options, what was asked, and what follows from them."""

import re
from collections.abc import Iterable
from fnmatch import translate
from functools import cached_property

from orchestrator.domain.job import Job
from orchestrator.engines.contract import Asked
from orchestrator.engines.zfs.model import Snapshot, World
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.plan.resume_attempts import Tried, key, parse_tried


class Case:
    """One look to decide on; the indexes are made once, and only when something asks for them."""

    def __init__(self, job: Job, world: World, asked: Asked) -> None:
        self.job = job
        self.world = world
        self.asked = asked
        self.options = options_of(job)
        self._wanted = _pattern(self.options.snapshots)
        self._unwanted = _pattern(self.options.skip_snapshots)
        self._by_name: dict[str, dict[str, Snapshot]] = {}
        self._held: dict[str, set[int]] = {}
        self._everything = "*" in self.options.snapshots and not self.options.skip_snapshots

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The source's datasets that the job carries, parents before children."""
        datasets = self.world.source.datasets
        if not self.options.recursive:
            return ("",)
        excluded = _pattern(self.options.exclude)
        left_out: set[str] = set()
        for name in sorted(datasets):
            if name and (parent_of(name) in left_out or excluded.fullmatch(name)):
                left_out.add(name)
        return tuple(name for name in sorted(datasets) if name not in left_out)

    @cached_property
    def known(self) -> frozenset[str]:
        """The same names, to look one up."""
        return frozenset(self.names)

    @cached_property
    def owners(self) -> dict[int, str]:
        """Which dataset of the source holds a snapshot, by its guid."""
        datasets = self.world.source.datasets.items()
        return {snapshot.guid: name for name, dataset in datasets for snapshot in dataset.snapshots}

    @cached_property
    def bookmarked(self) -> frozenset[int]:
        """The guids of all bookmarks of the source."""
        return frozenset(one.guid for dataset in self.world.source.datasets.values() for one in dataset.bookmarks)

    @cached_property
    def origins(self) -> frozenset[str]:
        """Snapshots of the target that clones there come from, by their whole names."""
        return frozenset(dataset.origin for dataset in self.world.target.datasets.values() if dataset.origin)

    @cached_property
    def gone(self) -> tuple[str, ...]:
        """Datasets of the copy that the source has no more."""
        here, there = self.world.source.datasets, self.world.target.datasets
        return tuple(sorted(name for name, dataset in there.items() if name not in here and not dataset.placeholder))

    def origin(self, name: str) -> tuple[str, Snapshot] | None:
        """(dataset, snapshot) that a clone of the source comes from; None: it is no clone, or one from outside the job's tree."""
        whole, _, mark = (self.world.source.datasets[name].origin or "").partition("@")
        root = self.world.source.root.path
        below = whole.removeprefix(root).removeprefix("/")
        if not mark or self.source_name(below) != whole:
            return None
        if below not in self._by_name:
            owner = self.world.source.datasets.get(below)
            self._by_name[below] = {one.name: one for one in owner.snapshots} if owner else {}
        found = self._by_name[below].get(mark)
        return (below, found) if found else None

    def target_holds(self, name: str, guid: int) -> bool:
        """Whether the target's dataset has the snapshot."""
        if name not in self._held:
            there = self.world.target.datasets.get(name)
            self._held[name] = {one.guid for one in there.snapshots} if there else set()
        return guid in self._held[name]

    def fits(self, snapshot: Snapshot) -> bool:
        """Whether the job's filters let a snapshot be sent."""
        if self._everything:
            return True
        return bool(self._wanted.fullmatch(snapshot.name)) and not self._unwanted.fullmatch(snapshot.name)

    def tried(self, name: str) -> Tried | None:
        """What is remembered of going on with a cut receive into a dataset."""
        return parse_tried(self.asked.remembered.get(key(name), ""))

    @property
    def command(self) -> str:
        """What a person says to have the same done again."""
        if self.world.returning is None:
            return f"poolferry run {self.job.name}"
        return f"poolferry restore run {self.job.name} --to {self.world.target.root}"

    def source_name(self, name: str) -> str:
        """A dataset's whole name on the source."""
        return self.world.source.full(name)

    def target_name(self, name: str) -> str:
        """A dataset's whole name on the target."""
        return self.world.target.full(name)


def _pattern(patterns: Iterable[str]) -> re.Pattern[str]:
    """What matches any of the patterns; without any, nothing."""
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


def parent_of(name: str) -> str:
    """The dataset that one lies in; the root lies in itself."""
    return name.rpartition("/")[0]
