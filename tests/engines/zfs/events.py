"""Events of two pools and of the runs between them, on the model world and on real pools: one list for both."""

import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from orchestrator.domain.plan import Refusal
from orchestrator.engines.zfs.model import ActionPlan
from orchestrator.engines.zfs.options import options_of
from tests.engines.zfs.model_run import NOW, Cut, Ferry, requested
from tests.world import SIZE, Pool, ZfsError

ROOT, COPY = "tank/photos", "vault/copies/photos"
PERSON = (ZfsError, StopIteration)  # zfs refuses what a person tries, or there is nothing to try it on


class Chaos:
    """A ferry to which things happen; each takes two numbers that choose where and what."""

    def __init__(self, ferry: Ferry) -> None:
        self.ferry = ferry
        self.source, self.target = ferry.source, ferry.target
        self.count = 0

    def fresh(self) -> str:
        self.count += 1
        return f"s{self.count}"

    def one(self, pool: Pool, root: str, choice: int) -> str:
        names = pool.below(root)
        if not names:
            raise ZfsError("dataset does not exist")
        return names[choice % len(names)]

    def mark(self, pool: Pool, root: str, choice: int, more: int) -> tuple[str, int]:
        name = self.one(pool, root, choice)
        snapshots = pool.nodes[name].snapshots
        return name, snapshots[more % len(snapshots)].guid if snapshots else 0

    # What people and programs do on the source.

    def snapshot(self, a: int, _: int) -> None:
        self.source.snapshot(self.one(self.source, ROOT, a), self.fresh())

    def snapshot_all(self, *_: int) -> None:
        name = self.fresh()
        for dataset in self.source.below(ROOT):
            self.source.snapshot(dataset, name)

    def rename_snapshot(self, a: int, b: int) -> None:
        self.source.rename_snapshot(*self.mark(self.source, ROOT, a, b), self.fresh())

    def swap_names(self, a: int, b: int) -> None:
        """A new snapshot under the name of one that is renamed."""
        name, guid = self.mark(self.source, ROOT, a, b)
        old = next(one for one in self.source.nodes[name].snapshots if one.guid == guid)
        self.source.rename_snapshot(name, guid, self.fresh())
        self.source.snapshot(name, old.name)

    def destroy_snapshot(self, a: int, b: int) -> None:
        self.source.destroy_snapshot(*self.mark(self.source, ROOT, a, b))

    def prune(self, a: int, _: int) -> None:
        """All but the newest."""
        name = self.one(self.source, ROOT, a)
        for one in self.source.nodes[name].snapshots[:-1]:
            self.source.destroy_snapshot(name, one.guid)

    def prune_all(self, *_: int) -> None:
        """All but the newest of every dataset, as far as nothing holds them."""
        for name in self.source.below(ROOT):
            for one in self.source.nodes[name].snapshots[:-1]:
                try:
                    self.source.destroy_snapshot(name, one.guid)
                except ZfsError:
                    continue

    def create(self, a: int, b: int) -> None:
        self.source.create(f"{self.one(self.source, ROOT, a)}/{'xyz'[b % 3]}")

    def destroy(self, a: int, _: int) -> None:
        name = self.one(self.source, ROOT, a)
        if name != ROOT:
            self.source.destroy(name)

    def recreate(self, a: int, _: int) -> None:
        name = self.one(self.source, ROOT, a)
        old = self.source.nodes[name].snapshots
        self.source.destroy(name)
        self.source.create(name)
        self.source.snapshot(name, old[0].name if old else self.fresh())

    def rename(self, a: int, b: int) -> None:
        name = self.one(self.source, ROOT, a)
        if name != ROOT:
            self.source.rename(name, f"{self.one(self.source, ROOT, b)}/r{b % 2}")

    def clone(self, a: int, b: int) -> None:
        self.source.clone(*self.mark(self.source, ROOT, a, b), f"{self.one(self.source, ROOT, b)}/c{a % 2}")

    def promote(self, a: int, _: int) -> None:
        clones = [name for name in self.source.below(ROOT) if self.source.nodes[name].origin]
        if clones:
            self.source.promote(clones[a % len(clones)])

    # On the target.

    def write(self, a: int, _: int) -> None:
        self.target.write(self.one(self.target, COPY, a))

    def own_snapshot(self, a: int, b: int) -> None:
        name = self.one(self.target, COPY, a)
        if self.target.nodes[name].partial is None or self.target.nodes[name].snapshots:
            self.target.snapshot(name, f"autosnap_{self.fresh()}")

    def prune_target(self, a: int, b: int) -> None:
        """Any, the newest too."""
        self.target.destroy_snapshot(*self.mark(self.target, COPY, a, b))

    def destroy_copy(self, a: int, _: int) -> None:
        self.target.destroy(self.one(self.target, COPY, a))

    # Runs.

    def run(self, *_: int) -> ActionPlan | Refusal | None:
        return self.watched(self.ferry.run)

    def run_aside(self, a: int, _: int) -> ActionPlan | Refusal | None:
        self.count += 1
        now = NOW + timedelta(seconds=self.count)
        return self.watched(lambda: self.ferry.run(requested("aside", now=now)))

    def run_cut(self, a: int, b: int) -> None:
        """Cut before one of the deeds, or in the middle of a stream."""
        left = [a % 12]

        def mishap(_: object) -> int | None:
            left[0] -= 1
            return b % (3 * SIZE) if left[0] < 0 else None

        self.watched(lambda: self.ferry.run(mishap=mishap))

    def run_dead_link(self, a: int, b: int) -> None:
        """As before, and the receiving process waits on."""
        self.run_cut(a, b)
        for name in self.target.below(COPY):
            if self.target.nodes[name].partial:
                self.target.receiving[name] = 4711

    def watched(self, run: Callable[[], ActionPlan | Refusal]) -> ActionPlan | Refusal | None:
        """A run may be cut; it never loses a snapshot of either side, nor a bookmark that is not ours."""
        kept, here = self.target.guids(), self.source.guids()
        consent = "rollback" in options_of(self.ferry.job).may_destroy
        try:
            return run()
        except Cut:
            return None
        finally:
            assert here == self.source.guids()
            assert consent or kept <= self.target.guids()


Happening = Callable[[Chaos, int, int], object]
SOURCE: list[Happening] = [
    Chaos.snapshot, Chaos.snapshot_all, Chaos.rename_snapshot, Chaos.destroy_snapshot, Chaos.prune, Chaos.create,
]  # fmt: skip
PEOPLE: list[Happening] = [
    Chaos.swap_names, Chaos.destroy, Chaos.recreate, Chaos.rename, Chaos.clone, Chaos.promote, Chaos.write,
    Chaos.own_snapshot, Chaos.prune_target, Chaos.destroy_copy,
]  # fmt: skip
RUNS: list[Happening] = [Chaos.run, Chaos.run_cut, Chaos.run_cut, Chaos.run_dead_link, Chaos.run_aside]
GENTLE: list[Happening] = [
    *SOURCE, Chaos.snapshot_all, Chaos.snapshot_all, Chaos.prune_all, Chaos.prune_all, Chaos.run, Chaos.run_cut, Chaos.run_cut,
    Chaos.run_cut, Chaos.run_dead_link,
]  # fmt: skip
EVERYTHING = [*SOURCE, *RUNS, *PEOPLE]
Event = tuple[int, int, int]


def happen(chaos: Chaos, kinds: Sequence[Happening], events: Sequence[Event]) -> None:
    for kind, a, b in events:
        event = kinds[kind % len(kinds)]
        try:
            event(chaos, a, b)
        except PERSON:
            if event not in SOURCE and event not in PEOPLE:
                raise  # between the look and the deed nothing changed, so zfs has no reason to refuse


def refusals(decided: ActionPlan | Refusal | None) -> tuple[Refusal, ...]:
    assert decided is not None
    return (decided,) if isinstance(decided, Refusal) else decided.refusals


def ends_well(chaos: Chaos) -> tuple[Refusal, ...]:
    """One run in which nothing goes wrong: all that is not refused is there, and a next run has nothing to do."""
    refused = refusals(chaos.run())
    told = "\n".join(line for one in refused for line in (one.why, *one.evidence))
    for whole in chaos.source.below(ROOT):
        name = whole[len(ROOT) + 1 :]
        if chaos.ferry.carries(name) and not chaos.ferry.newest_is_there(name):
            assert whole in told or whole.replace(ROOT, COPY) in told, f"{whole} is neither there nor refused: {told}"
    assert all(one.why and one.hint for one in refused)
    again = chaos.ferry.decide()
    assert isinstance(again, Refusal) or not again.stages, again.stages
    return refused


WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "rollback": {"may_destroy": ("rollback",)},
    "newest": {"catch_up": "newest"},
    "following": {"follow_renames": True},
    "filtered": {"snapshots": ("s*", "auto*"), "skip_snapshots": ("s*3", "s*7")},
    "flat": {"recursive": False},
    "excluding": {"exclude": ("x", "*/y", "c*")},
    "raw": {"encrypted": True},
    "without consent": {"encrypted": True, "raw": "no"},
    "readable": {"encrypted": True, "raw": "no", "may_decrypt": True},
    "sealed": {"sealed": True},
    "sealed anew": {"sealed": True, "encrypted": True, "raw": "no"},
    "sealed and raw": {"sealed": True, "encrypted": True},
}


def events_of(chance: random.Random, most: int = 70) -> list[Event]:
    """As many happenings as chance will have."""
    numbers = range(chance.randrange(5, most))
    return [(chance.randrange(1000), chance.randrange(12), chance.randrange(12)) for _ in numbers]
