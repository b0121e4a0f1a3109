"""A copy of a pool's own dataset comes back into that of a new pool: only where it is empty, and nothing below it is touched."""

from dataclasses import replace

import pytest

from orchestrator.domain.dataset_restore import DatasetRestorePlan, DatasetRestoreRequest
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Effect, NothingToDo, Pipeline, Plan, Refusal
from orchestrator.engines.zfs.model import FullSend, SendFlags
from orchestrator.engines.zfs.restore import plan as returning
from orchestrator.engines.zfs.restore import pool_root as rooting
from orchestrator.engines.zfs.restore import properties as settling
from orchestrator.engines.zfs.restore.model import DatasetRestoreSurvey, PropertyValue
from tests.engines.zfs.model_run import Cut, encrypt, requested
from tests.engines.zfs.restore.builders import COPY, WayBack, forward, way_back
from tests.engines.zfs.sides import A, B, dataset, side, world
from tests.engines.zfs.sides import job as declared

EMPTY: tuple[str, ...] = ()


def plan(way: WayBack, inside: tuple[str, ...] | None = EMPTY, *allowed: str, **more: object) -> DatasetRestorePlan:
    return returning.plan(replace(way.seen(), inside=inside, **more), requested(*allowed))  # type: ignore[arg-type]


def refused(way: WayBack, inside: tuple[str, ...] | None = EMPTY, **more: object) -> Refusal:
    found = plan(way, inside, "aside", **more).decision
    assert isinstance(found, Refusal), found
    return found


def take(way: WayBack) -> None:
    """Carry out the first step."""
    way.target.nodes["tank"] = replace(way.target.nodes["tank"], placeholder=True)


def test_an_empty_one_is_taken_then_looked_at_again_and_only_then_received_into() -> None:
    way = way_back(forward("a", "b", below=("x",)), "tank")
    found = plan(way)
    assert isinstance(found.decision, Plan)
    (step,) = found.decision.steps
    assert "zfs unmount" in str(step.work)
    assert str(step.work).index("zfs unmount") < str(step.work).index("readonly=on canmount=noauto")
    assert isinstance(step.work, Pipeline)
    assert step.work.stages[0].argv[-2:] == ("tank", "poolferry:placeholder")
    assert found.decision.again
    told = [str(step.work) for stage in found.then for step in stage]
    assert any(line.startswith(f"zfs send -PLce {COPY}@a | ") and " -F " in line for line in told)
    assert any(line.startswith(f"zfs send -PLceb {COPY}/x@a | ") for line in told)
    assert any("inherit -S quota tank" in line for line in told)
    take(way)
    found = plan(way)
    assert isinstance(found.decision, Plan)
    forced = [str(step.work) for step in found.decision.steps if " -F " in str(step.work)]
    assert len(forced) == 1, "children are received as always"
    own = [str(step.work) for step in found.decision.steps if step.copies and step.worker == "tank"]
    assert not any(" -x mountpoint" in line or "send -PLceb" in line for line in own), (
        "first properties would clear its own, our marks too"
    )
    assert "poolferry:flags=Lceb" in own[0]


def test_it_and_all_below_it_comes_back_by_guid_cut_or_not() -> None:
    out = forward("a", "b", below=("x", "x/y"))
    way = way_back(out, "tank")
    way.target.create("tank/other")
    take(way)
    for _ in range(2):
        with pytest.raises(Cut):
            way.run(mishap=lambda action: 1 if isinstance(action, FullSend) else None)
        assert isinstance(plan(way).decision, Plan)
    way.run()
    here, there = out.source.nodes, way.target.nodes
    for name in ("", "/x", "/x/y"):
        came, made = there[f"tank{name}"].snapshots, here[f"tank/photos{name}"].snapshots
        assert [one.guid for one in came] == [one.guid for one in made]
    assert "tank/other" in there
    assert plan(way).whole


def test_what_holds_anything_is_left_alone_with_aside_too() -> None:
    way = way_back(forward("a"), "tank")
    assert refused(way, ("one", "two")).why == "tank is there, and holds files; a restore overwrites nothing"
    assert "could not be looked at" in refused(way, None).why
    take(way)
    assert "holds files" in refused(way, ("one",)).why, "what came meanwhile is seen by the second look"
    way.target.snapshot("tank", "own")
    found = refused(way, ("@own:one",))
    assert (found.why, found.evidence) == (
        "tank is there, and its snapshots hold files; a restore overwrites nothing", ("@own:one",),
    )  # fmt: skip
    assert found.hint.startswith("bring it back below, as a dataset: --to tank/NAME")


def test_what_came_back_by_another_tool_is_never_taken_for_empty() -> None:
    out = forward("a", "b")
    way = way_back(out, "tank")
    way.target.nodes["tank"] = replace(way.target.nodes["tank"], snapshots=out.target.nodes[COPY].snapshots[:1])
    assert not rooting.needs_file_look(way.survey())
    assert refused(way, None).why == "tank is there, and holds 1 snapshot; a restore overwrites nothing"


def test_snapshots_of_an_empty_pool_are_no_obstacle() -> None:
    """Those that a timer took between the pool's creation and its restore, also after the dataset was taken."""
    way = way_back(forward("a", "b"), "tank")
    for name in ("autosnap_1", "autosnap_2"):
        way.target.snapshot("tank", name)
    assert rooting.needs_file_look(way.survey())
    found = plan(way)
    assert isinstance(found.decision, Plan)
    (step,) = found.decision.steps
    assert step.action.startswith("remove 2 snapshots without a file (@autosnap_1, @autosnap_2), unmount tank,")
    assert step.effect is Effect.DESTROYS
    told = [str(each.work) for stage in found.then for each in stage]
    assert any(" -F " in line for line in told), told
    taken = [f"{one.guid} {one.name}" for one in way.target.nodes["tank"].snapshots]
    assert isinstance(step.work, Pipeline)
    assert list(step.work.stages[0].argv[-2:]) == taken
    take(way)
    found = plan(way)
    assert isinstance(found.decision, Plan)
    assert found.decision.summary.startswith("take tank"), "one that came after the first look is looked into, too"
    way.target.nodes["tank"] = replace(way.target.nodes["tank"], snapshots=())
    way.run()
    assert [one.name for one in way.target.nodes["tank"].snapshots] == ["a", "b"]


def test_datasets_of_others_that_bear_a_name_of_the_copy() -> None:
    way = way_back(forward("a", below=("x", "y")), "tank")
    way.target.create("tank/x")
    assert refused(way).why == "tank/x is there; a restore overwrites nothing"
    del way.target.nodes["tank/x"]
    way.target.create("tank/z")
    assert isinstance(plan(way).decision, Plan)
    copy = way.source.nodes[f"{COPY}/x"]
    way.target.nodes["tank/x"] = replace(copy, flags=None)  # another job has brought it back already
    assert isinstance(plan(way).decision, Plan)
    way.target.nodes["tank/x"] = replace(copy, flags=None, snapshots=())
    assert "tank/x is there" in refused(way).why


def test_nothing_encrypted() -> None:
    way = way_back(forward("a"), "tank")
    encrypt(way.target, "tank")
    assert refused(way).why == "tank is encrypted, and zfs puts nothing encrypted into a pool's own dataset"
    own = forward("a")
    encrypt(own.source, "tank/photos")
    raw = way_back(own, "tank")
    encrypt(raw.source, COPY)
    assert "the copy vault/copies/photos is encrypted" in refused(raw).why


def test_a_copy_whose_own_top_holds_nothing_needs_nothing_of_the_pool() -> None:
    out = forward(below=("x",))
    way = way_back(out, "tank")
    found = plan(way, ("file",))
    assert isinstance(found.decision, Plan)
    assert not any(" -F " in str(step.work) or "unmount" in str(step.work) for step in found.decision.steps)
    way.run()
    for name in ("tank/x",):
        way.target.nodes[name] = replace(way.target.nodes[name], flags=None)
    assert isinstance(plan(way, ("file",)).decision, NothingToDo), "and again: nothing is left to be done"


def test_who_works_below_is_not_cut_off() -> None:
    way = way_back(forward("a"), "tank")
    mounts = {"/tank": "tank", "/tank/other": "tank/other", "/": "rpool"}
    found = refused(way, mounts=mounts)
    assert "tank/other is mounted below it" in found.why
    assert isinstance(plan(way, mounts={"/tank": "tank", "/tanker": "x"}).decision, Plan)


def test_a_pool_that_is_not_there() -> None:
    way = way_back(forward("a"), "tank")
    found = way.seen()
    gone = replace(found.world, target=side(Location(path="tank")))
    told = returning.plan(replace(found, world=gone), requested()).decision
    assert isinstance(told, Refusal)
    assert told.why == "the pool tank is not imported"


def test_what_was_told_when_the_pool_was_made_stays() -> None:
    there = dataset("", A, flags=SendFlags(backup=True))
    top = Location(path="tank")
    seen = DatasetRestoreSurvey(
        job=returning.make_restore_job(declared(), DatasetRestoreRequest(to=top)),
        world=replace(world(side(Location(path=COPY), dataset("", A)), side(top, there)), returning=COPY),
        homeward=True, mounts={},
        copied={"": {name: PropertyValue(value="-", received="lz4", source="local") for name in ("compression", "user:note")}},
        home={"": {"compression": PropertyValue(value="zstd", received=None, source="local")}},
    )  # fmt: skip
    found = settling.plan(seen)
    assert isinstance(found, Plan)
    assert [str(step.work) for step in found.steps] == ["zfs set user:note=lz4 tank"]
    assert "tank keeps compression=zstd" in found.warnings[0]


def test_what_the_copy_received_is_set_in_the_end_and_foreseen_so() -> None:
    way = way_back(forward("a"), "tank")
    copied = {"": {"quota": PropertyValue(value="none", received="1000", source="local")}}
    home = {"": {"compression": PropertyValue(value="zstd", received=None, source="local")}}
    found = plan(way, copied=copied, home=home)
    told = [str(step.work) for stage in found.then for step in stage]
    assert "zfs set quota=1000 tank" in told
    assert not any("compression" in line for line in told)


def test_only_a_pool_that_is_to_be_filled_is_looked_into() -> None:
    top, copy = Location(path="tank"), side(Location(path=COPY), dataset("", A))
    told = [
        rooting.needs_file_look(world(copy, side(root, *there)))
        for root, there in (
            (top, (dataset(""),)), (top, ()), (top, (dataset("", A, B),)), (Location(path="tank/x"), (dataset(""),)),
            (top, (dataset("", B),)),
        )
    ]  # fmt: skip
    assert told == [True, False, False, False, True]
    assert rooting.parse_inside(b"a\nb\0c\0") == ("a\\nb", "c")
