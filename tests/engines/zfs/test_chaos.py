"""Anything may happen between two runs and in the middle of one: it ends well or in a reasoned refusal, and loses nothing."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engines.zfs.events import COPY, EVERYTHING, GENTLE, ROOT, WAYS, Chaos, Event, ends_well, events_of, happen
from tests.engines.zfs.model_run import encrypt, ferry

EVENTS = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 11), st.integers(0, 11)), max_size=40)


def modelled(*, encrypted: bool = False, sealed: bool = False, **options: Any) -> Chaos:
    """On two pools of the model."""
    chaos = Chaos(ferry(**options))
    encrypt(chaos.source, ROOT, encrypted=encrypted)
    encrypt(chaos.target, "vault/copies", encrypted=sealed)
    return chaos


def check(way: Mapping[str, Any], events: Sequence[Event]) -> None:
    chaos = modelled(**way)
    happen(chaos, EVERYTHING, events)
    ends_well(chaos)
    assert "may_decrypt" in way or not chaos.target.readable
    if way in (WAYS["sealed"], WAYS["sealed anew"]):
        assert all(chaos.target.nodes[name].encrypted for name in chaos.target.below(COPY))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(WAYS)), EVENTS)
def test_whatever_happens_it_ends(way: str, events: list[Event]) -> None:
    check(WAYS[way], events)


@pytest.mark.parametrize("way", WAYS)
def test_whatever_happens_over_many_seeds(way: str) -> None:
    for seed in range(25):
        check(WAYS[way], events_of(random.Random(f"{way} {seed}")))


@settings(max_examples=100, deadline=None)
@given(EVENTS)
def test_what_only_happens_on_the_source_is_never_refused(events: list[Event]) -> None:
    """Taking, renaming and destroying snapshots, and cuts: it always continues from the newest common snapshot, and sends nothing twice."""
    chaos = modelled()
    happen(chaos, GENTLE, events)
    for refusal in ends_well(chaos):
        assert refusal.why.startswith("there is no snapshot of"), refusal


def test_what_only_happens_on_the_source_over_many_seeds() -> None:
    for seed in range(130):
        chaos = modelled()
        happen(chaos, GENTLE, events_of(random.Random(f"gentle {seed}")))
        for refusal in ends_well(chaos):
            assert refusal.why.startswith("there is no snapshot of"), (seed, refusal)
        assert not chaos.source.holds, seed
