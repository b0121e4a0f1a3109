"""The input of a decision: the survey, the job's options, the request, and the values derived from them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import translate
from functools import cached_property

from orchestrator.domain.command_line import quoted
from orchestrator.domain.job import Job
from orchestrator.domain.names import is_set_aside
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs.model import Dataset, Snapshot, ZfsSurvey
from orchestrator.engines.zfs.options import options_of


class PlanContext:
    """One survey to decide on; its indexes are built once, when first needed. `renamed`: former names, by the names now."""

    def __init__(self, job: Job, world: ZfsSurvey, request: RunRequest) -> None:
        self.job = job
        self.world = world
        self.requested = request
        self.options = options_of(job)
        self._wanted = _pattern(self.options.snapshots)
        self._unwanted = _pattern(self.options.skip_snapshots)
        self.renamed: Mapping[str, str] = {}
        self._by_name: dict[str, dict[str, Snapshot]] = {}
        self._held: dict[str, set[int]] = {}
        self._everything = "*" in self.options.snapshots and not self.options.skip_snapshots

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the source's datasets that the job replicates, parents before children."""
        datasets = self.world.source.datasets
        if not self.options.recursive:
            return ("",)
        excluded, aside = _pattern(self.options.exclude), frozenset(self.set_aside)
        left_out: set[str] = set()
        for name in sorted(datasets):
            if name and (parent_dataset(name) in left_out or excluded.fullmatch(name) or name in aside):
                left_out.add(name)
        return tuple(name for name in sorted(datasets) if name not in left_out)

    @cached_property
    def set_aside(self) -> tuple[str, ...]:
        """Return the source's datasets that are left out as --aside set them aside there; a restore brings all back."""
        if self.options.set_aside or not self.options.recursive or self.world.returning is not None:
            return ()
        excluded = _pattern(self.options.exclude)
        return tuple(
            name
            for name in sorted(self.world.source.datasets)
            if name and is_set_aside(name) and not any(excluded.fullmatch(one) for one in _at_and_above(name))
        )

    @cached_property
    def known(self) -> frozenset[str]:
        """Return the same names as a set, for lookups."""
        return frozenset(self.names)

    @cached_property
    def owners(self) -> dict[int, str]:
        """Return the source dataset that holds each snapshot, by the snapshot's guid; of two the one that is replicated."""
        return {snapshot.guid: name for name, dataset in self._known_last for snapshot in dataset.snapshots}

    @cached_property
    def bookmark_owners(self) -> dict[int, str]:
        """Return the source dataset that holds each bookmark, by the guid of its snapshot."""
        return {bookmark.guid: name for name, dataset in self._known_last for bookmark in dataset.bookmarks}

    @property
    def _known_last(self) -> list[tuple[str, Dataset]]:
        return sorted(self.world.source.datasets.items(), key=lambda one: one[0] in self.known)

    @cached_property
    def bookmarked(self) -> frozenset[int]:
        """Return the guids of all bookmarks of the source."""
        return frozenset(one.guid for dataset in self.world.source.datasets.values() for one in dataset.bookmarks)

    @cached_property
    def origins(self) -> frozenset[str]:
        """Return the full names of the target's snapshots that are origins of clones there."""
        return frozenset(dataset.origin for dataset in self.world.target.datasets.values() if dataset.origin)

    @cached_property
    def gone(self) -> tuple[str, ...]:
        """Return the datasets of the copy that the source no longer has."""
        here, there = self.world.source.datasets, self.world.target.datasets
        moved = set(self.renamed.values())
        gone = (name for name, one in there.items() if name not in here and not one.placeholder and name not in moved)
        return tuple(sorted(gone))

    @cached_property
    def kept_aside(self) -> tuple[str, ...]:
        """Return those of `gone` that a run set aside at the copy, and what lies below them: the source never had them."""
        return tuple(name for name in self.gone if any(map(is_set_aside, _at_and_above(name))))

    def origin(self, name: str) -> tuple[str, Snapshot] | None:
        """Return the (dataset, snapshot) that a clone comes from; None: no clone, or from outside the job's tree."""
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
        """Return whether the target's dataset has the snapshot."""
        if name not in self._held:
            there = self.world.target.datasets.get(name)
            self._held[name] = {one.guid for one in there.snapshots} if there else set()
        return guid in self._held[name]

    def fits(self, snapshot: Snapshot) -> bool:
        """Return whether the job's filters allow a snapshot to be sent."""
        if self._everything:
            return True
        return bool(self._wanted.fullmatch(snapshot.name)) and not self._unwanted.fullmatch(snapshot.name)

    @property
    def command(self) -> str:
        """Return the command that a person runs to repeat the same action."""
        if self.world.returning is None:
            return f"poolferry run {self.job.name}"
        return f"poolferry restore run {self.job.name} --to {quoted(str(self.world.target.root))}"

    def source_name(self, name: str) -> str:
        """Return a dataset's full name on the source."""
        return self.world.source.full(name)

    def target_name(self, name: str) -> str:
        """Return a dataset's full name on the target."""
        return self.world.target.full(name)


def _pattern(patterns: Iterable[str]) -> re.Pattern[str]:
    """Build the expression that matches any of the patterns; without patterns it matches nothing."""
    return re.compile("|".join(map(translate, patterns)) or r"(?!)")


def _at_and_above(name: str) -> Iterator[str]:
    while name:
        yield name
        name = parent_dataset(name)


def parent_dataset(name: str) -> str:
    """Return the parent of a dataset; the root is its own parent."""
    return name.rpartition("/")[0]
