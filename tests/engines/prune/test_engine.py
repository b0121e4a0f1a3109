"""The prune engine: its look, its steps, and its script against a zfs that answers what it is told."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.arrival import ArrivalRules, PointRemoval, ReceivedPoint
from orchestrator.domain.errors import (
    LookAgain,
    NotNow,
    OrchestratorError,
    PermissionDenied,
    ProgramMissing,
    SourceMissing,
    SourceRenamed,
    Stalled,
    Stopped,
    Unexplained,
    UnreadableAnswer,
    VerificationFailed,
)
from orchestrator.domain.job import Job, KeepRules
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Effect, NothingToDo, Pipeline, Plan, PointsRemoval, Refusal, single_command
from orchestrator.domain.source_identity import SOURCE_IDENTITY
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.contract.arrivals import ArrivalPruner
from orchestrator.engines.contract.engine import Engine, StageResults, implements
from orchestrator.engines.prune import ENGINE
from orchestrator.engines.prune.commands import destroy_command
from orchestrator.engines.prune.model import SnapshotsGone
from orchestrator.engines.prune.options import options_of
from orchestrator.engines.prune.survey import survey
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed, StopReason, pipeline_failure
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.prune.builders import GUID, NOW, ROOT, job, looks, request


def all_go(points: tuple[ReceivedPoint, ...]) -> tuple[PointRemoval, ...]:
    return tuple(PointRemoval(point=each, arrived=NOW, reason="beyond daily 2") for each in points)


def test_its_look_knows_what_is_needed() -> None:
    engine: Engine = ENGINE
    assert implements(engine, ArrivalPruner)
    world = ENGINE.survey(job(), request(), looks())
    assert [(each.series, each.name, each.identity, each.order, each.brought, each.holds) for each in world.points][:2] == [
        ("vault/in/laptop/a", "one", "11", 100, 5, 50), ("vault/in/laptop/a", "two", "12", 101, 6, 60),
    ]  # fmt: skip
    assert [each.needed for each in world.points] == [
        "",
        "a hold keeps it (`zfs holds` names it)",
        "a clone needs it: vault/clone",
    ]
    assert ENGINE.received_points(world) == world.points
    assert (ENGINE.identity(world), ENGINE.identity_of_kit("{}"), ENGINE.waiting(world)) == (f"{GUID} 0 {ROOT}", "", ())
    assert ENGINE.points(job(), looks())[0].name == ROOT.path
    assert "3 snapshots of 2 datasets" in ENGINE.advise(job(), looks())[0].text
    failed = ENGINE.advise(job(), looks(b"", exits=(1,), words="cannot open 'vault/in/laptop': dataset does not exist"))
    assert not failed[0].good


@pytest.mark.parametrize(
    "said",
    [
        b"", b"now\n", b"1\n", b"1\nx\n", b"1\n7\nvault/in/laptop/a@one\t11\n", b"1\n7\nvault/other@one\t11\t1\t1\t1\t1\t0\t-\n",
        b"1\n7\nvault/in/laptop@a%b\t11\t1\t1\t1\t1\t0\t-\n", b"1\n7\nvault/in/laptop@a\t-x\t1\t1\t1\t1\t0\t-\n",
    ],
)  # fmt: skip
def test_an_answer_that_is_none_prunes_nothing(said: bytes) -> None:
    with pytest.raises(UnreadableAnswer):
        ENGINE.survey(job(), request(), looks(said))


def test_a_dataset_with_another_name_is_known_by_its_guid_and_all_that_names_it_is_said() -> None:
    absent = scripted_result(exits=(1,), words="cannot open 'vault/in/laptop': dataset does not exist")
    answers = [
        (lambda asked: "find-datasets.sh" in asked.stages[0].argv, scripted_result(b"=above\tvault/in\n5\tvault/in/old\n=end\n")),
        (lambda _: True, absent),
    ]  # fmt: skip
    known = replace(request(), remembered={SOURCE_IDENTITY: f"{GUID} 0 {ROOT}"})
    with pytest.raises(SourceRenamed) as raised:
        ENGINE.survey(job(), known, ScriptedExecutor(answers))
    assert raised.value.why == "the source vault/in/laptop is called vault/in/old now, by its guid"
    assert raised.value.hint == (
        'to go on under that name: write source = "vault/in/old" into in.toml, the same into `receives` of its gate, and into targets.toml '
        "of the machines that send here; or give the former one back: zfs rename vault/in/old vault/in/laptop"
    )
    with pytest.raises(SourceMissing) as unknown:
        ENGINE.survey(job(), request(), ScriptedExecutor(answers))
    assert type(unknown.value) is SourceMissing
    folder = replace(job(), source=Location(path="/backup/laptop"))
    with pytest.raises(SourceMissing, match="the folder is not there"):
        ENGINE.survey(folder, known, looks(b"", exits=(1,), words="find: ‘/backup/laptop’: No such file or directory"))


def test_the_plan_destroys_by_name_and_guid_and_nothing_else() -> None:
    world = ENGINE.survey(job(), request(), looks())
    plan = ENGINE.plan(job(), world, request(all_go))
    assert isinstance(plan, Plan)
    assert [step.action for step in plan.steps] == [
        "remove 2 snapshots of vault/in/laptop/a, come 2026-11-20 to 2026-11-20",
        "remove 1 snapshot of vault/in/laptop/b, come 2026-11-20",
    ]
    assert all(step.effect is Effect.DESTROYS and "30 d" in step.why for step in plan.steps)
    assert isinstance(work := plan.steps[0].work, Pipeline)
    assert work.stages[0].argv[4:] == ("vault/in/laptop/a@one", "11", "vault/in/laptop/a@two", "12")
    assert "gone below vault/in/laptop: 2 snapshots" in str(plan.steps[0].confirmation)
    many = tuple(replace(world.points[0], name=f"s{n}", identity=str(n)) for n in range(450))
    parts = ENGINE.plan(job(), replace(world, points=many), request(all_go))
    assert isinstance(parts, Plan)
    assert [len(stage) for stage in parts.stages] == [3]
    assert isinstance(ENGINE.plan(job(), world, request(lambda _: ())), NothingToDo)
    refusal = Refusal(why="no", evidence=(), hint="look")
    assert ENGINE.plan(job(), world, request(lambda _: refusal)) is refusal
    without = ENGINE.plan(job(keep=KeepRules()), world, request(all_go))
    assert isinstance(without, Refusal)
    assert "[keep]" in without.hint
    for name in ("a,b", "a%b", "a@b", ""):
        with pytest.raises(ValueError, match="no name of one snapshot"):
            destroy_command([replace(world.points[0], name=name)])


def test_what_was_to_go_and_is_there_is_said() -> None:
    gone = SnapshotsGone(root=ROOT, guids=frozenset({("vault/in/laptop/a", "9")}))
    ENGINE.confirm(StageResults(confirmations=(gone,)), looks())
    there = SnapshotsGone(root=ROOT, guids=frozenset({("vault/in/laptop/a", "11")}))
    with pytest.raises(VerificationFailed, match="a@one is still there"):
        ENGINE.confirm(StageResults(confirmations=(gone, there)), reader := looks())
    assert len(reader.requested) == 1


def test_only_a_dataset_of_this_machine_is_pruned() -> None:
    far = Location(path="vault", host=Host(name="server", user="root"))
    assert [key for key, *_ in ENGINE.mistakes(ArrivalRules(), SourceTree(root=far), far, job().verify)] == ["source"]
    assert list(ENGINE.mistakes(ArrivalRules(), SourceTree(root=ROOT), ROOT, job().verify)) == []
    assert ENGINE.lands(ArrivalRules(), ROOT, ROOT) == ROOT
    assert ENGINE.arrival_rules(job()) == ArrivalRules()
    with pytest.raises(TypeError):
        options_of(job(options=object()))


def failed(code: int, words: str, stopped: StopReason | None = None) -> PipelineFailed:
    pipeline = single_command("zfs", "destroy", effect=Effect.DESTROYS)
    return pipeline_failure(pipeline, replace(scripted_result(exits=(code,), words=words), stopped=stopped))


@pytest.mark.parametrize(
    ("code", "words", "error"),
    [
        (75, "vault/a@x stays: dataset is busy", NotNow), (127, "sh: zfs: not found", ProgramMissing),
        (1, "vault/a@x is not the snapshot with the guid 1: 2", LookAgain),
        (1, "cannot open 'vault': dataset does not exist", SourceMissing), (1, "find: '/x': No such file or directory", SourceMissing),
        (1, "cannot destroy snapshots: permission denied", PermissionDenied), (1, "Read-only file system", PermissionDenied),
        (1, "who knows", Unexplained), (1, "", Unexplained),
    ],
)  # fmt: skip
def test_each_failure_has_its_meaning(code: int, words: str, error: type[OrchestratorError]) -> None:
    found = ENGINE.explain(failed(code, words))
    assert type(found) is error
    assert found.hint or error is LookAgain


def test_an_end_of_ours_is_no_failure_of_zfs() -> None:
    for stopped, error in (
        (StopReason.STALLED, Stalled),
        (StopReason.FLOODED, UnreadableAnswer),
        (StopReason.STOPPED, Stopped),
    ):
        assert type(ENGINE.explain(failed(1, "", stopped))) is error


ZFS = """#!/bin/sh
case $1 in
  get) grep -q "^$6 " "$THERE" && grep "^$6 " "$THERE" | cut -d " " -f 2 || { echo "cannot open '$6': dataset does not exist" >&2; exit 1; } ;;
  destroy) echo "$*" >> "$THERE.said"
    case $2 in
      *held) echo "cannot destroy snapshot $2: it's being held. Run 'zfs holds -r $2' to see holders." >&2; exit 1 ;;
      *gone) echo "could not find any snapshots to destroy; check snapshot names." >&2; exit 1 ;;
      *broken) echo "cannot destroy '$2': I/O error" >&2; exit 1 ;;
    esac ;;
esac
"""


@pytest.mark.parametrize(
    ("words", "code", "destroyed"),
    [
        (("v/a@one", "1", "v/a@two", "2"), 0, ["v/a@one", "v/a@two"]),
        (("v/a@none", "7", "v/a@one", "1"), 0, ["v/a@one"]),
        (("v/a@one", "2", "v/a@two", "2"), 1, []),  # another snapshot of that name
        (("v/a@held", "3", "v/a@one", "1"), 75, ["v/a@held", "v/a@one"]),
        (("v/a@gone", "4", "v/a@one", "1"), 0, ["v/a@gone", "v/a@one"]),
        (("v/a@broken", "5", "v/a@one", "1"), 1, ["v/a@broken"]),
        (("v/a", "6"), 1, []), (("v/a@one,two", "1"), 1, []), (("v/a@one%two", "1"), 1, []), (("v/a@", "1"), 1, []),
    ],
)  # fmt: skip
def test_the_script_destroys_only_what_has_the_guid(
    tmp_path: Path, words: tuple[str, ...], code: int, destroyed: list[str]
) -> None:
    there = tmp_path / "there"
    there.write_text(
        "v/a@one 1\nv/a@two 2\nv/a@held 3\nv/a@gone 4\nv/a@broken 5\nv/a 6\nv/a@one,two 1\nv/a@one%two 1\nv/a@ 1\n"
    )
    (tmp_path / "zfs").write_text(ZFS)
    (tmp_path / "zfs").chmod(0o755)
    fine = ReceivedPoint(series="v/a", name="x", identity="1", order=1, dated=NOW)
    argv = [*destroy_command([fine]).argv[:4], *words]
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "THERE": str(there)}
    ended = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)
    said = tmp_path / "there.said"
    assert ended.returncode == code, ended
    assert (
        [line.removeprefix("destroy ") for line in said.read_text().splitlines()] if said.exists() else destroyed == []
    )


FOLDER = Location(path="/backup/laptop")
FOUND = (
    b"1795187460\x0034 5.5 d points/2026-11-01T000000Z\x0033 6.5 d points/2026-99-01T000000Z\x0035 7 f points/2026-11-01T000000Z.manifest.gz\0"
    b"36 4.5 d points/mine\x0037 4.5 l points/2026-11-02T000000Z\x0038 4.5 d points/2026-11-03T000000Z\0"
)


def folder_job() -> Job:
    return job(source=FOLDER)


def test_points_of_a_folder_are_judged_in_the_order_of_their_names_here() -> None:
    world = ENGINE.survey(folder_job(), request(), looks(FOUND))
    assert [(each.name, each.identity, each.mark) for each in world.points] == [
        ("2026-11-03T000000Z", "38", "2026-11-03T000000Z.38"), ("2026-11-01T000000Z", "34", "2026-11-01T000000Z.34"),
        ("2026-99-01T000000Z", "33", "2026-99-01T000000Z.33"),
    ]  # fmt: skip
    assert world.points[2].dated.year == 9000  # a name that is no time is of no time that may be
    assert not world.trash
    assert "3 points" in ENGINE.advise(folder_job(), looks(FOUND))[0].text
    for said in (b"", b"x\0", b"1\0x 5 d points/2026-11-01T000000Z\0", b"1\0x\0"):
        with pytest.raises(UnreadableAnswer):
            ENGINE.survey(folder_job(), request(), looks(said))


def test_points_of_a_folder_are_removed_some_at_a_time_by_their_inodes() -> None:
    world = ENGINE.survey(folder_job(), request(), looks(FOUND))
    many = tuple(replace(world.points[0], name=f"s{n}", identity=str(n)) for n in range(25))
    plan = ENGINE.plan(folder_job(), replace(world, points=many, trash=True), request(all_go))
    assert isinstance(plan, Plan)
    assert [str(step.effect.name) for step in plan.steps] == ["DESTROYS"] * 4
    works = [step.work for step in plan.steps]
    assert [len(work.points) for work in works if isinstance(work, PointsRemoval)] == [0, 10, 10, 5]
    without_trash = ENGINE.plan(folder_job(), replace(world, points=many), request(all_go))
    assert isinstance(without_trash, Plan)
    assert len(without_trash.stages) == 3
    assert isinstance(ENGINE.plan(folder_job(), world, request(lambda _: ())), NothingToDo)
    (cut,) = ENGINE.plan(folder_job(), replace(world, trash=True), request(lambda _: ())).stages  # type: ignore[union-attr]
    assert "nothing else" in str(cut[0].work)
    gone = SnapshotsGone(root=FOLDER, guids=frozenset({(FOLDER.path, "38")}))
    with pytest.raises(VerificationFailed, match="points/2026-11-03T000000Z is still there") as raised:
        ENGINE.confirm(StageResults(confirmations=(gone,)), looks(FOUND))
    assert "ls -l /backup/laptop/points" in raised.value.hint


@pytest.mark.parametrize("name", ["plain", "in [brackets]*?", "-dash", "line\nend"])
def test_points_are_found_in_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    """A name that find read as a pattern hid all points: none was pruned, and one that stayed was called gone."""
    folder = tmp_path / name
    (folder / "points/2026-01-01T000000Z").mkdir(parents=True)
    (folder / ".poolferry/trash").mkdir(parents=True)
    seen = survey(Location(path=str(folder)), Reader())
    assert ([point.name for point in seen.points], seen.trash) == (["2026-01-01T000000Z"], True)
