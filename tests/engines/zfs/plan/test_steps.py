"""From decisions to commands: every deed, each pair of places, and what a step promises."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.job import PipeOptions
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Effect, Pipeline, Step
from orchestrator.domain.units import Bytes
from orchestrator.engines.zfs.model import (
    AbortReceive,
    Action,
    ActionPlan,
    Bookmark,
    CreatePlaceholder,
    DatasetType,
    EndReceive,
    FullSend,
    HoldBases,
    IncrementalSend,
    ReleaseBases,
    RenameAside,
    ResumedSend,
    ResumeToken,
    Rollback,
    SendFlags,
    Snapshot,
    SnapshotPresent,
    ZfsSurvey,
)
from orchestrator.engines.zfs.plan import steps
from orchestrator.engines.zfs.plan.hold_names import replication_target_id
from orchestrator.engines.zfs.survey.resume_token import parse_token
from tests.engines.zfs.sides import (
    ASKED,
    COPY,
    FLAGS,
    HOST,
    LATER,
    MARK,
    POOL,
    SOURCE,
    A,
    B,
    C,
    dataset,
    job,
    side,
    world,
)

FAR_COPY, FAR_SOURCE = Location(path=COPY.path, host=HOST), Location(path=SOURCE.path, host=HOST)
RAW = SendFlags(raw=True)
ASIDE = "-x mountpoint -x sharenfs -x sharesmb -x quota -x refquota -x reservation -x refreservation"
NONE = "-o quota=none -o refquota=none -o reservation=none -o refreservation=none"
FIRST = f"-o readonly=on {NONE} -o canmount=noauto -o poolferry:flags=Lce"
ELSEWHERE = "-x mountpoint -x sharenfs -x sharesmb"
KEEPER = replication_target_id(POOL, COPY)
FULL = FullSend(dataset="", snapshot=A, flags=FLAGS, why="nothing there")


def incremental(base: Snapshot | Bookmark = A, to: Snapshot = B, name: str = "", **more: Any) -> IncrementalSend:
    return IncrementalSend(**{"dataset": name, "base": base, "snapshot": to, "between": False, "flags": FLAGS, "why": "both",
                              **more})  # fmt: skip


def build(
    *actions: Action, seen: ZfsSurvey | None = None, current: str | None = None, **options: Any
) -> tuple[Step, ...]:
    """The steps of one stage."""
    pipe = options.pop("pipe", None)
    decided = ActionPlan(stages=(actions,), current=current)
    (stage,) = steps.build_steps(job(pipe=pipe, **options), seen or world(), decided, ASKED)
    return stage


def lines(step: Step) -> list[str]:
    assert isinstance(step.work, Pipeline)
    return [" ".join(stage.argv) for stage in step.work.stages]


def test_a_full_send_word_for_word() -> None:
    (step,) = build(FULL, current="a")
    assert lines(step) == [
        "zfs send -PLcep tank/photos@a", "mbuffer -q -s 128k -m 65536k",
        f"zfs receive -s -u -x poolferry:receive {FIRST} {ELSEWHERE} vault/copies/photos",
    ]  # fmt: skip
    assert step.confirmation == SnapshotPresent(dataset=COPY, guid=1, snapshot="a")
    assert (step.action, step.why, step.worker) == (
        "send tank/photos @a, the whole",
        "nothing there",
        "vault/copies/photos",
    )
    assert (step.copies, step.expected, step.makes, step.effect) == (True, None, None, Effect.WRITES)


@pytest.mark.parametrize(
    ("used", "flags", "memory"),
    [
        (5 << 20, FLAGS, "5120k"),
        (700 << 10, FLAGS, "2048k"),
        (1 << 40, FLAGS, "65536k"),
        (5 << 20, RAW, "5120k"),
        (5 << 20, SendFlags(compressed=False), "65536k"),
        (None, FLAGS, "65536k"),
    ],
)
def test_a_buffer_is_no_larger_than_what_a_dataset_takes(used: int | None, flags: SendFlags, memory: str) -> None:
    seen = world(side(SOURCE, dataset("", A, B, used=used), mbuffer=True))
    (step,) = build(incremental(flags=flags), seen=seen)
    assert lines(step)[1] == f"mbuffer -q -s 128k -m {memory}"
    far = world(side(FAR_SOURCE, dataset("", A, B, used=used), mbuffer=True), side(COPY, mbuffer=True))
    (step,) = build(incremental(flags=flags), seen=far)
    assert isinstance(step.work, Pipeline)
    assert [memory in stage.argv for stage in step.work.stages] == [True, True, False], "the far end's, and our own"


def test_a_stream_that_a_pipe_takes_needs_no_buffer_within_one_machine() -> None:
    small = dataset("", A, B, used=400 << 10)
    here = world(side(SOURCE, small, mbuffer=True), side(COPY, mbuffer=True))
    (step,) = build(incremental(), seen=here)
    assert [line.split()[:2] for line in lines(step)] == [["zfs", "send"], ["zfs", "receive"]]
    (step,) = build(incremental(), seen=here, pipe=PipeOptions(rate_limit=Bytes(9 << 20)))
    assert "mbuffer" in lines(step)[1]
    far = world(side(SOURCE, small, mbuffer=True), side(FAR_COPY, mbuffer=True))
    (step,) = build(incremental(), seen=far)
    assert "mbuffer" in lines(step)[1]


def test_increments_from_snapshots_bookmarks_and_origins() -> None:
    seen = world(
        side(SOURCE, dataset("", A, B), dataset("x", B)),
        side(COPY, dataset("", Snapshot(name="other", guid=1, createtxg=9)), dataset("x")),
    )
    one, all_between, mark, clone = build(
        incremental(),
        incremental(between=True),
        incremental(MARK, name="x"),
        incremental(A, C, "x", origin=""),
        seen=seen,
    )
    assert lines(one)[0] == "zfs send -PLcep -i tank/photos@a tank/photos@b"
    assert lines(one)[2] == f"zfs receive -s -u -x poolferry:receive {ASIDE} vault/copies/photos"
    assert lines(all_between)[0] == "zfs send -PLcep -I tank/photos@a tank/photos@b"
    # zfs refuses -p from a bookmark on.
    assert lines(mark)[0] == "zfs send -PLce -i tank/photos/x#kept tank/photos/x@b"
    assert lines(mark)[2] == "zfs receive -s -u -s -u vault/copies/photos/x"
    # A clone's origin goes by the name that the target has for it.
    assert lines(clone)[0] == "zfs send -PLcep -i tank/photos@a tank/photos/x@c"
    assert (
        lines(clone)[2]
        == f"zfs receive -s -u -x poolferry:receive {FIRST} -o origin=vault/copies/photos@other {ELSEWHERE} vault/copies/photos/x"
    )


@pytest.mark.parametrize(
    ("action", "more", "plain"),
    [
        (incremental(), {}, True),
        (incremental(), {"properties": False}, True),
        (incremental(B, C), {}, False),  # that snapshot was not looked at
        (incremental(A, B, between=True), {}, True),
        (incremental(A, C, between=True), {}, False),  # of those between one was not
        (incremental(Snapshot(name="z", guid=9, createtxg=0)), {}, False),  # the copy's newest is another one by then
        (incremental(A, B, "", origin=""), {}, False),
        (incremental(A, B, "x"), {}, False),
    ],
)
def test_a_stream_brings_no_properties_to_a_copy_that_has_them_all(
    action: IncrementalSend, more: dict[str, Any], *, plain: bool
) -> None:
    here, there = side(SOURCE, dataset("", A, B, C), dataset("x", A, B)), side(COPY, dataset("", A), dataset("x", A))
    seen = world(here, there, plain={"": frozenset({A.guid, B.guid})})
    (step,) = build(action, seen=seen, **more)
    sent, received = lines(step)[0], lines(step)[-1]
    assert (" -PLce -" in sent, " -s -u -s -u vault" in received, " -x " not in received) == (plain, plain, plain)
    (far,) = build(action, seen=replace(seen, target=side(FAR_COPY, dataset("", A), dataset("x", A))), **more)
    assert "receive -s -u -x poolferry:receive" in lines(far)[-1], "a gate knows these words alone"
    (back,) = build(action, seen=replace(seen, returning="vault/copies/photos"), **more)
    assert "-PLcep" in lines(back)[0] or more, "a restore brings all"


def test_what_is_set_aside_first_has_properties_to_come() -> None:
    seen = world(target=side(COPY, dataset("", A)), plain={"": frozenset({A.guid, B.guid})})
    *_, step = build(RenameAside(dataset="", to="vault/old", why="asked"), incremental(), seen=seen)
    assert "-PLcep" in lines(step)[0]


def test_an_origin_that_is_sent_anew_has_the_sources_name() -> None:
    seen = world(target=side(COPY, dataset("", Snapshot(name="other", guid=1, createtxg=9))))
    _, clone = build(RenameAside(dataset="", to="vault/old", why="asked"), incremental(A, C, "x", origin=""), seen=seen)
    assert "-o origin=vault/copies/photos@a " in lines(clone)[2]


@pytest.mark.parametrize(
    ("source", "place", "told"),
    [
        (SOURCE, HOST, (None, None, HOST)),
        (FAR_SOURCE, None, (HOST, None, None)),
        (SOURCE, None, (None, None, None)),
    ],
)
def test_each_stage_runs_where_its_side_is(source: Location, place: Any, told: tuple[Any, ...]) -> None:
    seen = world(side(source, dataset("", A)), side(Location(path=COPY.path, host=place)))
    (step,) = build(FULL, seen=seen, source=source, place=place)
    assert isinstance(step.work, Pipeline)
    assert tuple(stage.host for stage in step.work.stages) == told
    assert step.confirmation is not None
    far = [line for line, stage in zip(lines(step), step.work.stages, strict=True) if stage.host]
    assert all("mbuffer -q" in line and "PATH=$PATH:" in line for line in far)


@pytest.mark.parametrize(("here", "rate", "stages"), [(True, None, 3), (False, None, 2), (False, Bytes(5 << 20), 3)])
def test_without_mbuffer_streams_go_straight_unless_a_rate_needs_it(
    *, here: bool, rate: Bytes | None, stages: int
) -> None:
    seen = world(side(SOURCE, dataset("", A), mbuffer=here), side(FAR_COPY, mbuffer=False))
    (step,) = build(FULL, seen=seen, place=HOST, pipe=PipeOptions(rate_limit=rate))
    assert len(lines(step)) == stages
    assert "mbuffer" not in lines(step)[-1]


def test_the_rate_is_shared_by_as_many_as_may_flow() -> None:
    sends = [incremental(name=name) for name in ("", "", "x", "y")]
    for parallel, share in ((1, 9 << 20), (2, 9 << 19), (8, 3 << 20)):
        told = build(*sends, parallel=parallel, pipe=PipeOptions(rate_limit=Bytes(9 << 20)))
        assert {line.split()[-1] for step in told for line in lines(step) if line.startswith("mbuffer")} == {str(share)}


def test_encrypted_datasets_bring_properties_only_raw() -> None:
    seen = world(side(SOURCE, dataset("", A, encrypted=True)))
    (raw,) = build(FullSend(dataset="", snapshot=A, flags=RAW, why=""), seen=seen)
    (plain,) = build(FULL, seen=seen)
    (bare,) = build(FULL, properties=False)
    assert lines(raw)[0] == "zfs send -PwLcep tank/photos@a"
    assert lines(plain)[0] == lines(bare)[0] == "zfs send -PLce tank/photos@a"
    assert "-x mountpoint" not in lines(plain)[2]


def test_a_volume_is_given_only_what_a_volume_has() -> None:
    seen = world(side(SOURCE, dataset("", A, kind=DatasetType.VOLUME)))
    (step,) = build(FULL, seen=seen, protect=("compression", "recordsize"))
    assert lines(step)[2] == (
        "zfs receive -s -u -x poolferry:receive -o readonly=on -o reservation=none -o refreservation=none -o poolferry:flags=Lce "
        "-x compression vault/copies/photos"
    )


def token() -> ResumeToken:
    told = parse_token(LATER)
    assert told is not None
    return told


@pytest.mark.parametrize("first", [False, True])
def test_a_resumed_send(*, first: bool) -> None:
    action = ResumedSend(dataset="", token=token(), snapshot=B, first=first, why="it was cut")
    (step,) = build(action, current="b")
    assert lines(step)[0] == f"zfs send -P -t {LATER}"
    words = f"-x poolferry:receive {FIRST}" if first else "-s -u"
    assert lines(step)[2] == f"zfs receive -s -u {words} vault/copies/photos"
    assert step.action == "send tank/photos @b, the rest"


def test_only_onto_our_placeholder_a_receive_is_forced_and_then_it_is_none_any_more() -> None:
    seen = world(target=side(COPY, dataset("", placeholder=True)))
    resumed = ResumedSend(dataset="", token=token(), snapshot=B, first=True, why="it was cut")
    step, after = build(FULL, seen=seen)
    (rest,) = build(resumed, seen=seen)
    for one in (step, rest):
        assert " -F " in lines(one)[2]
        assert one.effect is Effect.DESTROYS
    assert lines(after) == ["zfs inherit poolferry:placeholder vault/copies/photos"]
    assert after.worker == step.worker
    for actions in ((resumed,), (incremental(),), (RenameAside(dataset="", to="v", why=""), FULL)):
        told = build(*actions, seen=world() if actions[0] is resumed else seen)
        assert all("-F" not in line.split() for step in told for line in lines(step))


@pytest.mark.parametrize("placeholder", [True, False])
def test_what_the_first_properties_clear_is_given_again(*, placeholder: bool) -> None:
    copy = dataset("", A, placeholder=placeholder, bare=not placeholder)
    (step,) = build(incremental(), seen=world(target=side(COPY, copy)))
    assert lines(step)[2] == f"zfs receive -s -u -x poolferry:receive {FIRST} {ELSEWHERE} vault/copies/photos"


def test_of_very_many_snapshots_that_die_a_step_names_some() -> None:
    dies = tuple(f"@own-{number}" for number in range(10_000))
    (step,) = build(Rollback(dataset="", to=A, dies=dies, why="consent"), seen=world(target=side(COPY, dataset("", A))))
    assert "@own-0, @own-1, " in step.action
    assert step.action.endswith(", 9899 more, and @own-9999")
    assert len(step.action) < 2000


def test_small_deeds() -> None:
    own = Snapshot(name="own", guid=50, createtxg=50)
    there = (Snapshot(name="renamed", guid=1, createtxg=40), own)
    seen = world(target=side(COPY, dataset("x", *there), dataset("y", there[0])))
    abort, end, back, modified, aside, place, above = build(
        AbortReceive(dataset="x", why="stale"), EndReceive(dataset="x", pid=7, why="dead"),
        Rollback(dataset="x", to=A, dies=("@own", "5 MiB"), why="consent"),
        Rollback(dataset="y", to=A, dies=("5 MiB",), why="consent"),
        RenameAside(dataset="x", to="vault/copies/photos/x_aside", why="asked"), CreatePlaceholder(dataset="p"),
        CreatePlaceholder(dataset="vault/copies", above=True), seen=seen,
    )  # fmt: skip
    assert lines(abort)[0].endswith(" abort-receive.sh vault/copies/photos/x")
    assert "zfs receive -A" in lines(abort)[0]
    assert lines(end)[0].endswith(" end-receive.sh 7 vault/copies/photos/x plain")
    assert lines(back) == ["zfs rollback -r vault/copies/photos/x@renamed"]
    assert lines(modified) == ["zfs rollback vault/copies/photos/y@renamed"]
    assert {back.effect, modified.effect} == {Effect.DESTROYS}
    assert back.action == "roll vault/copies/photos/x back to @renamed, which destroys @own, 5 MiB"
    assert lines(aside) == ["zfs rename -u vault/copies/photos/x vault/copies/photos/x_aside"]
    made = "zfs create -u -o canmount=off -o readonly=on -o poolferry:placeholder=on"
    assert lines(place) == [f"{made} vault/copies/photos/p"]
    assert lines(above) == [f"{made} vault/copies"]
    assert [step.why for step in (abort, end, back, aside, place)] == [
        "stale",
        "dead",
        "consent",
        "asked",
        "others lie below it",
    ]
    assert {abort.worker, end.worker, back.worker, aside.worker} == {"vault/copies/photos/x"}
    assert not any(step.copies or step.confirmation for step in (abort, end, back, aside, place, above))


def test_cursors_are_kept_in_one_command_and_holds_in_another() -> None:
    action = HoldBases(cursors=(("", A), ("x", B)), holds=(("x", B),))
    by_program, hold = build(action)
    ours = KEEPER
    assert [by_program.worker, hold.worker] == ["main", "main"]
    assert lines(by_program)[0].endswith(
        f"tank tank/photos @a poolferry_{ours}_{1:016x} tank/photos/x @b poolferry_{ours}_{2:016x} "
        f"tank/photos/x @b poolferry_held_{ours}_{2:016x}"
    )
    assert by_program.action == "remember 2 snapshots by bookmarks"
    assert "zfs program" in lines(by_program)[0]
    assert lines(hold)[0].endswith(f"sh poolferry_{ours} tank/photos/x@b")
    one_by_one, _ = build(action, seen=world(side(SOURCE, dataset("", A), programs=False)))
    assert "zfs program" not in lines(one_by_one)[0]
    assert "zfs bookmark" in lines(one_by_one)[0]
    assert build(HoldBases()) == ()


def test_what_is_let_go_is_released_before_its_mark_is_dropped() -> None:
    release, drop = build(ReleaseBases(cursors=(("", MARK),), holds=(("x", B),)))
    assert lines(release)[0].endswith(f"sh poolferry_{KEEPER} tank/photos/x@b")
    assert lines(drop)[0].endswith(f"sh tank/photos#kept tank/photos/x#poolferry_held_{KEEPER}_{2:016x}")
    assert {release.effect, drop.effect} == {Effect.WRITES}
    assert [release.worker, drop.worker] == ["main", "main"]


def test_a_hold_of_the_older_name_is_let_go_by_that_name() -> None:
    release, older, drop = build(ReleaseBases(holds=(("x", B),), older=(("", A),)))
    assert lines(release)[0].endswith(f"sh poolferry_{KEEPER} tank/photos/x@b")
    assert lines(older)[0].endswith(f"sh poolferry_{POOL:016x} tank/photos@a")
    held = f"tank/photos/x#poolferry_held_{KEEPER}_{2:016x} tank/photos#poolferry_held_{POOL:016x}_{1:016x}"
    assert lines(drop)[0].endswith(f"sh {held}")


def test_sudo_only_where_we_are_not_root() -> None:
    seen = world(side(SOURCE, dataset("", A)), side(COPY, sudo=True))
    step, abort = build(FULL, AbortReceive(dataset="", why=""), seen=seen)
    assert [line.split()[0] for line in lines(step)] == ["zfs", "mbuffer", "sudo"]
    assert "sudo -n zfs" in lines(abort)[0]
