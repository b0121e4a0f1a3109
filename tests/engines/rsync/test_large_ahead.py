"""Large files written before rsync copies: by which plans, and with a source that changes between the two."""

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from xxhash import xxh3_128_hexdigest

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import Job, PipeOptions
from orchestrator.domain.place import Location
from orchestrator.domain.plan import FileCloning, Plan, SmallFileCopy, Step, TreeLinking
from orchestrator.domain.units import Bytes
from orchestrator.engines.rsync.model import LARGE_FILE, DifferingPaths, RsyncSurvey, SparseFile
from orchestrator.engines.rsync.parallel import ParallelCopies, ParallelCopy
from orchestrator.engines.rsync.plan import plan
from orchestrator.engines.rsync.write_ahead import LEAST_LARGE_AHEAD, count_ahead_of_large
from tests.engines.rsync.ahead_copies import Copying
from tests.engines.rsync.builders import ASKED, EMPTY, FIRST, HOST, USED, job, mirror, world
from tests.whole.house import facts

LARGE = ((b"a", LEAST_LARGE_AHEAD * 2), (b"b", LEAST_LARGE_AHEAD), (b"c", LEAST_LARGE_AHEAD))
LANES = ParallelCopies(
    parallel_copies=tuple(ParallelCopy(paths=(path,), size=Bytes(1), entries=1) for path in (b"a", b"b", b"c", b"d"))
)
BY_ROOT = replace(EMPTY, by_root=True)


def seen(of: Job | None = None, **more: Any) -> tuple[Job, RsyncSurvey]:
    """A first copy by root that large files are written ahead of."""
    return of or job(), world(**{"target": BY_ROOT, "changes": FIRST, "large": LARGE, **more})


def test_it_is_for_copies_of_much_within_this_machine_and_for_as_many_programs_as_copy() -> None:
    assert count_ahead_of_large(*seen(parallel_copies=LANES)) == 3, "each has a file at least"
    little = tuple((name, size // 2) for name, size in LARGE)
    assert count_ahead_of_large(*seen(parallel_copies=LANES, large=little)) == 2, "and so much that it pays"
    assert count_ahead_of_large(*seen(job(parallel=1))) == 1, "one alone takes less than rsync"
    assert count_ahead_of_large(*seen(target=replace(USED, by_root=True), parallel_copies=LANES)) == 3
    assert count_ahead_of_large(*seen(job(excludes=("*.tmp",)), parallel_copies=LANES)) == 3
    cases: tuple[dict[str, Any], ...] = (
        {"large": ((b"a", LEAST_LARGE_AHEAD - 1),)},
        {"target": EMPTY},
        {"target": replace(BY_ROOT, work=True)},
        {"target": replace(BY_ROOT, led=True)},
        {"target": replace(BY_ROOT, coarse=True)},
        {"sparse": (SparseFile(paths=(b"a",), size=9, hole=9, owner=0),)},
        {"refused": ((b"a", "no"),)},
        {"mixed": "lies inside"},
    )
    for more in cases:
        assert count_ahead_of_large(*seen(None, **more)) == 0, more
    far = Location(path="/srv", host=HOST)
    others = [job(fake_super=True), job(checksum=True), job(owners=False), job(modes=False), job(source=far)]
    others += [job(target=far), mirror(), replace(job(), pipe=PipeOptions(rate_limit=Bytes(1000)))]
    for other in (*others, replace(job(), parts=("srv/a",))):
        assert count_ahead_of_large(*seen(other)) == 0, other


def copying_steps(of: Job, found: RsyncSurvey) -> list[list[Step]]:
    decision = plan(of, found, ASKED)
    assert isinstance(decision, Plan)
    return [list(stage) for stage in decision.stages if stage[0].copies]


def test_programs_share_the_files_before_the_copies() -> None:
    of, found = seen(ahead_of_large=2, holes=False)
    ahead, (copy,) = copying_steps(of, found)
    assert [(step.worker, step.needs[0][1]) for step in ahead] == [("lane 1", b"./a\0"), ("lane 2", b"./b\0./c\0")]
    assert f" {LARGE_FILE} whole - '.~poolferry-partial~' " in str(ahead[0].work)
    assert " --delete " in str(copy.work), "what has left the source since then goes"
    assert "--partial-dir=" in str(copy.work)
    ahead, _ = copying_steps(of, replace(found, holes=True))
    assert f" {LARGE_FILE} holes - '.~poolferry-partial~' " in str(ahead[0].work)
    (copy,), *more = copying_steps(of, replace(found, ahead_of_large=0))
    assert not more
    assert " --delete " not in str(copy.work)
    ahead, copies, named = copying_steps(of, replace(found, ahead=4, parallel_copies=LANES))
    assert [step.worker for step in ahead] == ["lane 1", "lane 2", "lane 3", "lane 4", "lane 1", "lane 2"]
    assert len(copies) == len(named) == 4


def test_a_later_copy_leaves_them_to_an_rsync_of_their_own() -> None:
    """The one of all else passes over what is there."""
    differing = DifferingPaths(paths=(b"a", b"b", b"c", b"gone", b"new"), joined=(), present=(b"a", b"b", b"c", b"new"))
    used = replace(USED, by_root=True)
    of, found = seen(target=used, changes=None, differing=differing, walled=True, ahead_of_large=1)
    found = replace(found, changes=replace(FIRST, entries_before=9, moving=4 * LEAST_LARGE_AHEAD + 5))
    decision = plan(of, found, ASKED)
    assert isinstance(decision, Plan)
    names = [step.action for step in decision.steps if step.copies or isinstance(step.work, TreeLinking)]
    large = f"large files of {of.tree}"
    assert names[1:] == [f"write {large}", f"copy {large}", f"copy {of.tree}", "give folders their times"]
    _, write, settle, rest, _ = (step for step in decision.steps if step.copies or isinstance(step.work, TreeLinking))
    assert (write.needs[0][1], settle.needs[0][1]) == (b"./a\0./b\0./c\0",) * 2
    assert isinstance(rest.work, SmallFileCopy)
    assert rest.work.paths == (b"new",)
    assert (settle.expected, rest.expected) == (4 * LEAST_LARGE_AHEAD, 5)
    assert not any(flag in str(settle.work) for flag in ("--ignore-existing", "--link-dest"))
    assert "--ignore-missing-args" in str(settle.work)
    alone = replace(found, differing=replace(differing, present=(b"a", b"b", b"c")))
    assert [step.action for stage in copying_steps(of, alone) for step in stage] == [*names[1:3], names[4]]


def test_where_the_target_clones_they_share_blocks_with_the_point() -> None:
    """They leave such as files with holes, which are cloned after them, and in which rsync looks for what changed."""
    differing = DifferingPaths(paths=(b"a", b"b", b"c"), joined=(), present=(b"a", b"b", b"c"))
    used = replace(USED, by_root=True)
    of, found = seen(target=used, changes=None, differing=differing, walled=True, ahead_of_large=1, clones=True)
    found = replace(found, changes=replace(FIRST, entries_before=9, moving=4 * LEAST_LARGE_AHEAD))
    decision = plan(of, found, ASKED)
    assert isinstance(decision, Plan)
    steps = [step for step in decision.steps if step.copies or isinstance(step.work, FileCloning)]
    write, clone, copy, *_ = steps
    (base,) = {step.work.point for step in decision.steps if isinstance(step.work, TreeLinking | FileCloning)}
    assert f" {LARGE_FILE} holes {base.tree.path} '.~poolferry-partial~' " in str(write.work)
    assert isinstance(clone.work, FileCloning)
    assert "--no-whole-file" in str(copy.work)
    assert write.needs[0][1] == b"./a\0./b\0./c\0"
    few = replace(found, large=((b"a", LARGE_FILE),))
    assert (count_ahead_of_large(of, few), count_ahead_of_large(of, replace(few, clones=False))) == (1, 0)


@pytest.mark.root
def test_a_source_that_changes_meanwhile_is_copied_as_it_is_then(tmp_path: Path) -> None:
    names = ("same", "changed", "gone", "folder/gone", "moved", "set", "kept/before")
    large = tuple((name.encode(), LARGE_FILE) for name in (*names, "kept/after"))
    copying = Copying(tmp_path, lanes=False, ahead=0, large=large, ahead_of_large=2)
    source, content = copying.source, {name: os.urandom(1000) * (LARGE_FILE // 1000 + 1) for name in names}
    for folder in ("folder", "kept"):
        (source / folder).mkdir()
    for name in names:
        (source / name).write_bytes(content[name])
    os.chown(source / "set", 1234, 4321)
    (source / "set").chmod(0o4755)
    os.setxattr(source / "set", "security.capability", b"\1\0\0\2\0\4\0\0\0\0\0\0\0\0\0\0\0\0\0\0")
    subprocess.run(["setfacl", "-m", "u:1234:r", str(source / "same")], check=True)
    subprocess.run(["setfacl", "-d", "-m", "u:1234:rwx,o::-", str(source / "kept")], check=True)
    (source / "kept/after").write_bytes(content["kept/before"])  # it gets the folder's list
    os.utime(source / "kept", ns=(0, 1_000_000_007))
    last = max(path.stat().st_ctime_ns for path in source.rglob("*"))
    while time.time_ns() < last + 200_000_000:
        os.sched_yield()
    copying.run(copying.ahead)
    there = {os.fsencode(path.relative_to(copying.work)) for path in copying.work.rglob("*") if path.is_file()}
    assert there == {path for path, _ in large}
    for name in names:
        assert (copying.work / name).read_bytes() == content[name]
    (source / "changed").write_bytes(content["gone"])
    (source / "gone").unlink()
    (source / "folder/gone").unlink()
    (source / "folder").rmdir()
    (source / "moved").rename(source / "here")
    copying.run(copying.copies)
    assert facts(source) == facts(copying.work)
    assert os.getxattr(copying.work / "set", "security.capability") == os.getxattr(
        source / "set", "security.capability"
    )
    digests = copying.told("moved-*")
    for path in (each for each in copying.work.rglob("*") if each.is_file()):
        assert digests[os.fsencode(path.relative_to(copying.work))] == xxh3_128_hexdigest(path.read_bytes())
