"""Test which snapshots are sent, and in how few sends."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from orchestrator.engines.zfs.model import Bookmark, FullSend, IncrementalSend, Send, SendFlags, Snapshot
from orchestrator.engines.zfs.plan.context import PlanContext
from orchestrator.engines.zfs.plan.increments import PendingSnapshots, choose_snapshots, plan_sends
from tests.engines.zfs.model_run import NOW, ferry, requested

ROOT, COPY = "tank/photos", "vault/copies/photos"
SNAPSHOTS = tuple(Snapshot(name=name, guid=place, createtxg=100 + place) for place, name in enumerate("abcdef"))
MARK = Bookmark(name="m", guid=0, createtxg=100)


def shown(found: Sequence[Send]) -> str:
    """The sends as a line: "a" whole, "a-b" one, "a=d" with all between."""
    told = []
    for send in found:
        if isinstance(send, IncrementalSend):
            told.append(
                f"{send.base.mark[0].strip('@')}{send.base.name}{'=' if send.between else '-'}{send.snapshot.name}"
            )
        else:
            assert isinstance(send, FullSend)
            told.append(send.snapshot.name)
    return " ".join(told)


def sent(picked: str, base: Snapshot | Bookmark | None) -> str:
    after = SNAPSHOTS if base is None else SNAPSHOTS[1:]
    ahead = PendingSnapshots(all=after, picked=tuple(one for one in after if one.name in picked))
    return shown(tuple(plan_sends("", ahead, base, SendFlags(), "")))


@pytest.mark.parametrize(
    ("picked", "whole", "from_snapshot", "from_bookmark"),
    [
        ("bcdef", "b b=f", "a=f", "#m-b b=f"),
        ("b", "b", "a-b", "#m-b"),
        ("bc", "b b-c", "a=c", "#m-b b-c"),
        ("f", "f", "a-f", "#m-f"),
        ("cdf", "c c-d d-f", "a-c c-d d-f", "#m-c c-d d-f"),
        ("bdef", "b b-d d=f", "a-b b-d d=f", "#m-b b-d d=f"),
        ("", "", "", ""),
    ],
)
def test_the_fewest_sends(picked: str, whole: str, from_snapshot: str, from_bookmark: str) -> None:
    assert (sent(picked, None), sent(picked, SNAPSHOTS[0]), sent(picked, MARK)) == (whole, from_snapshot, from_bookmark)


def test_exactly_what_is_picked_arrives_whatever_is_picked() -> None:
    for picks in product((True, False), repeat=6):
        ahead = PendingSnapshots(
            all=SNAPSHOTS, picked=tuple(one for one, take in zip(SNAPSHOTS, picks, strict=True) if take)
        )
        arrived: list[Snapshot] = []
        for send in plan_sends("", ahead, None, SendFlags(), ""):
            if isinstance(send, IncrementalSend):
                assert arrived[-1] == send.base
                first = send.base.guid + 1 if send.between else send.snapshot.guid
                arrived += SNAPSHOTS[first : send.snapshot.guid + 1]
            else:
                arrived.append(send.snapshot)
        assert tuple(arrived) == ahead.picked


def test_a_clone_starts_from_its_origin_alone() -> None:
    ahead = PendingSnapshots(all=SNAPSHOTS[1:], picked=SNAPSHOTS[1:])
    first, *rest = plan_sends("", ahead, SNAPSHOTS[0], SendFlags(), "why", origin="o")
    assert isinstance(first, IncrementalSend)
    assert (first.origin, first.between, first.why) == ("o", False, "why")
    assert shown(rest) == "b=f"
    assert [getattr(send, "origin", None) for send in rest] == [None]
    assert [send.why for send in rest] == ["@b (guid 1) is there by then"]


def case(retain: Any = None, created: Any = (), **options: Any) -> tuple[PlanContext, Any]:
    world = ferry("a_hourly", "b_daily", "c_hourly", "d_daily", "e_hourly", **options)
    seen = world.survey()
    source = seen.source.datasets[""]
    times = {one.guid: NOW + timedelta(days=at) for at, one in enumerate(source.snapshots) if one.name[0] in created}
    return PlanContext(world.job, replace(seen, created=times), replace(requested(), retain=retain)), source


def picked(*found: Any, base: Any = None) -> str:
    case, source = found
    return "".join(one.name[0] for one in choose_snapshots(case, source, base).picked)


def test_filters() -> None:
    assert picked(*case()) == "abcde"
    assert picked(*case(snapshots=("*_daily",))) == "bd"
    assert picked(*case(snapshots=("a*", "*_daily"))) == "abd"
    assert picked(*case(skip_snapshots=("*_daily", "e*"))) == "ac"
    assert picked(*case(snapshots=("B*",))) == ""
    assert picked(*case(snapshots=())) == ""


def test_only_what_comes_after_the_base() -> None:
    world, source = case(snapshots=("*_daily",))
    ahead = choose_snapshots(world, source, source.snapshots[1])
    assert ["".join(one.name[0] for one in part) for part in (ahead.all, ahead.picked)] == ["cde", "d"]
    assert choose_snapshots(world, source, source.snapshots[-1]) == PendingSnapshots(all=(), picked=())


def test_the_newest_alone() -> None:
    assert picked(*case(catch_up="newest")) == "e"
    assert picked(*case(catch_up="newest", snapshots=("*_daily",))) == "d"


def test_only_what_would_be_kept() -> None:
    asked_for: list[Any] = []

    def retain(dated: Any) -> frozenset[str]:
        asked_for.append(dated)
        return frozenset({"b_daily"})

    assert picked(*case(retain, "abcde", catch_up="kept")) == "be"
    assert [(name[0], when) for name, when in asked_for[0]] == [
        (n, NOW + timedelta(days=at)) for at, n in enumerate("abcde")
    ]
    assert picked(*case(retain, "abc", catch_up="kept")) == "bde"  # whose time is unknown is kept
    assert picked(*case(None, "abcde", catch_up="kept")) == "abcde"


def test_a_run_far_behind_sends_the_newest_in_one() -> None:
    world = ferry("a", catch_up="newest")
    world.run()
    for name in "bcdef":
        world.source.snapshot(ROOT, name)
    world.run()
    assert [one.name for one in world.target.nodes[COPY].snapshots] == ["a", "f"]
