"""The chaos of the model world (tests/engines/zfs/test_chaos.py), happening to real pools.

Anything happens between two runs and in the middle of one. Each story ends with the newest on the target, by guid, or with a
reasoned refusal; a run never loses a snapshot of either side, and what zfs refuses without a cut is a mistake of the plan.
For more stories, `make test-long`: POOLFERRY_CHAOS_SECONDS is how long they are begun, POOLFERRY_CHAOS_SEED the first one.
"""

import os
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from orchestrator.engines.zfs.model import ActionPlan
from tests.engines.zfs.events import COPY, EVERYTHING, ROOT, WAYS, Chaos, ends_well, events_of, happen
from tests.lab.common import Machine
from tests.lab.laboratory import Pair
from tests.lab.real_ferry import RealFerry

# Read here: each test has an environment of its own.
SECONDS = float(os.environ.get("POOLFERRY_CHAOS_SECONDS", "900"))
SEED = int(os.environ.get("POOLFERRY_CHAOS_SEED", "0"))
LONGEST = 12
ORDER = ("plain", "raw", "rollback", "filtered", "sealed", "newest", "excluding", "flat", "sealed and raw")


class RealChaos(Chaos):
    """Events that need other commands on real pools."""

    ferry: RealFerry

    def run_dead_link(self, a: int, b: int) -> None:
        """As run_cut, and the receiving process waits on."""
        self.ferry.link_dies = True
        try:
            self.run_cut(a, b)
        finally:
            self.ferry.link_dies = False

    def cut_send(self, _: int, b: int) -> None:
        """The first send of a run is cut."""
        self.watched(lambda: self.ferry.run(mishap=lambda step: b if step.copies else None))

    def dead_send(self, a: int, b: int) -> None:
        """The same, by a link that dies."""
        self.ferry.link_dies = True
        try:
            self.cut_send(a, b)
        finally:
            self.ferry.link_dies = False


OURS: dict[Any, Any] = {Chaos.run_dead_link: RealChaos.run_dead_link}
HAPPENINGS: list[Any] = [OURS.get(kind, kind) for kind in EVERYTHING] + [Chaos.run_cut, Chaos.snapshot]
FIRST = (Chaos.snapshot, 0, 0)
CUT = (FIRST, (RealChaos.cut_send, 0, 3), (RealChaos.dead_send, 0, 2))
# Somebody else's receive, which keeps nothing when it is cut, and goes on until it is told to end.
ENDS = "touch /run/theirs-ends"
THEIRS = f"""theirs() {{ zfs send -i @a {ROOT}@b | head -c 200000; until [ -e /run/theirs-ends ]; do sleep 0.1; done; }}
(theirs | exec zfs receive -u {COPY}) >/dev/null 2>&1 &
until zfs list -H -o name "{COPY}/%recv" >/dev/null 2>&1; do sleep 0.1; done"""
DEAD = (FIRST, (RealChaos.dead_send, 0, 6), (RealChaos.dead_send, 0, 3))


@pytest.mark.virtual
@pytest.mark.parametrize("way", ["plain", pytest.param("raw", marks=pytest.mark.long)])
def test_whatever_happens_to_real_pools_it_ends(master: Machine, way: str) -> None:
    for name in ("tank", "vault"):
        master.pool(name)
    told = story(master, SEED, way, begins=CUT)
    assert any("bytes, then: " in line for line in told), told
    assert any(line.startswith("end process") for line in told), "no receive was left behind"


@pytest.mark.long
def test_dead_links_are_among_what_happens(pair: Pair) -> None:
    pair.master.pool("tank")
    pair.backup.pool("vault")
    told = story(pair.master, SEED, "plain", wire=pair, begins=DEAD)
    assert sum("the link is dead" in line for line in told) >= 2, told
    assert any("the rest" in line for line in told), told


@pytest.mark.long
def test_what_still_uses_a_dataset_is_waited_for(master: Machine) -> None:
    """As a run does: somebody's receive keeps the copy busy, and ends."""
    for name in ("tank", "vault"):
        master.pool(name)
    ferry = RealFerry(master, random.Random(SEED), encrypted=False, sealed=False)
    ferry.source.snapshot(ROOT, "a")
    ferry.run()
    ferry.source.snapshot(ROOT, "b")
    master.sh(THEIRS)
    ferry.on_wait = lambda: master.sh(ENDS)
    assert isinstance(ferry.run(), ActionPlan)
    assert ferry.newest_is_there()
    assert any(line.startswith("something still uses a dataset") for line in ferry.told), ferry.told


@pytest.mark.long
@pytest.mark.virtual
@pytest.mark.timeout(SECONDS * 2 + 600)
def test_more_and_more_stories(master: Machine) -> None:
    for name in ("tank", "vault"):
        master.pool(name)
    until, seed = time.monotonic() + SECONDS, SEED
    while time.monotonic() < until:
        seed += 1
        story(master, seed, ORDER[seed % len(ORDER)])
    print(f"{seed - SEED} stories")


def story(
    machine: Machine,
    seed: int,
    way: str,
    *,
    wire: Pair | None = None,
    begins: Sequence[tuple[Any, int, int]] = (FIRST,),
) -> list[str]:
    """Return what one story tells. A failure tells it too, with the seed."""
    chance = random.Random(f"{way} {seed}")
    told: Mapping[str, Any] = WAYS[way]
    ferry = RealFerry(machine, chance, wire=wire, **{"encrypted": False, "sealed": False, **told})
    chaos = RealChaos(ferry)
    try:
        for kind, a, b in begins:
            kind(chaos, a, b)
        happen(chaos, HAPPENINGS, events_of(chance, LONGEST))
        ends_well(chaos)
    except Exception as error:
        error.add_note(f"story {seed}, {way}:\n" + "\n".join(ferry.told))
        raise
    return ferry.told
