"""A copy comes back: all of it, by guid, cut wherever one likes; onto nothing that others made; and chains go on from it."""

import json
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.domain.dataset_restore import DatasetRestoreRequest
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import NothingToDo, Plan, Refusal
from orchestrator.domain.point import RestorePoint
from orchestrator.engines.contract.comparison import ComparisonPlan
from orchestrator.engines.zfs import ENGINE
from orchestrator.engines.zfs.model import ActionPlan, DatasetType, FullSend, HoldBases, IncrementalSend, Snapshot
from orchestrator.engines.zfs.plan.plan import plan as planned_run
from orchestrator.engines.zfs.restore import plan as returning
from orchestrator.engines.zfs.restore.model import Properties
from orchestrator.engines.zfs.restore.plan import cut_to_point, is_original_place, partial_points, short_datasets
from tests.engines.zfs.model_run import Cut, Ferry, encrypt, ferry, requested
from tests.engines.zfs.restore.builders import COPY, ROOT, WayBack, forward, way_back
from tests.engines.zfs.sides import dataset, side
from tests.engines.zfs.sides import job as declared
from tests.engines.zfs.sides import world as seen_world
from tests.world import SIZE

TAKEN = datetime(2026, 1, 1, tzinfo=UTC)


def refused(way: WayBack, *allowed: str) -> Refusal:
    found = way.plan(requested(*allowed)).decision
    assert isinstance(found, Refusal), found
    return found


def planned(way: WayBack, *allowed: str) -> Plan:
    found = way.plan(requested(*allowed)).decision
    assert isinstance(found, Plan), found
    return found


def guids(pool: Ferry, root: str, *, source: bool) -> dict[str, list[int]]:
    of = pool.source if source else pool.target
    return {name[len(root) :]: [one.guid for one in of.nodes[name].snapshots] for name in of.below(root)}


def test_all_of_it_comes_back_by_guid() -> None:
    out = forward("a", "b", "c", below=("x", "x/y"))
    way = way_back(out)
    way.run()
    assert guids(way, ROOT, source=False) == guids(out, ROOT, source=True)
    assert all(str(way.target.nodes[name].flags) == "Lceb" for name in way.target.below(ROOT))


def test_only_what_lies_below_comes_back_to_another_name() -> None:
    way = way_back(forward("a", below=("x", "x/y", "z")), "tank/other", below="x")
    way.run()
    assert way.target.below("tank/other") == ["tank/other", "tank/other/y"]


def test_the_copy_is_left_as_it_was() -> None:
    way = way_back(forward("a", "b", below=("x",)))
    before = dict(way.source.nodes)
    found = way.decide()
    assert isinstance(found, ActionPlan)
    keep = next(action for stage in found.stages for action in stage if isinstance(action, HoldBases))
    assert (keep.cursors, len(keep.holds)) == ((), 2)  # what a cut stream would need, and no more
    way.run()
    assert (way.source.nodes, way.source.holds) == (before, set())


def test_what_is_sent_is_what_the_copy_received_and_makes_no_point() -> None:
    plan = planned(way_back(forward("a", "b")))
    lines = [str(step.work) for step in plan.steps if step.copies]
    assert [line.partition(" | ")[0] for line in lines] == [
        f"zfs send -PLceb {COPY}@a", f"zfs send -PLceb -i {COPY}@a {COPY}@b",
    ]  # fmt: skip
    assert "poolferry:flags=Lceb" in lines[0]
    assert plan.current is None
    assert plan.again


@pytest.mark.parametrize("seed", range(40))
def test_cut_anywhere_it_goes_on(seed: int) -> None:
    """Before any deed and in the middle of any stream, several times; nothing is sent twice, and all is there in the end."""
    chance = random.Random(seed)
    out = forward("a", "b", "c", below=("x", "y"))
    way = way_back(out)
    for _ in range(4):
        left = [chance.randrange(8)]
        after = chance.randrange(3 * SIZE)

        def mishap(_: object, left: list[int] = left, after: int = after) -> int | None:
            left[0] -= 1
            return after if left[0] < 0 else None

        try:
            way.run(mishap=mishap)
        except Cut:
            continue
    way.run()
    assert guids(way, ROOT, source=False) == guids(out, ROOT, source=True)
    assert way.moved == SIZE * sum(len(each) for each in guids(out, ROOT, source=True).values())
    assert way.source.holds == set()


# Chains.


def test_a_run_goes_on_from_what_came_back() -> None:
    out = forward("a", "b", below=("x",))
    way = way_back(out)
    way.run()
    settle(way)
    on = Ferry(source=way.target, target=out.target, job=out.job)
    assert sends(on) == []
    for name in ("", "/x"):
        way.target.snapshot(f"{ROOT}{name}", "new")
    assert [type(action) for action in sends(on)] == [IncrementalSend, IncrementalSend]
    on.run()
    assert on.newest_is_there("x")


def test_another_disk_that_holds_less_goes_on_too() -> None:
    out = forward("a", below=("x",))
    old = Ferry(source=out.source, target=ferry("a").target, job=out.job)
    old.run()
    for name in ("", "/x"):
        out.source.snapshot(f"{ROOT}{name}", "b")
    out.run()
    way = way_back(out)
    way.run()
    settle(way)
    on = Ferry(source=way.target, target=old.target, job=old.job)
    assert [type(action) for action in sends(on)] == [IncrementalSend, IncrementalSend]


def settle(way: WayBack) -> None:
    """Remove our own names as the end of a restore does."""
    for name in way.target.below(way.copy):
        way.target.nodes[name] = replace(way.target.nodes[name], flags=None)


def sends(on: Ferry) -> list[object]:
    found = on.decide()
    assert isinstance(found, ActionPlan), found
    return [action for stage in found.stages for action in stage if isinstance(action, FullSend | IncrementalSend)]


def test_no_run_takes_the_copy_back_to_a_source_that_is_not_whole_yet() -> None:
    """With that consent, a run would destroy on the target what has not come back yet."""
    out = forward("a", "b", "c", may_destroy=("rollback",))
    way = way_back(out)

    def cut(action: object) -> int | None:
        return 1 if isinstance(action, IncrementalSend) else None

    with pytest.raises(Cut):
        way.run(mishap=cut)
    on = Ferry(source=way.target, target=out.target, job=out.job)
    before = out.target.guids()
    found = on.run()
    assert isinstance(found, Refusal)
    assert found.why == "tank/photos is being brought back from a copy, and is not whole yet"
    assert "poolferry restore run photos --to tank/photos" in found.hint
    assert out.target.guids() == before


# Onto nothing that others made.


def test_what_is_there_is_not_overwritten() -> None:
    way = way_back(forward("a"))
    way.target.create(ROOT)
    way.target.snapshot(ROOT, "own")
    found = refused(way)
    assert found.why == "tank/photos is there; a restore overwrites nothing"
    assert found.evidence == ("1 dataset, 1 snapshot of the first, the newest is @own",)
    assert "--aside: what is there is renamed to tank/photos_aside_2026-03-04T050607Z and kept" in found.hint
    told = [str(step.work) for step in planned(way, "aside").steps]
    assert told[0] == "zfs rename -u tank/photos tank/photos_aside_2026-03-04T050607Z"
    assert not any(" -F" in line for line in told)


def test_the_very_copy_of_the_same_data_is_not_taken_for_an_unfinished_restore() -> None:
    """Another target holds the same guids, and flags of its own: it must stay what it is."""
    out = forward("a", "b")
    way = way_back(out)
    there = Ferry(source=out.source, target=way.target, job=replace(out.job, target=replace(out.job.target)), copy=ROOT)
    there.run()
    assert str(way.target.nodes[ROOT].flags) == "Lce"
    assert refused(way).why == "tank/photos is there; a restore overwrites nothing"


def test_a_volume_in_the_way_is_renamed_as_volumes_are() -> None:
    way = way_back(forward("a"))
    way.target.create(ROOT, kind=DatasetType.VOLUME)
    told = [str(step.work) for step in planned(way, "aside").steps]
    assert told[0] == "zfs rename tank/photos tank/photos_aside_2026-03-04T050607Z"


def test_what_an_earlier_restore_left_goes_on_with_aside_too() -> None:
    way = way_back(forward("a", "b"))
    with pytest.raises(Cut):
        way.run(mishap=lambda action: 2 if isinstance(action, FullSend) else None)
    plan = planned(way, "aside")
    assert not any("rename" in str(step.work) for step in plan.steps)
    assert plan.resumes is not None


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("tank/new/photos", "tank/new, in which it shall lie, is not there"),
        ("gone/photos", "the pool gone is not imported"),
    ],
)
def test_nothing_is_made_above(to: str, why: str) -> None:
    assert refused(way_back(forward("a"), to)).why == why


@pytest.mark.parametrize("to", [COPY, f"{COPY}/x", "vault/copies"])
def test_a_copy_does_not_return_into_itself(to: str) -> None:
    way = way_back(forward("a", below=("x",)), to)
    way.target = way.source
    assert "lie in each other" in refused(way).why


def test_nothing_is_carried_between_two_hosts() -> None:
    way = way_back(forward("a"))
    far = Host(name="far")
    seen = way.seen()
    both = replace(
        seen.world,
        source=replace(seen.world.source, root=Location(path=COPY, host=far)),
        target=replace(seen.world.target, root=Location(path=ROOT, host=far)),
    )
    from orchestrator.engines.zfs.restore import plan as returning

    found = returning.plan(replace(seen, world=both), requested()).decision
    assert isinstance(found, Refusal)
    assert "nothing is carried between two hosts" in found.why


def test_a_copy_that_is_not_there() -> None:
    way = way_back(ferry("a"))
    assert refused(way).why == f"{COPY} is not there, or holds no snapshot"


# Encryption.


def test_what_its_pool_encrypts_returns_readable_and_what_is_encrypted_returns_so() -> None:
    sealed = ferry("a")
    encrypt(sealed.target, "vault/copies")
    sealed.run()
    way = way_back(sealed)
    way.run()
    assert not way.target.nodes[ROOT].encrypted
    own = ferry("a")
    encrypt(own.source, ROOT)
    own.run()
    way = way_back(own)
    way.run()
    assert (way.target.nodes[ROOT].encrypted, way.target.nodes[ROOT].raw) == (True, True)


def test_a_raw_copy_returns_without_properties() -> None:
    """`zfs receive` of OpenZFS 2.3 dies of a raw stream with -b that does not say where the key is."""
    own = ferry("a")
    encrypt(own.source, ROOT)
    own.run()
    (line,) = [str(step.work) for step in planned(way_back(own)).steps if step.copies]
    assert line.startswith(f"zfs send -PwLce {COPY}@a | ")
    assert "poolferry:flags=wLceb" in line
    assert " -x mountpoint" not in line


def test_a_child_of_a_raw_copy_returns_raw() -> None:
    own = ferry("a")
    encrypt(own.source, ROOT)
    own.source.create(f"{ROOT}/x")
    own.source.snapshot(f"{ROOT}/x", "a")
    own.run()
    way = way_back(own, "tank/other", below="x")
    way.run()
    assert way.target.nodes["tank/other"].raw


def test_what_was_encrypted_and_is_so_by_its_pool_now_does_not_return_readable_unasked() -> None:
    out = ferry("a", raw="no")
    encrypt(out.source, ROOT)
    encrypt(out.target, "vault/copies")
    out.run()
    assert "would be stored readable" in refused(way_back(out)).why


# As of a point.


def test_nothing_newer_than_the_point() -> None:
    names = [Snapshot(name=name, guid=number, createtxg=number) for number, name in enumerate("abcd", 1)]
    created = {one.guid: TAKEN + timedelta(hours=2 * one.guid) for one in names}
    late = {9: created[2] + timedelta(seconds=30), 8: created[3]}
    child = (Snapshot(name="b", guid=9, createtxg=50), Snapshot(name="z", guid=8, createtxg=60))
    other = (Snapshot(name="c", guid=7, createtxg=70),)
    found = seen_world(
        side(Location(path=COPY), dataset("", *names), dataset("x", *child), dataset("y", *other), dataset("empty")),
        created=created | late | {7: created[3]},
    )
    point = RestorePoint(name="b", taken=created[2], tree=Location(path=f"{COPY}@b"), manifest=None)
    cut, bare = cut_to_point(found, point)
    told = {name: [one.name for one in each.snapshots] for name, each in cut.source.datasets.items()}
    assert told == {"": ["a", "b"], "x": ["b"]}  # by its name, though it was taken half a minute later
    assert bare == ("empty",)
    whole, _ = cut_to_point(found, None)
    assert set(whole.source.datasets) == {"", "x", "y"}


def test_a_name_that_was_used_again_is_another_point() -> None:
    child = (Snapshot(name="old", guid=1, createtxg=1), Snapshot(name="b", guid=2, createtxg=2))
    found = seen_world(
        side(Location(path=COPY), dataset("", *child)), created={1: TAKEN, 2: TAKEN + timedelta(days=400)}
    )
    point = RestorePoint(name="b", taken=TAKEN + timedelta(days=1), tree=Location(path=COPY), manifest=None)
    assert [one.name for one in cut_to_point(found, point)[0].source.datasets[""].snapshots] == ["old"]


def test_where_it_came_from() -> None:
    job = declared()
    assert is_original_place(job, DatasetRestoreRequest(to=Location(path="tank/photos")))
    assert is_original_place(job, DatasetRestoreRequest(to=Location(path="tank/photos/x"), below="x"))
    assert not is_original_place(job, DatasetRestoreRequest(to=Location(path="tank/photos"), below="x"))
    assert not is_original_place(job, DatasetRestoreRequest(to=Location(path="tank/photos", host=Host(name="other"))))


def test_a_dataset_that_was_only_a_place_comes_back_as_one() -> None:
    out = ferry()
    out.source.create(f"{ROOT}/x")
    out.source.snapshot(f"{ROOT}/x", "a")
    out.run()
    way = way_back(out)
    way.run()
    assert way.target.nodes[ROOT].placeholder
    assert way.target.nodes[f"{ROOT}/x"].snapshots
    found = way.plan()
    assert found.whole
    assert isinstance(found.decision, Plan | NothingToDo)


def test_what_is_settled_and_in_use_again_is_not_judged_once_more() -> None:
    """While another part waits for its key, the rest is written to."""
    way = way_back(forward("a", below=("x",)))
    way.run()
    there = way.target.nodes
    there[f"{ROOT}/x"] = replace(there[f"{ROOT}/x"], flags=None, written=1)
    found = ENGINE.plan_restore_verification(way.seen(), requested())
    assert isinstance(found, ComparisonPlan)
    assert (found.findings, found.datasets, found.warnings) == ((), 1, ())
    there[ROOT] = replace(there[ROOT], written=1)
    way.target.snapshot(ROOT, "of a timer")
    found = ENGINE.plan_restore_verification(way.seen(), requested())
    assert isinstance(found, ComparisonPlan)
    assert (found.findings, found.datasets) == ((), 1), "a mount below it makes a folder in it, and people use it"


def waiting(way: WayBack, *names: str) -> None:
    """All is whole; what has one of these names waits for its key, and the rest is in use."""
    for name in way.target.below(ROOT):
        waits = name[len(ROOT) + 1 :] in names
        way.target.nodes[name] = replace(way.target.nodes[name], flags=None, waits=waits, written=0 if waits else 1)


def test_the_same_command_goes_on_with_what_waits_and_leaves_the_rest_in_use() -> None:
    way = way_back(forward("a", "b", below=("x", "y")))
    way.run()
    waiting(way, "x")
    way.target.snapshot(ROOT, "of a timer")
    way.target.destroy_snapshot(ROOT, way.target.nodes[ROOT].snapshots[1].guid)
    home: Properties = {name: {} for name in ("", "x", "y")}
    for allowed in ((), ("aside",)):
        found = way.plan(requested(*allowed), home=home)
        assert found.whole, found
        assert isinstance(found.decision, Plan)
        verified = ENGINE.plan_restore_verification(way.seen(home=home), requested())
        assert isinstance(verified, ComparisonPlan), verified
        assert (verified.findings, verified.datasets) == ((), 2), "the root, for its name, and what waits"
        assert {line for step in found.decision.steps for line in str(step.work).split() if "tank/" in line} == {
            f"{ROOT}/x"
        }
    way.target.nodes[f"{ROOT}/y"] = replace(way.target.nodes[f"{ROOT}/y"], snapshots=())
    assert refused(way).why == f"{ROOT} is there; a restore overwrites nothing", "a dataset that is another one now"


def test_a_run_goes_on_with_all_while_a_part_waits_for_its_key() -> None:
    out = forward("a", below=("x", "y"))
    way = way_back(out)
    way.run()
    back = Ferry(source=way.target, target=way.source, job=out.job)
    found = back.decide()
    assert isinstance(found, Refusal)
    assert found.hint == f"finish that: poolferry restore run photos --to {ROOT}"
    waiting(way, "x")
    way.target.snapshot(f"{ROOT}/y", "new")
    found = back.run()
    assert isinstance(found, ActionPlan), found
    assert back.newest_is_there("y")
    assert found.warnings == (
        f"{ROOT}/x: restored, and waits for a key or for its mountpoint: poolferry restore run photos --to {ROOT}",
    )


def test_a_run_does_not_send_the_values_of_what_waits() -> None:
    """canmount=noauto is only for the time of the waiting; a copy that received it would give it back for ever."""
    out = forward("a", below=("x",))
    way = way_back(out)
    way.run()
    waiting(way, "x")
    for name in ("", "/x"):
        way.target.snapshot(f"{ROOT}{name}", "new")
    back = Ferry(source=way.target, target=way.source, job=out.job)
    made = planned_run(back.job, back.survey(), requested())
    assert isinstance(made, Plan), made
    assert {str(step.work).split()[2] for step in made.steps if step.copies} == {"-PLcep", "-PLce"}


def test_said_again_after_a_good_restore_it_is_back_already() -> None:
    way = way_back(forward("a", "b", below=("x",)))
    way.run()
    waiting(way)
    for request in (requested(), requested("aside")):
        found = returning.plan(replace(way.seen(), already=True), request).decision
        assert isinstance(found, NothingToDo), found
    whole = refused(way)
    assert whole.evidence[-1].startswith("it lacks no snapshot of the copy"), (
        "what history knows nothing of is only there"
    )
    way.target.nodes.pop(f"{ROOT}/x")
    lacks = returning.plan(replace(way.seen(), already=True), requested()).decision
    assert isinstance(lacks, Refusal)
    assert "lacks no snapshot" not in str(lacks.evidence)


@pytest.mark.parametrize(
    ("name", "why"), [("none", "is not there"), ("x", "is not encrypted"), ("", "has its key loaded")]
)
def test_only_of_a_missing_key_it_can_be_said_that_it_is_lost(name: str, why: str) -> None:
    out = forward("a", below=("x",))
    way = way_back(out)
    way.run()
    encrypt(way.target, ROOT)
    found = returning.plan(replace(way.seen(), lost=frozenset({name})), requested()).decision
    assert isinstance(found, Refusal)
    assert found.why.endswith(why), found


def test_a_partial_copy_is_not_restored_as_if_it_were_whole() -> None:
    """One dataset was left out of the last run; another has snapshots of its own kind, and one was destroyed at the source."""
    way = way_back(forward("a", below=("x", "own", "gone")))
    own = way.source.nodes[f"{COPY}/own"]
    way.source.nodes[f"{COPY}/own"] = replace(own, snapshots=tuple(replace(one, name="mine") for one in own.snapshots))
    way.source.snapshot(COPY, "c")
    world = way.survey()
    kit = json.dumps({"source": ROOT, "datasets": {ROOT: {}, f"{ROOT}/x": {}, f"{ROOT}/own": {}}})
    assert short_datasets(world, None, kit) == {"x": "a"}
    assert short_datasets(world, None, None) == {"gone": "a", "x": "a"}
    assert short_datasets(world, point("a"), kit) == {}
    way.source.snapshot(f"{COPY}/x", "c")
    assert short_datasets(way.survey(), None, kit) == {}


def test_points_that_lack_datasets_are_seen_in_the_copy_alone() -> None:
    """One dataset lacks the newest; a later one lacks none before its own first; the first copy of another was cut."""
    way = way_back(forward("a", below=("x", "gone")))
    way.source.snapshot(COPY, "c")
    way.source.create(f"{COPY}/late")
    way.source.snapshot(f"{COPY}/late", "c")
    copy = way.survey().source
    assert partial_points(copy, None) == {"c": ("gone", "x")}
    kit = json.dumps({"source": ROOT, "datasets": {ROOT: {}, f"{ROOT}/x": {}}})
    assert partial_points(copy, kit) == {"c": ("x",)}
    cut = replace(copy.datasets["late"], snapshots=(), partial=True)
    copy = replace(copy, datasets={"": copy.datasets[""], "late": cut})
    assert partial_points(copy, None) == {"a": ("late",), "c": ("late",)}
    assert partial_points(replace(copy, datasets={}), None) == {}


def point(name: str) -> RestorePoint:
    return RestorePoint(name=name, taken=TAKEN, tree=Location(path=COPY), manifest=None)


def test_a_restore_from_a_copy_that_takes_no_bookmark_says_so_once() -> None:
    way = way_back(forward("a"))
    assert not any(
        "no bookmark and no hold is made on the source" in warning for warning in planned(way, "no-bookmarks").warnings
    )
