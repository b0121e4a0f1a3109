"""A copy over a tree that is linked to a point: whatever the source did meanwhile, nothing of the point changes."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.errors import BaseGone
from orchestrator.domain.place import Location
from orchestrator.domain.plan import FolderTimes, SmallFileCopy
from orchestrator.engines.rsync import commands, linked_copy
from orchestrator.engines.rsync.errors import explain
from orchestrator.engines.rsync.parse import DryRunReader
from orchestrator.process.link_wall import wall_off
from orchestrator.trees.beneath import Folder
from orchestrator.trees.linked_tree import LinkedTree
from orchestrator.trees.named_entries import give_folder_times, write_named_files
from tests.engines.rsync.builders import ASKED, USED, failed, job, point, world
from tests.whole.house import facts

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root's copies are linked before")
FILES = ("same", "content", "mode", "owner", "time", "gone", "folder", "excluded/file", "d/inside", "e/deep/inside")


def nothing() -> None:
    """Nothing happens."""


class Target:
    """A source, its point, and a new work tree."""

    def __init__(self, folder: Path) -> None:
        self.source, self.old, self.work = folder / "source", folder / "points/old", folder / ".poolferry/work"
        for name in FILES:
            (self.source / name).parent.mkdir(parents=True, exist_ok=True)
            (self.source / name).write_text(name)
        (self.source / "link").symlink_to("nowhere")
        os.mkfifo(self.source / "pipe")
        self.old.mkdir(parents=True)
        self.work.mkdir(parents=True)
        subprocess.run(["rsync", "-aHAX", "--modify-window=-1", f"{self.source}/", f"{self.old}/"], check=True)

    def link(self, *left_out: str) -> None:
        with Folder(str(self.old)) as old, Folder(str(self.work)) as new:
            LinkedTree(left_out).make(old, new)

    def copy(self, *excludes: str, between: Callable[[], None] = nothing) -> None:
        """Both commands of the copy, and what happens between them."""
        told = job(excludes=excludes, source=Location(path=str(self.source)))
        base, work = replace(point(), tree=Location(path=str(self.old))), Location(path=str(self.work))
        copied = commands.copy_command(told, work, world(), base=base, linked=True)
        subprocess.run(copied.argv, check=True, capture_output=True, text=True)
        between()
        subprocess.run(commands.folder_times_command(told, work, world()).argv, check=True, capture_output=True)

    def copy_by_name(self, *, between: Callable[[], None] = nothing) -> None:
        """A look, the links, and the steps of a copy that is told what differs by name; `between` the look and the copy."""
        told, root = job(source=Location(path=str(self.source))), Location(path=str(self.work.parent.parent))
        told = replace(told, target=replace(told.target, location=root))
        base, work = replace(point(), tree=Location(path=str(self.old))), Location(path=str(self.work))
        look = DryRunReader(told.tree)
        looked = commands.dry_run_command(told, base.tree, there=None, coarse=False)
        for line in subprocess.run(looked.argv, check=True, capture_output=True).stdout.splitlines():
            look.feed(line)
        seen = replace(USED, by_root=True, points=(base,), owner=told.identity)
        asked = replace(ASKED, notes=str(self.work.parent))
        differing = look.differing()
        assert differing is not None
        assert (
            linked_copy.differing_by_name(told, world(seen, differing=differing, walled=True), work, base) == differing
        )
        self.link(*map(os.fsdecode, differing.paths))
        between()
        for (step,) in linked_copy.copy_by_name(
            told, world(seen, differing=differing, walled=True), work, base, differing, asked
        ):
            for name, content in step.needs:
                Path(name).write_bytes(content)
            assert isinstance(step.work, SmallFileCopy | FolderTimes)
            if left := self.by_calls(step.work):
                Path(step.work.left).write_bytes(b"".join(b"./" + path + b"\0" for path in left))
                walled = wall_off(step.work.otherwise.stages[0])
                subprocess.run(walled.argv, check=True, capture_output=True, text=True)

    def by_calls(self, work: SmallFileCopy | FolderTimes) -> list[bytes]:
        """Do what system calls can of a step; return the paths that are left to rsync."""
        with Folder(str(self.source)) as source, Folder(str(self.work)) as copy:
            if isinstance(work, FolderTimes):
                return give_folder_times(work.paths, source.fd, copy.fd)
            return write_named_files(work.paths, source.fd, copy.fd, tell=lambda _: None, stops=lambda: False)[0]

    def become_folder(self) -> None:
        (self.source / "folder").unlink()
        (self.source / "folder").mkdir(mode=0o700)
        os.utime(self.source / "folder", ns=(7, 7))


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(tmp_path)


def change_metadata(source: Path) -> None:
    (source / "mode").chmod(0o600)
    os.utime(source / "time", ns=(1, 2))
    os.utime(source / "link", ns=(1, 2), follow_symlinks=False)
    (source / "pipe").chmod(0o644)
    for name in ("owner", "link", "pipe"):
        os.chown(source / name, 1234, 1234, follow_symlinks=False)


def test_what_changed_after_the_look_changes_no_point(target: Target) -> None:
    target.link()
    before, source = facts(target.old), target.source
    change_metadata(source)
    (source / "content").write_text("quite another")
    (source / "gone").unlink()
    (source / "gone").symlink_to("elsewhere")
    (source / "d").chmod(0o700)
    os.link(source / "same", source / "second")
    target.copy(between=lambda: change_metadata(source))
    assert facts(target.old) == before
    assert (target.work / "second").read_text() == "same"
    assert facts(target.work)[b"/d"] == facts(source)[b"/d"]


def test_what_has_gone_after_the_look_goes_from_the_copy_alone(target: Target) -> None:
    target.link()
    before = facts(target.old)
    for name in ("gone", "e/deep/inside"):
        (target.source / name).unlink()
    (target.source / "e/deep").rmdir()
    target.copy()
    assert facts(target.old) == before
    assert facts(target.work) == facts(target.source)


def test_a_file_that_became_a_filled_folder_lets_the_run_look_again(target: Target) -> None:
    target.link()
    before = facts(target.old)
    target.become_folder()
    (target.source / "folder/file").write_text("inside")
    with pytest.raises(subprocess.CalledProcessError) as ended:
        target.copy()
    assert isinstance(explain(failed(ended.value.stderr)), BaseGone)
    assert facts(target.old) == before


@pytest.mark.parametrize("later", [False, True])
def test_a_file_that_became_a_folder_changes_no_point(target: Target, *, later: bool) -> None:
    target.link()
    before = facts(target.old)
    if not later:
        target.become_folder()
    target.copy(between=target.become_folder if later else nothing)
    assert facts(target.old) == before
    assert facts(target.work) == facts(target.source)


def test_what_was_left_out_becomes_as_at_the_source(target: Target) -> None:
    source, before = target.source, facts(target.old)
    change_metadata(source)
    (source / "content").write_text("quite another")
    (source / "gone").unlink()
    os.link(source / "same", source / "second")
    (source / "new/er").mkdir(parents=True)
    target.link("content", "mode", "gone", "same", "second", "time", "link", "pipe", "owner")
    target.copy()
    assert facts(target.work) == facts(source)
    assert facts(target.old) == before


def test_what_is_excluded_since_the_point_is_not_in_the_copy(target: Target) -> None:
    target.link()
    target.copy("/excluded", "*.none")
    assert not (target.work / "excluded").exists()
    assert (target.work / "d/inside").exists()
    assert (target.old / "excluded/file").exists()


def test_a_folder_that_became_a_file_after_the_look_is_wholly_old(target: Target) -> None:
    target.link()
    before = facts(target.old)
    (target.source / "e/deep/inside").unlink()
    (target.source / "e/deep").rmdir()
    (target.source / "e").rmdir()
    (target.source / "e").write_text("a file")
    target.copy()
    now = facts(target.work)
    assert facts(target.old) == before
    assert [now[name] for name in (b"/e", b"/e/deep", b"/e/deep/inside")] == [
        before[name] for name in (b"/e", b"/e/deep", b"/e/deep/inside")
    ]


def change_much(source: Path) -> None:
    change_metadata(source)
    (source / "content").write_text("quite another")
    (source / "d/inside").write_text("other")  # its folder keeps its time
    for name in ("gone", "e/deep/inside"):
        (source / name).unlink()
    (source / "gone").symlink_to("elsewhere")
    (source / "new/er/est").mkdir(parents=True)
    (source / "new/er/file").write_text("new")
    (source / "odd \n*[a]").write_text("odd")
    (source / "excluded").chmod(0o700)
    source.chmod(0o710)
    os.utime(source, ns=(3, 4_000_000_005))


def test_what_differs_is_copied_by_name_and_folders_get_their_times(target: Target) -> None:
    change_much(target.source)
    before = facts(target.old)
    target.copy_by_name()
    assert facts(target.work) == facts(target.source)
    assert facts(target.old) == before
    assert (target.work / "same").stat().st_ino == (target.old / "same").stat().st_ino


@pytest.mark.parametrize(
    "kind", ["metadata", "gone", "folder", "file", pytest.param("link", marks=pytest.mark.namespace)]
)
def test_what_changes_after_the_look_changes_no_point_by_name(target: Target, kind: str) -> None:
    """The next run copies it; here nothing that a point shares may change, and no link of the source be followed."""
    source, outside = target.source, target.source.parent / "outside"
    outside.mkdir()
    (outside / "inside").write_text("secret")
    (source / "d/inside").write_text("other")
    (source / "folder").write_text("other")

    def between() -> None:
        if kind == "metadata":
            change_metadata(source)
        elif kind == "folder":
            target.become_folder()
            (source / "folder/file").write_text("inside")
        else:
            (source / "d/inside").unlink()
            (source / "d").rmdir()
            if kind == "file":
                (source / "d").write_text("a file")
            elif kind == "link":
                (source / "d").symlink_to(outside)

    before = facts(target.old)
    if kind in ("file", "link"):
        with pytest.raises(subprocess.CalledProcessError) as ended:
            target.copy_by_name(between=between)
        assert isinstance(explain(failed(ended.value.stderr)), BaseGone), "the run looks again"
    else:
        target.copy_by_name(between=between)
    assert facts(target.old) == before
    assert not (target.work / "d/inside").is_file() or (target.work / "d/inside").read_text() != "secret"
    assert (target.work / "same").stat().st_ino == (target.old / "same").stat().st_ino
