"""Attributes beside a listing: where an earlier look found none, only what is listed otherwise since then is read again."""

import io
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.rsync.next_look import next_tick
from orchestrator.process.background import BackgroundCall
from orchestrator.verify.source import source_command
from orchestrator.verify.tree_attributes import BareTree, TreeAttributes

FILES = 3000  # in several batches
LATER = 1 << 62


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number in range(FILES):
        file = tmp_path / f"in/{number % 7}/{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
    (tmp_path / "in/link").symlink_to("/etc")
    return tmp_path / "in"


def listed(tree: Path) -> list[bytes]:
    command = source_command(SourceTree(root=Location(path=str(tree))), one_filesystem=True, attributes=False)
    records = subprocess.check_output(command.argv).split(b"\0")
    return records[1 : records.index(b"")]


def entry(record: bytes) -> tuple[bytes, bytes, bytes, bytes, bytes]:
    path, _, told = record.partition(b"//")
    fields = told.split(b"\t")
    return record, path, fields[0], fields[7], fields[-1]


def look(tree: Path, records: list[bytes], *, young_ns: int = LATER) -> tuple[bytes, ...] | None:
    with BareTree(str(tree), young_ns) as bare:
        for start in range(0, len(records), bare.batch):
            bare.take([entry(record) for record in records[start : start + bare.batch]])
        return bare.digests


def noted(tree: Path, bare: tuple[bytes, ...], *, since_ns: int = LATER) -> tuple[list[bytes], set[bytes]]:
    records = listed(tree)
    found = TreeAttributes(str(tree), io.BytesIO(), without_own=False, since_ns=since_ns, bare=bare)
    passed = BackgroundCall(
        lambda: list(found.read(records))
    ).result()  # as in a run: in a thread with a folder of its own
    assert passed == records
    return [record.partition(b"//")[0] for record in found.records()], found.changed


def entitle(path: Path) -> None:
    subprocess.run(["setfacl", "-m", "u:1001:r", path], check=True)


def mark(path: Path) -> None:
    os.setxattr(path, "user.late", b"x")


@pytest.mark.parametrize("change", [entitle, mark])
@pytest.mark.parametrize("path", ["", "3", "3/2971"])
def test_what_gets_some_after_the_look_is_read(tree: Path, change: Callable[[Path], None], path: str) -> None:
    bare = look(tree, listed(tree))
    assert bare is not None
    assert noted(tree, bare) == ([], set())
    next_tick()
    change(tree / path)
    assert noted(tree, bare)[0] == [path.encode()]
    assert look(tree, listed(tree)) is None


def test_what_is_listed_as_before_is_not_read_again(tree: Path) -> None:
    """By what else it would say: that all changed since a time that has not come."""
    bare = look(tree, listed(tree))
    assert bare is not None
    assert noted(tree, bare, since_ns=0) == ([], set())
    assert len(noted(tree, (), since_ns=0)[1]) == len(listed(tree))
    assert len(noted(tree, (b"", *bare[1:]), since_ns=0)[1]) == BareTree.batch


def test_what_may_change_once_more_without_a_sign_is_read_again(tree: Path) -> None:
    mark(tree / "3/2971")
    os.removexattr(tree / "3/2971", "user.late")
    now = (tree / "3/2971").stat().st_ctime_ns
    bare = look(tree, listed(tree), young_ns=now - 3 * 10**9)
    assert bare is not None
    assert b"" in bare
    bare = look(tree, listed(tree), young_ns=now + 10**9)
    assert bare is not None
    assert b"" not in bare


def test_an_entry_that_cannot_be_read_may_have_some(tree: Path) -> None:
    records = listed(tree)
    (tree / "3/2971").unlink()
    assert look(tree, records) is None


def test_a_folder_that_became_a_link_is_not_followed(tree: Path, tmp_path: Path) -> None:
    """Its owner could show the look files without attributes in place of others' that have some."""
    records = listed(tree)
    (tree / "3").rename(tmp_path / "apart")
    (tree / "3").symlink_to(tmp_path / "apart")
    assert look(tree, records) is None


def test_a_folder_that_was_exchanged_since_it_was_listed_is_believed_of_nothing(tree: Path) -> None:
    """Its own entries keep their times of change: the owner may put it back before the copy is reviewed."""
    records = listed(tree)
    assert look(tree, records) is not None
    (tree / "3").rename(tree.parent / "away")
    (tree / "3").mkdir()
    for file in (tree.parent / "away").iterdir():
        (tree / "3" / file.name).write_bytes(b"")
    assert look(tree, records) is None
