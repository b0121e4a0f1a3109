"""Parents before children, origins before clones, and what goes in a circle."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.engines.zfs.model import ActionPlan, CreatePlaceholder, FullSend, IncrementalSend
from orchestrator.engines.zfs.plan.context import parent_dataset
from orchestrator.engines.zfs.plan.stages import dependency_levels, order_datasets
from tests.engines.zfs.model_run import ferry, requested

ROOT, COPY = "tank/photos", "vault/copies/photos"


@pytest.mark.parametrize(
    ("origins", "order", "kept"),
    [
        ({}, ("", "a", "a/x", "b"), {}),
        ({"a": "b"}, ("", "b", "a", "a/x"), {"a": "b"}),
        ({"a/x": "a"}, ("", "a", "b", "a/x"), {"a/x": "a"}),
        ({"b": "a/x", "a": ""}, ("", "a", "a/x", "b"), {"b": "a/x", "a": ""}),
        ({"": "a"}, ("", "a", "b", "a/x"), {}),
        ({"a": "a/x"}, ("", "b", "a", "a/x"), {}),
        ({"a": "b", "b": "a/x"}, ("", "a", "a/x", "b"), {"b": "a/x"}),
        ({"a": "b", "b": "a"}, ("", "a", "a/x", "b"), {"b": "a"}),
    ],
)
def test_order(origins: Mapping[str, str], order: tuple[str, ...], kept: Mapping[str, str]) -> None:
    assert order_datasets(("", "a", "a/x", "b"), origins) == (order, kept)


NAMES = ("", *(f"{one}{two}" for one in "abcd" for two in ("", "/x", "/x/y", "/z")))


@given(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(NAMES), max_size=12))
def test_any_tangle_is_put_in_order(origins: dict[str, str]) -> None:
    names = tuple(sorted(NAMES))
    order, kept = order_datasets(names, {one: other for one, other in origins.items() if one != other})
    place = {name: at for at, name in enumerate(order)}
    assert sorted(order) == list(names)
    assert all(place[parent_dataset(name)] < place[name] for name in names if name)
    assert all(place[other] < place[one] for one, other in kept.items())
    assert kept.items() <= origins.items()


def test_only_a_circle_costs_a_clone_its_origin() -> None:
    origins = {"c": "b", "b": "a", "a": "d/x", "d/z": "c"}
    assert order_datasets(tuple(sorted(NAMES)), origins)[1] == origins


def test_two_circles_in_one_another() -> None:
    """A clone that lost its origin still waits for its parent, which goes in a circle of its own."""
    origins = {"aa": "m/p/c", "m/p": "k", "k": "m/p/c", "m": "z", "z": "m/p/c"}
    order, kept = order_datasets(("", "aa", "k", "m", "m/p", "m/p/c", "z"), origins)
    assert order == ("", "m", "m/p", "m/p/c", "aa", "k", "z")
    assert kept == {"aa": "m/p/c", "k": "m/p/c", "z": "m/p/c"}


def test_levels_count_only_what_comes() -> None:
    needs = {"a": ("",), "a/x": ("a",), "b": ("", "a/x")}
    assert dependency_levels(needs, needs) == {"a": 0, "a/x": 1, "b": 2}


def test_a_clone_comes_after_what_it_starts_from_and_stays_a_clone() -> None:
    world = ferry("a", "b")
    world.source.clone(ROOT, world.source.nodes[ROOT].snapshots[1].guid, f"{ROOT}/c")
    world.source.snapshot(f"{ROOT}/c", "c1")
    world.source.snapshot(f"{ROOT}/c", "c2")
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    stages = [[type(action) for action in stage] for stage in decided.stages[1:-1]]
    assert stages == [[FullSend, IncrementalSend], [IncrementalSend], [IncrementalSend]]
    assert world.target.nodes[f"{COPY}/c"].origin == f"{COPY}@b"
    assert not decided.warnings


def test_a_clone_waits_for_an_increment_too() -> None:
    world = ferry("a")
    world.run()
    newer = world.source.snapshot(ROOT, "b")
    world.source.snapshot(ROOT, "c")
    world.source.clone(ROOT, newer.guid, f"{ROOT}/k")
    world.source.snapshot(f"{ROOT}/k", "k1")
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert len(decided.stages) == 4
    assert world.target.nodes[f"{COPY}/k"].origin == f"{COPY}@b"


def test_a_clone_of_what_the_target_holds_waits_for_nothing() -> None:
    world = ferry("a")
    world.run()
    world.source.clone(ROOT, world.source.nodes[ROOT].snapshots[0].guid, f"{ROOT}/k")
    world.source.snapshot(f"{ROOT}/k", "k1")
    world.source.clone(ROOT, world.source.nodes[ROOT].snapshots[0].guid, f"{ROOT}/l")
    world.source.snapshot(f"{ROOT}/l", "l1")
    world.source.snapshot(ROOT, "b")
    world.target.rename_snapshot(COPY, world.target.nodes[COPY].snapshots[0].guid, "other")
    world.run()
    assert {world.target.nodes[f"{COPY}/{name}"].origin for name in "kl"} == {f"{COPY}@other"}


def test_a_clone_of_what_is_not_sent_is_sent_whole_and_says_so() -> None:
    world = ferry("a", "b", skip_snapshots=("a",))
    world.source.clone(ROOT, world.source.nodes[ROOT].snapshots[0].guid, f"{ROOT}/k")
    world.source.snapshot(f"{ROOT}/k", "k1")
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert decided.warnings == (f"{ROOT}/k is a clone, and sent whole: the target has not its origin {ROOT}@a",)
    assert world.newest_is_there("k")


@pytest.mark.parametrize("origin", ["tank/elsewhere@x", "tank/photosets@x", f"{ROOT}/gone@x", f"{ROOT}@gone"])
def test_a_clone_from_outside_is_sent_whole(origin: str) -> None:
    world = ferry("a")
    world.source.create(f"{ROOT}/k", origin=origin)
    world.source.snapshot(f"{ROOT}/k", "k1")
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    assert origin in decided.warnings[0]
    assert world.newest_is_there("k")


def test_a_clone_whose_origin_is_left_out_is_sent_whole() -> None:
    world = ferry("a", exclude=("o",))
    world.source.create(f"{ROOT}/o")
    first = world.source.snapshot(f"{ROOT}/o", "o1")
    world.source.clone(f"{ROOT}/o", first.guid, f"{ROOT}/k")
    world.source.snapshot(f"{ROOT}/k", "k1")
    world.run()
    assert world.newest_is_there("k")
    assert f"{COPY}/o" not in world.target.nodes


def test_a_dataset_that_is_a_clone_of_one_below_itself_comes_too() -> None:
    world = ferry("a")
    world.source.clone(ROOT, world.source.nodes[ROOT].snapshots[0].guid, f"{ROOT}/c")
    world.source.snapshot(f"{ROOT}/c", "c1")
    world.source.promote(f"{ROOT}/c")
    world.source.snapshot(ROOT, "b")
    world.run()
    assert world.newest_is_there()
    assert world.newest_is_there("c")


def test_places_are_made_for_children_of_what_sends_nothing() -> None:
    world = ferry()
    world.source.create(f"{ROOT}/x")
    world.source.create(f"{ROOT}/x/y")
    world.source.snapshot(f"{ROOT}/x/y", "a")
    world.copy = "vault/copies/deep/er/photos"
    decided = world.run()
    assert isinstance(decided, ActionPlan)
    made = [action for stage in decided.stages for action in stage if isinstance(action, CreatePlaceholder)]
    assert made == [
        CreatePlaceholder(dataset="vault/copies/deep", above=True),
        CreatePlaceholder(dataset="vault/copies/deep/er", above=True),
        CreatePlaceholder(dataset=""),
        CreatePlaceholder(dataset="x"),
    ]
    world.source.snapshot(f"{ROOT}/x", "later")
    later = world.run()
    assert isinstance(later, ActionPlan)
    assert [action.why for stage in later.stages for action in stage if isinstance(action, FullSend)] == [
        "the target holds only its place, made by us and empty"
    ]
    assert world.newest_is_there("x")


def test_a_clone_does_not_start_from_what_is_renamed_away() -> None:
    world = ferry("a", catch_up="newest")
    world.run()
    world.source.clone(ROOT, world.source.nodes[ROOT].snapshots[0].guid, f"{ROOT}/k")
    world.source.snapshot(f"{ROOT}/k", "k1")
    world.source.snapshot(ROOT, "b")
    world.target.snapshot(COPY, "mine")
    decided = world.run(requested("aside"))
    assert isinstance(decided, ActionPlan)
    assert "sent whole" in decided.warnings[0]
    assert world.newest_is_there("k")
