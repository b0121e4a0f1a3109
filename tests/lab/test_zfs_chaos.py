"""The chaos of the model world (tests/engines/zfs/test_chaos.py), happening to real pools.

Anything happens between two runs and in the middle of one. Each story ends with the newest on the target, by guid, or with a
reasoned refusal; a run never loses a snapshot of either side, and what zfs refuses without a cut is a mistake of the plan.
POOLFERRY_CHAOS_SECONDS: how long stories are begun, POOLFERRY_CHAOS_SEED: the first one.

Changes things: in virtual machines.
"""

import os
import random
import time
from collections.abc import Mapping
from typing import Any

import pytest

from tests.engines.zfs.happenings import EVERYTHING, WAYS, Chaos, ends_well, events_of, happen
from tests.lab.common import Machine
from tests.lab.real_ferry import RealFerry

# Read here: each test has an environment of its own.
SECONDS = float(os.environ.get("POOLFERRY_CHAOS_SECONDS", "90"))
SEED = int(os.environ.get("POOLFERRY_CHAOS_SEED", "0"))
HAPPENINGS = [
    kind for kind in EVERYTHING if kind is not Chaos.run_dead_link  # it is on real links: test_zfs_cuts
] + [Chaos.run_cut, Chaos.snapshot]  # fmt: skip
LONGEST = 12
ORDER = ("plain", "raw", "rollback", "filtered", "sealed", "newest", "excluding", "flat", "sealed and raw")


@pytest.mark.virtual
@pytest.mark.timeout(SECONDS * 2 + 600)
def test_whatever_happens_to_real_pools_it_ends(master: Machine) -> None:
    for name in ("tank", "vault"):
        master.pool(name)
    until, seed, refused = time.monotonic() + SECONDS, SEED, 0
    while time.monotonic() < until:
        refused += bool(story(master, seed, ORDER[seed % len(ORDER)]))
        seed += 1
    print(f"{seed - SEED} stories, {refused} of them ended with a refusal")
    assert seed > SEED


def story(machine: Machine, seed: int, way: str) -> int:
    """One story; how many datasets are refused in the end. A failure tells the seed and what has happened."""
    chance = random.Random(f"{way} {seed}")
    told: Mapping[str, Any] = WAYS[way]
    ferry = RealFerry(machine, chance, **{"encrypted": False, "sealed": False, **told})
    chaos = Chaos(ferry)
    try:
        happen(chaos, HAPPENINGS, [(0, 0, 0), *events_of(chance, LONGEST)])
        return len(ends_well(chaos))
    except Exception as error:
        error.add_note(f"story {seed}, {way}:\n" + "\n".join(ferry.told))
        raise
