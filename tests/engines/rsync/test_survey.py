"""Looks at real trees: what differs, what an interrupted run left, and that a look which failed is no empty answer."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.errors import HostUnreachable, OutsideError, PermissionDenied
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync import commands, parse, script_commands
from orchestrator.engines.rsync.model import LARGE_FILE
from orchestrator.engines.rsync.parallel import ParallelCopies
from orchestrator.engines.rsync.survey import command_runner, greeting_command, survey, survey_points
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineResult
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.rsync.builders import NAME, NOW, OLD, THERE, job
from tests.engines.rsync.trees import Trees


@pytest.fixture
def trees(tmp_path: Path) -> Trees:
    return Trees(tmp_path)


def test_a_first_copy_is_counted_by_a_listing(trees: Trees) -> None:
    trees.write("a", "12345")
    trees.write("d/b", "123")
    os.link(trees.source / "a", trees.source / "a2")
    seen = trees.look()
    assert seen.changes is not None
    assert (seen.changes.entries_before, seen.changes.files_before) == (None, None)
    assert (seen.changes.entries_now, seen.changes.created, seen.changes.moving) == (4, 4, 8)
    assert (seen.here, seen.there, seen.parallel_copies, seen.points) == (None, None, None, ())
    assert not seen.target.exists
    assert seen.target.parent


def test_what_patterns_leave_out_of_a_first_copy_rsync_itself_knows(trees: Trees) -> None:
    trees.write("keep", "12345")
    trees.write("cache/big", "123456789")
    seen = trees.look(excludes=("/cache/",))
    assert seen.changes is not None
    assert (seen.changes.entries_before, seen.changes.entries_now, seen.changes.moving) == (None, 1, 5)


def test_differences_to_the_newest_point(trees: Trees) -> None:
    for name in ("same", "edited", "gone", "d/e/gone"):
        trees.write(name)
    trees.point("2026-01-01T000000Z")
    trees.point()
    assert trees.look().changes is not None
    assert trees.look().changes.none  # type: ignore[union-attr]
    trees.write("edited", "longer")
    trees.write("new\nline\udcff".encode("utf-8", "surrogateescape").decode("latin-1"), "new")
    (trees.source / "gone").unlink()
    (trees.source / "d/e/gone").unlink()
    seen = trees.look()
    assert seen.changes is not None
    assert (seen.changes.created, seen.changes.changed, seen.changes.deleted) == (1, 1, 2)
    assert seen.changes.changed_examples == (b"edited",)
    assert sorted(seen.changes.deleted_examples) == [b"d/e/gone", b"gone"]
    assert [each.name for each in seen.points] == ["2026-01-01T000000Z", OLD]
    assert not seen.unread


def test_another_jobs_copies_are_not_compared(trees: Trees) -> None:
    trees.write("a")
    trees.point()
    trees.mark("mail")
    seen = trees.look()
    assert seen.target.owner == "mail"
    assert seen.changes is not None
    assert seen.changes.entries_before is None


def test_a_source_that_is_none(trees: Trees) -> None:
    trees.source.rmdir()
    assert (trees.look().source.exists, trees.look().changes) == (False, None)
    trees.source.touch()
    seen = trees.look()
    assert (seen.source.exists, seen.source.directory, seen.changes) == (True, False, None)


def test_a_mirror_is_compared_itself_without_our_folder(trees: Trees) -> None:
    trees.write("a")
    trees.write("points/a.txt")
    trees.write("points/a/b")
    subprocess.run(["rsync", "-a", f"{trees.source}/", f"{trees.target}/"], check=True)
    ours = trees.mark()
    seen = trees.look(points=False)
    assert seen.changes is not None
    assert seen.changes.none
    assert (seen.target.litter, seen.points, seen.target.mirrored) == ((), (), None)  # its `points` are the source's
    assert survey_points(trees.job(points=False), Reader()) == ()
    (ours / "manifest.gz").touch()
    (found,) = survey_points(trees.job(points=False), Reader())
    assert (found.name, found.tree, found.damaged, found.apart) == (
        "mirror", Location(path=str(trees.target)), False, (b".poolferry",),
    )  # fmt: skip
    (ours / "mirror.damaged").write_text("a\n")
    assert survey_points(trees.job(points=False), Reader())[0].damaged
    assert trees.look(points=False).target.damaged == (b"a",)
    (ours / "work").mkdir()
    os.utime(ours / "work", (1, 1))
    (ours / "unwritten").touch()
    assert set(trees.look(points=False).target.damaged) == {b"a", b"points/a.txt", b"points/a/b"}
    for number in range(1000):
        (trees.target / str(number)).touch()
    assert trees.look(points=False).target.all_damaged


def test_a_work_tree_that_the_disk_may_not_have_taken_is_none(trees: Trees) -> None:
    trees.write("a")
    ours = trees.mark()
    (ours / "work").mkdir()
    assert (trees.look().target.work, trees.look().target.unwritten) == (True, False)
    (ours / "unwritten").touch()
    assert (trees.look().target.work, trees.look().target.unwritten) == (False, True)


def test_a_mirror_of_nobody_is_not_compared(trees: Trees) -> None:
    trees.write("a")
    trees.target.mkdir()
    (trees.target / "theirs").touch()
    seen = trees.look(points=False)
    assert seen.changes is not None
    assert (seen.changes.entries_before, seen.changes.deleted, seen.target.foreign) == (None, 0, ("theirs",))


def test_points_that_are_there(trees: Trees) -> None:
    trees.write("a")
    trees.point(NAME)
    trees.point(OLD)
    (trees.target / f"points/{NAME}.damaged").write_text("a\nb\\xff\n")
    (trees.target / "latest").symlink_to(f"points/{NAME}")
    found = survey_points(trees.job(), Reader())
    assert [(each.name, each.damaged) for each in found] == [(OLD, False), (NAME, True)]
    seen = trees.look().target
    assert (seen.damaged, seen.latest, seen.mounted) == ((b"a", b"b\xff"), NAME, False)


def test_a_process_that_must_not_hang_looks_at_points_by_a_program_alone(trees: Trees) -> None:
    trees.write("a")
    trees.point(OLD)
    for apart in (True, False):
        lines: list[str] = []
        assert len(survey_points(trees.job(), Reader(log=lines.append, apart=apart))) == 1
        assert bool(lines) == apart


def test_what_an_interrupted_copy_left(trees: Trees) -> None:
    """Partial files and orphans, each with what the source has; a file that is only named alike is none."""
    trees.write("d/partial", "0123456789")
    trees.write("orphan\n", "0123456789")
    trees.write(".like.AbCdEf", "own")
    work = trees.mark() / "work"
    (work / "d/.~poolferry-partial~").mkdir(parents=True)
    (work / "d/.~poolferry-partial~/partial").write_text("01234")
    (work / "d/.~poolferry-partial~/gone").write_text("01")
    (work / ".orphan\n.AbCdEf").write_text("012")
    (work / ".like.AbCdEf").write_text("own")
    (work / ".empty.AbCdEf").touch()
    (work / "finished").write_text("x")
    seen = trees.look().target
    assert seen.work
    found = {each.path: (each.lies, each.orphan, each.have, each.wanted) for each in seen.half}
    assert found == {
        b"d/partial": (b"d/.~poolferry-partial~/partial", False, 5, 10),
        b"d/gone": (b"d/.~poolferry-partial~/gone", False, 2, None),
        b"orphan\n": (b".orphan\n.AbCdEf", True, 3, 10),
    }


def test_what_is_shared_with_an_older_point_is_no_remainder(trees: Trees) -> None:
    trees.write("x", "0123456789")
    work = trees.mark() / "work"
    work.mkdir()
    (trees.target / "older").write_text("an owner's file")
    os.link(trees.target / "older", work / ".x.AbCdEf")
    assert trees.look().target.half == ()


def test_a_work_tree_that_others_could_enter_is_not_gone_on_with(trees: Trees) -> None:
    trees.write("x", "0123456789")
    work = trees.mark() / "work"
    work.mkdir()
    (work / ".x.AbCdEf").write_text("01234")
    (trees.target / ".poolferry").chmod(0o755)
    seen = trees.look().target
    assert (seen.open, seen.work, seen.half) == ((".poolferry",), False, ())
    (trees.target / ".poolferry/cannot-be-closed").touch()
    assert len(trees.look().target.half) == 1


def test_links_in_place_of_our_folders_are_seen_and_not_followed(trees: Trees, tmp_path: Path) -> None:
    trees.write("x")
    ours = trees.mark()
    (ours / "work").symlink_to(tmp_path)
    seen = trees.look().target
    assert (seen.swapped, seen.work) == ((".poolferry/work",), False)
    (ours / "work").unlink()
    ours.rename(tmp_path / "elsewhere")
    ours.symlink_to(tmp_path / "elsewhere")
    seen = trees.look().target
    assert (seen.swapped, seen.owner) == ((".poolferry",), None)


def test_names_of_ours_in_the_source_are_told_and_counted_nowhere(trees: Trees) -> None:
    trees.write("a/.~poolferry-partial~/x")
    trees.write(".poolferry-restoring.json")
    (trees.source / "b").symlink_to("a")
    trees.write("c.~poolferry-partial~")
    seen = trees.look()
    assert sorted(seen.reserved) == [b".poolferry-restoring.json", b"a/.~poolferry-partial~"]
    assert seen.changes is not None
    assert seen.changes.entries_now == 3


def test_nothing_half_copied(trees: Trees) -> None:
    (trees.mark() / "work").mkdir()
    seen = trees.look().target
    assert (seen.work, seen.half) == (True, ())


def test_lanes_only_where_there_is_something_to_share_out(trees: Trees) -> None:
    for name in "abcd":
        trees.write(f"{name}/file")
    parallel_copies = trees.look(parallel=2).parallel_copies
    assert isinstance(parallel_copies, ParallelCopies)
    assert len(parallel_copies.parallel_copies) == 2
    trees.point()
    assert trees.look(parallel=2).parallel_copies is None
    trees.write("a/new")
    # Patterns are what a copy by name cannot do.
    assert isinstance(trees.look(parallel=2, excludes=("*.none",)).parallel_copies, ParallelCopies)


@pytest.mark.namespace
@pytest.mark.skipif(os.geteuid() != 0, reason="only root's copies are told by name what differs")
def test_no_lanes_for_little_that_is_copied_by_name(trees: Trees, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abcd":
        trees.write(f"{name}/file")
    trees.point()
    (trees.target / "points").chmod(0o700)
    trees.write("a/new")
    seen = trees.look(parallel=2)
    assert (seen.walled, seen.parallel_copies) == (True, None)
    monkeypatch.setattr("orchestrator.engines.rsync.survey._LITTLE", 1)
    assert isinstance(trees.look(parallel=2).parallel_copies, ParallelCopies)


def test_hard_links_that_tie_lanes(trees: Trees) -> None:
    trees.write("a/file")
    (trees.source / "b").mkdir()
    os.link(trees.source / "a/file", trees.source / "b/file")
    assert isinstance(trees.look(parallel=2).parallel_copies, Refusal)
    assert isinstance(trees.look(parallel=2, hard_links=False).parallel_copies, ParallelCopies)


STATS = b"Number of files: 1 (dir: 1)\nTotal transferred file size: 0 bytes\nLiteral data: 0 bytes\n"
TARGET = b'd\x001024 4096 9 8\n\x00{"job": "photos"}\x00u d 2\x00h d 1\x00p d %b\x00' % OLD.encode()


BOTH = script_commands.survey_both_command(job().source, job().target.location)


def scripted(look: Any) -> ScriptedExecutor:
    """A local job whose look ends like this."""
    return ScriptedExecutor(
        [
            (str(BOTH), scripted_result(b"d 1 0 755\n2 0 755\0x\0" + TARGET)),
            (lambda pipeline: pipeline.stages[0].argv[0] == "rsync", look),
        ]
    )


@pytest.mark.parametrize(("code", "unread"), [(0, False), (24, False), (23, True)])
def test_a_look_that_could_not_read_all_says_so(code: int, unread: bool) -> None:
    seen = survey(job(), RunRequest(now=NOW, notes="/n"), scripted(scripted_result(STATS, exits=(code,))))
    assert seen.changes is not None
    assert seen.changes.none
    assert seen.unread is unread


def test_a_look_that_failed_is_no_empty_answer() -> None:
    words = "rsync: connection unexpectedly closed"
    with pytest.raises(OutsideError, match="broke off"):
        survey(job(), RunRequest(now=NOW, notes="/n"), scripted(scripted_result(STATS, exits=(12,), words=words)))


def test_a_host_that_does_not_answer() -> None:
    down = ScriptedExecutor(
        [
            (
                lambda pipeline: pipeline.stages[0].host is not None,
                scripted_result(exits=(255,), words="Connection refused"),
            )
        ]
    )
    down._script.insert(0, (lambda pipeline: pipeline.stages[0].host is None, scripted_result(b'{"version": "3.5.0"}')))
    with pytest.raises(HostUnreachable):
        survey(job(target=THERE), RunRequest(now=NOW, notes="/n"), down)


def listing(ended: PipelineResult) -> ScriptedExecutor:
    """A first copy whose listing ends so."""
    return ScriptedExecutor(
        [
            (str(BOTH), scripted_result(b"d 1 0 755\n2 0 755\0x\0" + b"ap\0")),
            (lambda pipeline: pipeline.stages[0].argv[0] == "find", ended),
        ]
    )


def test_a_listing_that_failed_is_no_empty_source() -> None:
    with pytest.raises(PermissionDenied):
        survey(
            job(),
            RunRequest(now=NOW, notes="/n"),
            listing(scripted_result(exits=(126,), words="find: Permission denied")),
        )


def test_a_folder_that_cannot_be_listed_is_left_to_the_copy() -> None:
    seen = survey(job(), RunRequest(now=NOW, notes="/n"), listing(scripted_result(b"a//f\t5\t1\t7\t8\0", exits=(1,))))
    assert seen.changes is not None
    assert (seen.changes.entries_now, seen.changes.moving) == (1, 5)


@pytest.mark.parametrize(
    ("size", "blocks", "holes"),
    [(1 << 20, 2048, False), (1 << 20, 1920, True), (1 << 20, 1921, False), (100, 0, False)],
    ids=["solid", "a hole", "nearly solid", "packed"],
)
def test_files_with_holes_are_seen_by_their_blocks(size: int, blocks: int, holes: bool) -> None:
    told = scripted_result(b"a//f\t%d\t1\t7\t%d\0" % (size, blocks))
    assert survey(job(), RunRequest(now=NOW, notes="/n"), listing(told)).holes is holes


@pytest.mark.parametrize("source", [b"a\0", b"f\0", b"d 1 0 755\n2 0 755\0x\0", b"d 1 0 755\n2 0 755\0\0"])
def test_one_look_at_both_tells_what_a_look_at_each_does(source: bytes) -> None:
    assert parse.split_surveys(source + TARGET) == (source, TARGET)


def test_when_the_look_at_both_fails_each_is_asked_by_itself() -> None:
    reader = ScriptedExecutor(
        [
            (str(BOTH), scripted_result(exits=(1,))),
            (str(script_commands.survey_source_command(job().tree)), scripted_result(b"d 1 0 755\n2 0 755\0x\0")),
            (
                str(script_commands.survey_target_command(job().target.location)),
                scripted_result(exits=(1,), words="cd: Permission denied"),
            ),
        ]
    )
    with pytest.raises(PermissionDenied):
        survey(job(), RunRequest(now=NOW, notes="/n"), reader)


def test_both_programs_are_asked_for_a_far_side() -> None:
    assert THERE.host
    reader = ScriptedExecutor(
        [
            (str(commands.rsync_version_command(None)), scripted_result(b'{"version": "3.5.0"}')),
            (
                str(greeting_command(THERE.host)),
                scripted_result(b"rsync  version 3.1.3  protocol version 31\n"),
            ),
            (str(script_commands.survey_source_command(job().tree)), scripted_result(b"a\0")),
            (str(script_commands.survey_target_command(THERE)), scripted_result(b"ap\0")),
        ]
    )
    seen = survey(job(target=THERE), RunRequest(now=NOW, notes="/n"), reader)
    assert seen.here is not None
    assert seen.there is not None
    assert (seen.here.version, seen.there.version) == ((3, 5, 0), (3, 1, 3))


@pytest.mark.parametrize(
    ("told", "walled"),
    [
        (scripted_result(b"closed\n"), True),
        (scripted_result(b"user\n"), False),
        (scripted_result(exits=(126,), words="an old gate: Permission denied"), False),
    ],
)
def test_a_far_source_is_asked_by_name_only_where_its_wall_stands(told: PipelineResult, walled: bool) -> None:
    assert THERE.host
    far = job(source=THERE)
    links = [script_commands.survey_links_command(side) for side in (None, THERE.host)]
    reader = ScriptedExecutor(
        [
            (str(commands.rsync_version_command(None)), scripted_result(b'{"version": "3.5.0"}')),
            (str(greeting_command(THERE.host)), scripted_result(b"rsync  version 3.5.0  protocol version 32\n")),
            (str(script_commands.survey_source_command(far.tree)), scripted_result(b"d 1 0 755\n2 0 755\0x\0")),
            (str(script_commands.survey_target_command(far.target.location)), scripted_result(TARGET + b"i plain 0\0")),
            (str(links[0]), scripted_result(b"closed\n")),
            (str(links[1]), told),
            (
                lambda pipeline: pipeline.stages[0].argv[0] == "rsync",
                scripted_result(b"pf:>f.st......|%d|a\n" % LARGE_FILE + STATS),
            ),
        ]
    )
    seen = survey(far, RunRequest(now=NOW, notes="/n"), reader)
    assert seen.differing is not None
    assert seen.differing.paths == (b"a",)
    assert (seen.walled, seen.clones) == (walled, False), "nothing of a far source is opened here"


def test_one_look_at_a_target_tells_all_of_it(trees: Trees) -> None:
    trees.write("a")
    trees.point(OLD)
    for name in ("work", "trash"):
        (trees.target / ".poolferry" / name).mkdir()
    (trees.target / "latest").symlink_to(f"points/{OLD}")
    (trees.target / "points/deep").mkdir()
    (trees.target / "points/deep/er").touch()
    (trees.target / "what\nis this").mkdir()
    seen = trees.look().target
    assert (seen.latest, [each.name for each in seen.points], seen.work, seen.litter) == (OLD, [OLD], True, ("trash",))
    assert seen.foreign == ("what\nis this",)
    assert seen.mounted == (trees.target.stat().st_dev != trees.target.parent.stat().st_dev)
    (trees.target / "latest").unlink()
    (trees.target / "latest").mkdir()
    assert trees.look().target.latest is None


def test_a_target_that_is_a_filesystem_of_its_own() -> None:
    root = Location(path="/proc")
    seen = parse.parse_target(command_runner(Reader())(script_commands.survey_target_command(root)), root, mirror=False)
    assert (seen.exists, seen.mounted) == (True, True)


_COME_AND_GO = """
import os, sys
names = [f"{folder}/passing-{number}" for folder in sys.argv[1:] for number in range(300)]
while True:
    for name in names:
        os.mkdir(name)
    for name in names:
        os.rmdir(name)
"""


@pytest.mark.slow
def test_what_vanishes_during_a_look_is_no_failure(trees: Trees) -> None:
    trees.write("stays")
    trees.mark()
    with subprocess.Popen([sys.executable, "-c", _COME_AND_GO, str(trees.source), str(trees.target)]) as other:
        try:
            for _ in range(40):
                assert trees.look().target.exists
        finally:
            other.kill()
