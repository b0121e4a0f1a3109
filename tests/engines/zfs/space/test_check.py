"""Test whether a plan fits: refused where it surely does not, warned of where nobody knows, weighed only where it is close."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from orchestrator.domain.place import Location, Place
from orchestrator.domain.plan import Pipeline, Plan, Refusal
from orchestrator.domain.units import Bytes
from orchestrator.engines.contract.copies import SpaceChecker
from orchestrator.engines.contract.engine import RunRequest, implements
from orchestrator.engines.zfs import ENGINE
from orchestrator.engines.zfs.model import SendFlags, ZfsSurvey
from orchestrator.engines.zfs.plan.plan import plan
from orchestrator.engines.zfs.space.check import GUARD, parse_space
from orchestrator.engines.zfs.survey.resume_token import parse_token
from orchestrator.process.pipeline import PipelineResult, StopReason
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.zfs.sides import ASKED, COPY, LATER, NOW, SOURCE, A, B, C, dataset, job, side, world

GIB = 1 << 30
# Of the copy, the newest of the root is b and that of the dataset below it is c: a and o alone may go.
SNAPSHOTS = "".join(
    f"{COPY.path}{name}\t{txg}\t{taken}\n"
    for name, txg, taken in (("@o", 1, 1000), ("@a", 2, 2000), ("@b", 3, 3000), ("/x@a", 2, 2000), ("/x@c", 4, 4000))
)


def room(free: int, *, freeing: int = 0, compression: str = "lz4", dedup: str = "off", more: str = SNAPSHOTS) -> str:
    return f"freeing\t{freeing}\navailable\t{free}\ncompression\t{compression}\ndedup\t{dedup}\n{more}"


def near(free: int = GIB, *, used: int = 8 * GIB, **more: Any) -> ZfsSurvey:
    """The source holds a, b and c, the copy a and b."""
    return world(side(SOURCE, dataset("", A, B, C, used=used)), side(COPY, dataset("", A, B, **more), available=free))


def first(free: int) -> ZfsSurvey:
    """There is no copy yet."""
    return world(
        side(SOURCE, dataset("", A, B, C, used=8 * GIB)),
        side(COPY, available=free, above=frozenset({"vault", "vault/copies"})),
    )


def says(word: str) -> Callable[[Pipeline], bool]:
    return lambda pipeline: word in str(pipeline)


def reader(size: int, closer: str, *, packs: str = "lz4", frees: dict[str, int] | None = None) -> ScriptedExecutor:
    """Tells what a dry send, a closer look, the source's compression and dry destroys tell."""
    reclaim = frees or {"o": 1 << 20, "o,a": 2 << 20}
    destroys = [
        (says(f"-nvpr {COPY.path}@{names} ".strip()), scripted_result(f"destroy\tx\nreclaim\t{count}\n".encode()))
        for names, count in sorted(reclaim.items(), key=lambda pair: -len(pair[0]))
    ]
    return ScriptedExecutor([
        (says("zfs send"), scripted_result(f"size\t{size}\n".encode())), (says("freeing"), scripted_result(closer.encode())),
        (says("compression"), scripted_result(f"{SOURCE.path}\t{packs}\n".encode())), *destroys,
    ])  # fmt: skip


def checked(seen: ZfsSurvey, used: ScriptedExecutor, requested: RunRequest = ASKED, **options: Any) -> Plan | Refusal:
    decided = plan(job(**options), seen, requested)
    assert isinstance(decided, Plan), decided
    assert implements(ENGINE, SpaceChecker)
    return ENGINE.check_space(job(**options), seen, decided, requested, used)


def test_what_surely_does_not_fit_is_refused_with_what_could_go() -> None:
    used = reader(3 * GIB, room(GIB), frees={"o": 2 * GIB, "o,a": 3 * GIB})
    told = checked(near(), used)
    assert isinstance(told, Refusal)
    assert (
        told.why
        == "the target has not enough space: 3.0 GiB are to be sent, and 1.0 GiB are free in vault/copies/photos"
    )
    assert told.evidence[1:] == (
        "the oldest 1 snapshot of the copy could go, @o; that frees 2.0 GiB",
        "zfs destroy -r vault/copies/photos@o",
    )
    assert told.hint == (
        "let these snapshots go by that line; or give the target's pool more disks; "
        "where it is known to fit: poolferry run photos --allow target-room"
    )
    assert told.guard == GUARD
    assert all(not each.effect for each in used.requested), "a dry destroy destroys nothing"


@pytest.mark.parametrize(("eve", "ann", "fits"), [(3, 1, True), (3, 3, True), (9, 9, False)])
def test_whatever_fits_without_the_largest_is_sent(eve: int, ann: int, fits: bool) -> None:
    """An owner who fills her dataset keeps no others from being copied."""
    both = [dataset("", A, B, used=9 * GIB), dataset("ann", A, B), dataset("eve", A, B)]
    old = [dataset("", A, B), dataset("ann", A), dataset("eve", A)]
    seen = world(side(SOURCE, *both), side(COPY, *old, available=GIB))
    sizes = f"size\t{ann * GIB // 4}\nsize\t{eve * GIB // 2}\n".encode()
    used = ScriptedExecutor([
        (says("zfs send"), scripted_result(sizes)), (says("freeing"), scripted_result(room(GIB, more="").encode())),
        (says("compression"), scripted_result(f"{SOURCE.path}/ann\tlz4\n{SOURCE.path}/eve\tlz4\n".encode())),
    ])  # fmt: skip
    told = checked(seen, used)
    if not fits:
        assert isinstance(told, Refusal)
        return
    assert isinstance(told, Plan)
    sent = [step for step in told.steps if step.copies]
    assert [step.worker for step in sent] == [f"{COPY.path}/ann"]
    assert [step.expected for step in sent] == [ann * GIB // 4]
    (refusal,) = told.refusals
    assert refusal.why.startswith(f"{SOURCE.path}/eve does not fit on the target beside the others")
    assert (refusal.guard, "not enough space" in refusal.evidence[0]) == (GUARD, True)
    assert "drop" not in " ".join(step.action for step in told.steps if "eve" in str(step.work))


def test_what_waits_for_a_dataset_that_is_left_out_leaves_out_no_other() -> None:
    """An owner of a new dataset with many below it keeps no others from being copied."""
    many = ("eve", *(f"eve/{n}" for n in range(6)))
    new = [dataset(name, A, B) for name in many] + [dataset("clone", A, B, origin=f"{SOURCE.path}/eve@a")]
    seen = world(
        side(SOURCE, dataset("", A, B, used=9 * GIB), dataset("ann", A, B), *new),
        side(COPY, dataset("", A, B), dataset("ann", A), available=GIB),
    )
    decided = plan(job(), seen, ASKED)
    assert isinstance(decided, Plan)
    sizes = {f"{COPY.path}/ann": GIB // 2, f"{COPY.path}/eve": 2 * GIB}
    sized = replace(
        decided,
        stages=tuple(
            tuple(replace(step, expected=Bytes(sizes.get(step.worker, GIB // 8))) for step in stage)
            for stage in decided.stages
        ),
    )
    used = ScriptedExecutor([
        (says("freeing"), scripted_result(room(GIB, more="").encode())),
        (says("compression"), scripted_result("".join(f"{SOURCE.path}/{name}\tlz4\n" for name in ("ann", "clone", *many)).encode())),
    ])  # fmt: skip
    assert implements(ENGINE, SpaceChecker)
    told = ENGINE.check_space(job(), seen, sized, ASKED, used)
    assert isinstance(told, Plan), told
    assert [step.worker for step in told.steps if step.copies] == [f"{COPY.path}/ann"]
    assert told.refusals[0].why.startswith(f"{SOURCE.path}/eve does not fit")


def test_a_disk_is_attached_for_it() -> None:
    placed = replace(job(), target=Place(name="red", location=Location(path=COPY.path), disk="red"))
    seen = near()
    decided = plan(placed, seen, ASKED)
    assert isinstance(decided, Plan)
    told = ENGINE.check_space(placed, seen, decided, ASKED, reader(3 * GIB, room(GIB), frees={"o,a": 2 * GIB, "o": 9}))
    assert isinstance(told, Refusal)
    assert "@o to @a; that frees 2.0 GiB" in told.evidence[1]
    assert "between `poolferry disks attach red` and `poolferry disks eject red`; or enroll a larger disk" in told.hint


@pytest.mark.parametrize(
    ("snapshots", "frees", "says"),
    [
        (SNAPSHOTS, {"o,a": 5}, "the oldest 2 snapshots of the copy could go, @o to @a; that frees 5 B"),
        (f"{COPY.path}@b\t3\t3000\n", {}, "the copy holds no snapshots but the newest"),
        ("", {}, ""),
    ],
)
def test_where_nothing_helps_a_larger_target_does(snapshots: str, frees: dict[str, int], says: str) -> None:
    told = checked(near(), reader(3 * GIB, room(GIB, more=snapshots), frees=frees or {"none": 0}))
    assert isinstance(told, Refusal)
    assert " ".join(told.evidence[1:]).startswith(says)
    assert bool(told.evidence[1:]) is bool(says), "of a copy that is not there yet there is nothing to tell"
    assert told.hint.startswith("give the target's pool more disks, or send less")


def test_what_something_holds_is_named_without_a_size() -> None:
    used = reader(3 * GIB, room(GIB))
    held = ScriptedExecutor(
        [(says("-nvpr"), scripted_result(exits=(1,), words="cannot destroy: dataset is busy")), *used._script]
    )
    told = checked(near(), held)
    assert isinstance(told, Refusal)
    assert "zfs does not say what that frees" in told.evidence[1]
    assert told.hint.startswith("give the target's pool more disks")


def test_what_keep_does_not_keep_goes_first() -> None:
    def retain(dated: tuple[tuple[str, datetime], ...]) -> frozenset[str]:
        return frozenset(name for name, _ in dated if name in "ob")

    requested = RunRequest(now=NOW, notes="/notes", retain=retain)
    told = checked(near(), reader(3 * GIB, room(GIB), frees={"a": 4 * GIB}), requested)
    assert isinstance(told, Refusal)
    assert told.evidence[1] == "1 snapshot of the copy, which [keep] does not keep, could go, @a; that frees 4.0 GiB"
    told = checked(near(), reader(9 * GIB, room(GIB), frees={"a": GIB, "o": GIB, "o,a": 2 * GIB}), requested)
    assert isinstance(told, Refusal)
    assert told.evidence[1].startswith("the oldest 2 snapshots"), "what [keep] frees is not enough"


@pytest.mark.parametrize(
    ("closer", "packs"),
    [
        (room(GIB), "off"),  # the source does not compress, and the target does
        (room(GIB, dedup="on"), "lz4"),
        (room(3 * GIB - 1), "lz4"),  # an estimate is no promise
    ],
)
def test_what_may_fit_is_warned_of(closer: str, packs: str) -> None:
    told = checked(near(), reader(3 * GIB, closer, packs=packs))
    assert isinstance(told, Plan)
    (warning,) = told.warnings
    assert warning.startswith("3.0 GiB are to be sent, and ")
    assert warning.endswith("are free in vault/copies/photos: it fits only if the target stores it in less")


def test_what_comes_compressed_or_raw_stays_as_it_is() -> None:
    assert isinstance(checked(near(), reader(3 * GIB, room(GIB, compression="off"), packs="off")), Refusal)
    sealed = world(
        side(SOURCE, dataset("", A, B, C, used=8 * GIB, encrypted=True)),
        side(COPY, dataset("", A, B, encrypted=True, flags=SendFlags(raw=True)), available=GIB),
    )
    assert isinstance(checked(sealed, reader(3 * GIB, room(GIB), packs="off")), Refusal)


def test_a_plan_that_frees_room_itself_is_not_refused() -> None:
    parted = near(written=5)
    told = checked(parted, reader(3 * GIB, room(GIB)), may_destroy=("rollback",))
    assert isinstance(told, Plan)
    assert told.warnings


def test_the_rest_of_a_cut_send_is_weighed_by_its_token() -> None:
    token = parse_token(LATER)
    assert token is not None
    seen = near()
    base = replace(A, guid=token.from_guid or 0)
    wanted = replace(B, guid=token.to_guid)
    seen = replace(
        seen, source=side(SOURCE, dataset("", base, wanted, used=8 * GIB)),
        target=side(COPY, dataset("", base, token=LATER, partial=True), available=GIB), tokens={LATER: token},
    )  # fmt: skip
    assert isinstance(checked(seen, reader(3 * GIB, room(GIB))), Refusal)
    unknown = replace(seen, tokens={LATER: None})
    assert isinstance(checked(unknown, reader(3 * GIB, room(GIB))), Plan), "it is thrown away, which frees room"


@pytest.mark.parametrize(
    ("seen", "looks"),
    [
        (first(17 * GIB), 0),  # twice what the source holds
        (first(9 * GIB), 1),
        (near(9 * GIB), 0),  # for an increment
        (replace(near(), target=replace(near().target, available=None)), 0),
        (near(2 * GIB), 2),  # more is being freed
    ],
)
def test_what_fits_costs_no_more_than_it_must(seen: ZfsSurvey, looks: int) -> None:
    used = reader(3 * GIB, room(2 * GIB, freeing=GIB))
    told = checked(seen, used)
    assert isinstance(told, Plan)
    assert told.warnings == ()
    assert len(used.requested) == looks


def test_it_may_pass_once() -> None:
    requested = RunRequest(now=NOW, notes="/notes", allowed=frozenset({GUARD}))
    used = reader(3 * GIB, room(GIB))
    assert isinstance(checked(near(), used, requested), Plan)
    assert used.requested == []


@pytest.mark.parametrize(
    "result",
    [
        scripted_result(exits=(1,)),
        scripted_result(b"odd\n"),
        PipelineResult(exits=(None,), stopped=StopReason.TIMED_OUT),
    ],
)
def test_a_look_that_fails_hinders_nothing(result: PipelineResult) -> None:
    used = reader(3 * GIB, room(GIB))
    told = checked(near(), ScriptedExecutor([(says("freeing"), result), *used._script]))
    assert isinstance(told, Plan)
    assert told.warnings == ()


def test_a_stop_is_no_failed_look() -> None:
    stopped = PipelineResult(exits=(None,), stopped=StopReason.STOPPED)
    for word in ("freeing", "-nvpr"):
        with pytest.raises(Exception, match="asked to stop"):
            checked(near(), ScriptedExecutor([(says(word), stopped), *reader(3 * GIB, room(GIB))._script]))


def test_a_first_copy_looks_at_what_is_above() -> None:
    target = side(COPY, available=GIB, above=frozenset({"vault", "vault/copies"}))
    used = reader(3 * GIB, room(GIB, more=""))
    told = checked(world(side(SOURCE, dataset("", A, used=9 * GIB)), target), used)
    assert isinstance(told, Refusal)
    assert "free in vault/copies" in told.why
    (closer,) = (each for each in used.requested if "freeing" in str(each))
    assert closer.stages[0].argv[-3:] == ("vault", "vault/copies", COPY.path)


def test_only_names_that_are_newest_nowhere_may_go() -> None:
    seen = parse_space(room(7, freeing=2).encode(), COPY.path)
    assert seen.free == 9
    assert [(one.name, one.newest) for one in seen.snapshots] == [("o", False), ("a", False), ("b", True), ("c", True)]
