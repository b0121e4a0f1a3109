"""Looks at both sides: how many programs it takes, what each failure is, and that many snapshots cost little."""

import time
import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.errors import (
    BaseGone,
    HostUnreachable,
    OrchestratorError,
    OutsideError,
    PermissionDenied,
    ProgramMissing,
    UnreadableAnswer,
    VerificationFailed,
)
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline, Plan, Step
from orchestrator.domain.source_identity import SOURCE_IDENTITY
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs import ENGINE
from orchestrator.engines.zfs.model import (
    ActionPlan,
    Dataset,
    FullSend,
    IncrementalSend,
    ReceiveProcess,
    SnapshotPresent,
)
from orchestrator.engines.zfs.plan import steps
from orchestrator.engines.zfs.plan.hold_names import ReplicationTargetId, hold_bookmark_name, replication_target_id
from orchestrator.engines.zfs.survey.confirm import confirm_snapshots, estimate_sizes
from orchestrator.engines.zfs.survey.survey import LIMIT, newest_is_enough, survey, survey_points
from orchestrator.process.pipeline import PipelineResult
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.zfs.sides import (
    ASKED,
    COPY,
    FLAGS,
    HOST,
    LATER,
    MARK,
    NOW,
    SOURCE,
    A,
    B,
    C,
    dataset,
    job,
    side,
    world,
)  # fmt: skip
from tests.engines.zfs.survey_text import HEAD, rows

FAR_COPY = Location(path=COPY.path, host=HOST)
POOL = 10706450245829482859
HERE = f"{HEAD}=datasets\n{rows(SOURCE.path)}=snapshots\n{SOURCE.path}@a\t1\t2\n=end\n"
THERE = f"{HEAD}=datasets\n{rows(COPY.path)}=snapshots\n{COPY.path}@a\t1\t2\n=end\n"
NOWHERE = f"{HEAD}=datasets\n=absent\n=above\nvault\t9\toff\n=end\n"


def holds(word: str) -> Any:
    return lambda pipeline: word in pipeline.stages[0].argv or word in str(pipeline)


def reader(
    source: str | PipelineResult = HERE, target: str | PipelineResult = THERE, *more: tuple[Any, PipelineResult]
) -> ScriptedExecutor:
    """Answers the two looks, and `more` before them."""
    both = [told if isinstance(told, PipelineResult) else scripted_result(told.encode()) for told in (source, target)]
    return ScriptedExecutor([*more, (holds(SOURCE.path), both[0]), (holds(COPY.path), both[1])])


def test_two_programs_are_all_it_takes() -> None:
    requested = reader()
    seen = survey(job(), ASKED, requested)
    assert len(requested.requested) == 2
    assert seen.source.datasets[""].snapshots == seen.target.datasets[""].snapshots
    assert (seen.tokens, seen.receiving, seen.held, seen.created) == ({}, {}, {}, {})


def test_properties_of_ours_are_asked_for_apart_where_one_may_have_several_lines() -> None:
    """An older gate knows no such question: then what we write ourselves is believed, and nothing else."""
    whole = THERE.replace("waits\t-\t-", "waits\ton\tlocal")
    apart = "\n".join(line for line in whole.splitlines() if "poolferry:" not in line)
    apart = apart.replace("=snapshots", f"=marks\n{COPY.path}\tpoolferry:waits\ton \tlocal\n=snapshots")
    refused = scripted_result(exits=(1,), words=SAID.format("permission denied"))
    for said, target, waits in (
        (scripted_result(apart.encode()), whole, True),
        (refused, whole, True),
        (refused, whole.replace("waits\ton", "waits\tx"), None),
    ):
        requested = reader(HERE, target, (lambda told: COPY.path in words(told) and ":" not in words(told)[5], said))
        if waits is None:
            with pytest.raises(UnreadableAnswer, match="several lines"):
                survey(job(), ASKED, requested)
        else:
            assert survey(job(), ASKED, requested).target.datasets[""].waits is waits


def test_a_source_that_is_not_there_is_looked_for_by_its_guid_and_a_copy_whose_pool_is_away() -> None:
    away = "=here 0 no mbuffer 2.3.9\n=pool 0 ABSENT\n"
    answer = (holds("find-datasets.sh"), scripted_result(b"5\tlake/photos\n=end\n"))
    gone = THERE.partition("=datasets")[0] + "=datasets\n=absent\n=above\nvault\t1\toff\n=end\n"
    for remembered, source, target, places in (
        ({SOURCE_IDENTITY: f"3 5 {SOURCE}"}, away, THERE, ("lake/photos", "")),
        ({SOURCE_IDENTITY: f"3 6 {SOURCE}"}, away, THERE, ("", "")),
        ({SOURCE_IDENTITY: f"3 5 {SOURCE}"}, HERE, THERE, ("lake/photos", "")),  # another has its name
        ({SOURCE_IDENTITY: f"3 5 {SOURCE}x"}, away, THERE, ("", "")),
        ({}, away, THERE, ("", "")),
        ({"copy identity at vault": "3"}, HERE, away, ("", "lake/photos")),
        ({"copy identity at vault": "3"}, HERE, THERE, ("", "")),
        ({"copy identity at vault": ""}, HERE, away, ("", "")),
        ({"copy identity at vault": "3"}, HERE, gone, ("", "lake/photos")),
        ({"copy identity at vault": "3", "target-used": str(COPY)}, HERE, gone, ("", "lake/photos")),
        (
            {"copy identity at vault": "3", "target-used": "vault/other"},
            HERE,
            gone,
            ("", ""),
        ),  # another place was named since
    ):
        seen = survey(job(), replace(ASKED, remembered=remembered), reader(source, target, answer))
        assert (seen.moved.name, seen.moved_copy.name) == places, remembered
    on_a_disk = replace(job(), target=replace(job().target, disk="red"))
    seen = survey(on_a_disk, replace(ASKED, remembered={"copy identity at vault": "3"}), reader(HERE, away, answer))
    assert seen.moved_copy.name == ""
    within = (holds("find-datasets.sh"), scripted_result(b"5\tvault/photos\n=end\n"))
    seen = survey(on_a_disk, replace(ASKED, remembered={"copy identity at vault": "3"}), reader(HERE, gone, within))
    assert seen.moved_copy.name == "vault/photos"


def test_what_a_clone_comes_from_outside_of_the_source_is_asked_for_where_its_copy_shares_nothing_with_it() -> None:
    clone = HERE.replace("origin\t-\t-", "origin\ttank/new@z\t-").replace("@a\t1\t2", "@b\t5\t6")
    assert clone != HERE
    answer = (holds("confirm.sh"), scripted_result(b"tank/new@z\tguid\t1\n"))
    assert survey(job(), ASKED, reader(clone, THERE, answer)).origins == {"tank/new@z": 1}
    refused = (holds("confirm.sh"), scripted_result(exits=(1,), words=SAID.format("permission denied")))
    assert survey(job(), ASKED, reader(clone, THERE, refused)).origins == {}
    assert survey(job(), ASKED, reader(clone.replace("@b\t5", "@b\t1"), THERE)).origins == {}


def words(pipeline: Pipeline) -> tuple[str, ...]:
    """The arguments of the script."""
    return pipeline.stages[0].argv[4:]


def test_each_side_is_asked_only_what_it_is_needed_for() -> None:
    requested = reader()
    allowed = RunRequest(now=NOW, notes="/notes", allowed=frozenset({"aside"}))
    survey(job(catch_up="kept", recursive=False, sudo=True, place=HOST), allowed, requested)
    source, target = (
        next(told for told in requested.requested if place.path in words(told)) for place in (SOURCE, COPY)
    )
    assert (source.stages[0].host, target.stages[0].host) == (None, HOST)
    assert words(source) == (
        "sudo", "tank", "tank/photos", "-d1", "-d0",
        "type,guid,createtxg,origin,encryption,encryptionroot,keystatus,used,checksum,copies,dedup,sync,zoned,poolferry:flags,poolferry:waits",
        "name,guid,createtxg,creation", "snapshot,bookmark", "no", "tank",
    )  # fmt: skip
    assert words(target)[3:5] == ("-d1", "-d0")
    assert words(target)[5].endswith(
        "mounted,readonly,canmount,available,poolferry:flags,poolferry:placeholder,poolferry:waits"
    )
    assert words(target)[6:] == ("name,guid,createtxg", "snapshot", "yes", "vault", "vault/copies")
    requested = reader()
    survey(job(), ASKED, requested)
    for told in requested.requested:
        assert words(told)[0] == "plain"
        assert words(told)[3:5] == ("-r", "-r")


def test_the_newest_snapshots_of_a_copy_come_first_and_all_only_for_a_question() -> None:
    requested = reader()
    survey(job(), ASKED, requested)
    (target,) = (told for told in requested.requested if COPY.path in words(told))
    assert (words(target)[5].split(",")[0], words(target)[7]) == ("prevsnap", "newest")
    diverged = THERE.replace("@a\t1\t2", "@own\t9\t9")
    requested = reader(HERE, diverged)
    survey(job(), ASKED, requested)
    assert [words(told)[7] for told in requested.requested if COPY.path in words(told)] == ["newest", "snapshot"]
    requested = reader()
    survey(job(), ASKED, requested, whole=True)
    assert [words(told)[7] for told in requested.requested if COPY.path in words(told)] == ["snapshot"]


ONE, OTHER = dataset("", A, B), dataset("x", A)


@pytest.mark.parametrize(
    ("source", "target", "enough"),
    [
        ((ONE,), (), True),
        ((ONE,), (dataset("", B),), True),
        ((ONE,), (dataset("", A),), True),
        ((dataset("", B, bookmarks=(MARK,)),), (dataset("", A),), True),
        ((ONE,), (dataset(""),), True),
        ((ONE,), (dataset("", C),), False),
        ((ONE,), (dataset("", B), dataset("gone", C)), True),
        ((ONE,), (dataset("", B, partial=True),), False),
        ((ONE,), (dataset("", partial=True),), True),
        ((ONE, replace(OTHER, origin="tank/photos@a")), (dataset("", B),), False),
        ((ONE, replace(OTHER, origin="tank/photos@a")), (dataset("", B), OTHER), True),
    ],
)
def test_when_the_newest_is_enough(source: tuple[Dataset, ...], target: tuple[Dataset, ...], enough: bool) -> None:
    assert newest_is_enough(side(SOURCE, *source), side(COPY, *target)) is enough


def test_only_a_cut_receive_is_worth_a_look_at_processes() -> None:
    cut = THERE.replace("=snapshots", rows(f"{COPY.path}/x", f"receive_resume_token={LATER}") + "=snapshots")
    said = scripted_result(f"=process 7\nzfs\nreceive\n{COPY.path}/x\n".encode())
    requested = reader(HERE, cut, (holds("=process"), said))
    seen = survey(job(), ASKED, requested)
    assert len(requested.requested) == 3
    assert seen.receiving == {"x": ReceiveProcess(pid=7, ours=False)}
    assert seen.target.datasets["x"].partial
    assert seen.tokens[LATER] is not None
    broken = cut.replace(LATER, "1-0-0-00")
    assert survey(job(), ASKED, reader(HERE, broken, (holds("=process"), said))).tokens == {"1-0-0-00": None}
    unfinished = THERE.replace("=snapshots", rows(f"{COPY.path}/x", "inconsistent=1") + "=snapshots")
    seen = survey(job(), ASKED, reader(HERE, unfinished, (holds("=process"), said)))
    assert (seen.tokens, seen.receiving) == ({}, {"x": ReceiveProcess(pid=7, ours=False)})


def test_our_holds_show_by_the_bookmarks_beside_them() -> None:
    for target_id, held in (
        (replication_target_id(POOL, COPY), ("held", "held_older")),
        (ReplicationTargetId(pool=POOL), ("held_older", "held")),
    ):
        listed = HERE.replace("=end", f"{SOURCE.path}#{hold_bookmark_name(target_id, 1)}\t1\t2\n=end")
        seen = survey(job(), ASKED, reader(listed))
        assert [getattr(seen, name) for name in held] == [{"": ("a",)}, {}]


@pytest.mark.parametrize("gone", [NOWHERE, "=here 0 no mbuffer 2.3.9\n=pool 0 ABSENT\n"])
def test_a_target_that_is_not_there_is_no_failure(gone: str) -> None:
    seen = survey(job(), ASKED, reader(HERE, gone))
    assert seen.target.datasets == {}
    assert seen.target.above == (frozenset({"vault"}) if gone is NOWHERE else frozenset())


SAID = "cannot open 'tank/photos': {}\n"


@pytest.mark.parametrize(
    ("told", "kind", "says"),
    [
        (HERE.replace("=end\n", ""), BaseGone, "changed under the look"),
        (NOWHERE.replace("vault\t9\toff", f"{SOURCE.path}\t9\toff"), BaseGone, "changed under the look"),
        (HEAD.replace("ONLINE", "SUSPENDED"), OutsideError, "the pool tank is suspended"),
        (HEAD.replace("ONLINE", "UNAVAIL"), OutsideError, "the pool tank is unavail"),
        ("", UnreadableAnswer, "cannot be read: the look ended before"),
        (HERE.replace("\tguid\t5", "\tguid\t-"), UnreadableAnswer, "cannot be read: zfs listed too little"),
        (HERE.replace("\tguid\t5", "\tguid\tx"), UnreadableAnswer, "cannot be read"),
        (scripted_result(exits=(1,), words=SAID.format("permission denied")), PermissionDenied, "this user may not"),
        (
            scripted_result(exits=(1,), words=SAID.format("pool I/O is currently suspended")),
            OutsideError,
            "a pool is suspended",
        ),
        (scripted_result(exits=(127,), words="sh: 1: zfs: not found"), ProgramMissing, "a program is not installed"),
        (
            scripted_result(exits=(255,), words="ssh: connect to host backup port 22: Connection refused"),
            HostUnreachable,
            "the host",
        ),
    ],
)
def test_a_side_that_cannot_be_looked_at_is_never_an_empty_one(
    told: str | PipelineResult, kind: type[OrchestratorError], says: str
) -> None:
    with pytest.raises(kind, match=says) as failure:
        survey(job(), ASKED, reader(told))
    assert failure.value.hint
    with pytest.raises(OrchestratorError):
        survey(
            job(),
            ASKED,
            reader(HERE, told if isinstance(told, PipelineResult) else told.replace(SOURCE.path, COPY.path)),
        )


@pytest.mark.slow
def test_a_hundred_thousand_snapshots_cost_little() -> None:
    """No time is judged but a wild one: a second is usual here, a quadratic way would take minutes."""
    lines = "".join(
        f"{SOURCE.path}/d{number}@autosnap_{day}\t{number * 1000 + day}\t{day}\n"
        for number in range(1000)
        for day in range(100)
    )
    told = HEAD + "=datasets\n" + rows(SOURCE.path) + "".join(rows(f"{SOURCE.path}/d{n}") for n in range(1000))
    requested = reader(f"{told}=snapshots\n{lines}=end\n")
    tracemalloc.start()
    begun = time.monotonic()
    seen = survey(job(), ASKED, requested)
    took, (_, most) = time.monotonic() - begun, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(len(one.snapshots) for one in seen.source.datasets.values()) == 100_000
    assert took < 60
    assert most < 150 << 20


def test_points_are_the_roots_snapshots() -> None:
    requested = ScriptedExecutor([(holds("creation"), scripted_result(f"{COPY.path}@a b\t1700000000\n".encode()))])
    (point,) = survey_points(job(), requested)
    assert (point.name, point.tree, point.manifest) == ("a b", Location(path=f"{COPY.path}@a b"), None)
    assert ENGINE.points(job(), ScriptedExecutor([(holds("creation"), scripted_result())])) == ()


def confirmation(name: str, guid: int, root: Location = COPY) -> SnapshotPresent:
    return SnapshotPresent(dataset=Location(path=f"{root.path}{name}", host=root.host), guid=guid, snapshot=f"s{guid}")


LISTED = f"{COPY.path}@s1\t1\t4\n{COPY.path}@s2\t2\t5\n{COPY.path}/x@s3\t3\t6\n"


TOLD = (
    f"{COPY.path}\tprevsnap\t{COPY.path}@s2\n{COPY.path}\tguid\t9\n{COPY.path}@s1\tguid\t1\n{COPY.path}@s2\tguid\t2\n"
    f"{COPY.path}/x\tprevsnap\t{COPY.path}/x@s3\n{COPY.path}/x@s3\tguid\t3\n{COPY.path}/x@s3\tprevsnap\t-\n"
)


def confirm(
    *confirmations: SnapshotPresent, uncertain: tuple[SnapshotPresent, ...] = (), told: str = TOLD, listed: str = LISTED
) -> ScriptedExecutor:
    requested = ScriptedExecutor(
        [(holds("prevsnap"), scripted_result(told.encode())), (lambda _: True, scripted_result(listed.encode()))]
    )
    confirm_snapshots(confirmations, requested, uncertain=uncertain)
    return requested


def test_one_look_a_host_proves_all() -> None:
    requested = confirm(confirmation("", 1), confirmation("", 2), confirmation("/x", 3), confirmation("", 2, FAR_COPY))
    names = (COPY.path, f"{COPY.path}@s1", f"{COPY.path}@s2", f"{COPY.path}/x", f"{COPY.path}/x@s3")
    assert [words(told) for told in requested.requested] == [names, (COPY.path, f"{COPY.path}@s2")]
    assert [told.stages[0].host for told in requested.requested] == [None, HOST]
    assert confirm().requested == []


def test_what_is_not_found_by_its_name_is_looked_for_by_its_guid() -> None:
    """A stream that was resumed may bring its snapshot under the name that it had when the stream was begun."""
    renamed = SnapshotPresent(dataset=COPY, guid=2, snapshot="new name")
    requested = confirm(confirmation("/x", 3), renamed)
    assert [words(told) for told in requested.requested[1:]] == [(COPY.path,)]
    with pytest.raises(VerificationFailed, match="has s2 after s1, from elsewhere"):
        confirm(confirmation("", 1))
    with pytest.raises(VerificationFailed, match="has no snapshot s2 with guid 2"):
        confirm(
            confirmation("", 2),
            told=TOLD.replace("s2\tguid\t2", "s2\tguid\t22"),
            listed=LISTED.replace("s2\t2", "s2\t22"),
        )


def test_what_a_killed_receive_received_all_the_same_is_not_from_elsewhere() -> None:
    """By its guid: a name may be anybody's."""
    confirm(confirmation("", 1), uncertain=(confirmation("", 2),))
    for other in (confirmation("", 9), confirmation("/x", 2), confirmation("", 2, FAR_COPY)):
        with pytest.raises(VerificationFailed, match="has s2 after s1, from elsewhere"):
            confirm(confirmation("", 1), uncertain=(other,))


@pytest.mark.parametrize(
    ("confirmations", "says"),
    [
        ((confirmation("", 7),), r"1 copy not as expected: vault/copies/photos has no snapshot s7 with guid 7$"),
        (
            (confirmation("/y", 3), confirmation("/x", 4)),
            "2 copies not as expected: .*/y has no snapshot s3.*; .*/x has no snapshot s4",
        ),
        ((confirmation("", 1),), "vault/copies/photos has s2 after s1, from elsewhere"),
        (tuple(confirmation(f"/z{number}", 1) for number in range(7)), "and 2 more$"),
    ],
)
def test_what_did_not_arrive_is_named(confirmations: tuple[SnapshotPresent, ...], says: str) -> None:
    with pytest.raises(VerificationFailed, match=says):
        confirm(*confirmations)


def test_a_listing_that_fails_proves_nothing() -> None:
    gone = scripted_result(exits=(1,), words=f"cannot open '{COPY.path}': dataset does not exist")
    with pytest.raises(BaseGone):
        confirm_snapshots((confirmation("", 1),), ScriptedExecutor([(lambda _: True, gone)]))


@pytest.mark.parametrize("listed", ["nonsense\n", f"{COPY.path}@s1\tx\t4\n"])
def test_a_listing_that_cannot_be_read_proves_nothing(listed: str) -> None:
    with pytest.raises(UnreadableAnswer, match="cannot be read"):
        confirm(confirmation("", 1), listed=listed)
    with pytest.raises(UnreadableAnswer, match="cannot be read"):
        survey_points(job(), ScriptedExecutor([(lambda _: True, scripted_result(listed.replace("\t4", "").encode()))]))


def sends(number: int) -> Plan:
    actions = tuple(
        IncrementalSend(dataset=f"d{n}", base=A, snapshot=B, between=False, flags=FLAGS, why="") for n in range(number)
    )
    first = FullSend(dataset="", snapshot=A, flags=FLAGS, why="")
    stages = steps.build_steps(job(), world(), ActionPlan(stages=((first,), actions)), ASKED)
    return Plan(summary="", stages=stages)


def test_sizes_are_asked_in_one_program_for_the_first_fifty() -> None:
    told = "".join(f"size\t{number}\n" for number in (*range(100, 120), "-", *range(121, 150)))
    requested = ScriptedExecutor([(lambda _: True, scripted_result(told.encode()))])
    weighed = estimate_sizes(sends(60), requested)
    assert [len(words(told)) for told in requested.requested] == [4 * 50]
    expected = [step.expected for step in weighed.steps]
    assert expected == [*range(100, 120), None, *range(121, 150), *[None] * 11]
    assert [_without(step) for step in weighed.steps] == [_without(step) for step in sends(60).steps]


def _without(step: Step) -> tuple[Any, ...]:
    return step.action, step.work, step.confirmation, step.worker


def test_nothing_to_weigh_asks_nothing() -> None:
    requested = ScriptedExecutor([])
    plan = Plan(summary="", stages=())
    assert estimate_sizes(plan, requested) == plan


def test_a_pool_that_never_answers_has_its_time() -> None:
    """Every look has a limit of time: Scripted is asked for it."""
    waits: list[tuple[int, float | None]] = []

    class Timed(ScriptedExecutor):
        def read(self, pipeline: Pipeline, *, limit: int = 0, timeout: Any = None) -> PipelineResult:
            waits.append((limit, timeout))
            return super().read(pipeline)

    told = Timed(
        [(holds(SOURCE.path), scripted_result(HERE.encode())), (holds(COPY.path), scripted_result(THERE.encode()))]
    )
    survey(job(), ASKED, told)
    assert waits == [(LIMIT, 600.0)] * 2
