"""Access lists and extended attributes: part of each manifest, and compared by verify, restore and drill."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.verify.manifest import read_manifest
from tests.whole.house import House, facts
from tests.whole.metadata_chaos import CAPABILITY, filled_holes
from tests.whole.sshd import Sshd, sshd

__all__ = ["sshd"]
pytestmark = [pytest.mark.root, pytest.mark.slow]


def entitle(path: Path) -> None:
    subprocess.run(["setfacl", "-m", "u:1001:rw", path], check=True)


def mark(path: Path) -> None:
    os.setxattr(path, "user.foreign", b"x")


def enable(path: Path) -> None:
    os.setxattr(path, "security.capability", CAPABILITY)


def strip(path: Path) -> None:
    os.removexattr(path, "user.mine")


CHANGES: list[tuple[Callable[[Path], None], str]] = [
    (entitle, "access list"), (mark, "attributes"), (enable, "capabilities"), (strip, "attributes"),
]  # fmt: skip


def tree(house: House) -> None:
    os.setxattr(house.write("folder/a file", "content"), "user.mine", b"\0odd\n value")
    house.write("plain", "content")
    entitle(house.write("shared", "content"))
    subprocess.run(["setfacl", "-d", "-m", "g:1002:rx", house.source / "folder"], check=True)


@pytest.mark.parametrize("far", [False, True], ids=["here", "over ssh"])
@pytest.mark.sample(1)
def test_what_somebody_changes_of_them_is_found(house: House, sshd: Sshd, *, far: bool) -> None:
    tree(house)
    house.job(**({"target": sshd.url(house.target), "pipe": sshd.pipe} if far else {}))
    assert house.run().outcome == "done"
    header, entries = read_manifest(f"{house.point()}.manifest.gz")
    told = {entry.path: entry.attributes[:1] for entry in entries}
    assert header.attributes
    assert told == {b"": "-", b"folder": "a", b"folder/a file": "u", b"plain": "-", b"shared": "a"}
    assert house.call("verify", "photos").code == 0
    file = house.point() / "folder/a file"
    before = facts(house.point())
    for change, words in CHANGES if not far else CHANGES[:2]:
        change(file)
        ran = house.call("verify", "photos")
        assert ran.code != 0, (change, ran)
        assert words in str(ran.value), (change, ran)
        subprocess.run(["setfacl", "-b", file], check=True)
        for name in os.listxattr(file):
            os.removexattr(file, name)
        os.setxattr(file, "user.mine", b"\0odd\n value")
        assert facts(house.point()) == before
    assert house.call("verify", "photos").code == 0


def test_a_restore_compares_them(house: House, tmp_path: Path) -> None:
    tree(house)
    house.run(house.job())
    assert house.call("restore", "run", "photos", "--to", str(tmp_path / "back")).code == 0
    assert facts(tmp_path / "back") == facts(house.source)
    mark(house.point() / "plain")
    ran = house.call("restore", "run", "photos", "--to", str(tmp_path / "again"))
    assert (ran.code != 0, "plain" in str(ran.value), "attributes" in str(ran.value)) == (True, True, True), ran


def test_a_name_that_left_its_file_has_one_of_its_own_in_the_next_point(house: House) -> None:
    house.write("one", "content")
    os.link(house.source / "one", house.source / "two")
    house.run(house.job())
    before = facts(house.point())
    subprocess.run(["cp", "-a", "two", "three"], cwd=house.source, check=True)
    os.rename(house.source / "three", house.source / "two")
    house.write("note", "so that a run sees a change")
    assert house.run().outcome == "done"
    assert facts(house.point()) == facts(house.source)
    assert facts(house.point(0)) == before


@pytest.mark.parametrize(
    ("names", "later"), [((), ()), (("a/same",), ()), (("a/same",), ("b/later",)), ((), ("b/later",))]
)
@pytest.mark.sample(2)
def test_a_file_with_holes_keeps_them_when_only_its_metadata_changes(
    house: House, names: tuple[str, ...], later: tuple[str, ...]
) -> None:
    """Also one with several names, of which some may be new, and small ones."""
    image = house.write("folder/disk image.img")
    small = [house.write(f"folder/{size}") for size in (16, 64, 100)]
    with image.open("r+b") as file:
        file.truncate(40 << 20)
        file.seek(20 << 20)
        file.write(b"x" * 5000)
    for path in small:
        os.truncate(path, int(path.name) << 10)
    for folder in ("a", "b"):
        (house.source / folder).mkdir()
    for name in names:
        os.link(image, house.source / name)
    house.run(house.job())
    for name in later:
        os.link(image, house.source / name)
    for path in (image, *small):
        path.chmod(0o600)
        os.chown(path, 1000, 1001)
    assert house.run().outcome == "done"
    assert facts(house.point()) == facts(house.source)
    assert filled_holes(house.source, house.point()) == []
    for name in ("folder/disk image.img", *names, *later):
        assert (house.point() / name).stat().st_blocks * 512 < 100_000, name


LATE = """
import subprocess, sys
from orchestrator.verify import tree_attributes
source = sys.argv.pop(1)

class LateChange(tree_attributes.BareTree):
    @property
    def digests(self):
        found = super().digests
        subprocess.run(["setfacl", "-R", "-m", "u:1001:r", source], check=True)
        return found

tree_attributes.BareTree = LateChange
from orchestrator.cli import main
sys.exit(main())
"""


def copying(house: House) -> str:
    return str(house.call("plan", "photos").value)


@pytest.mark.namespace
def test_a_first_copy_of_what_has_none_is_made_without(house: House) -> None:
    """An entry that has some, however deep, changes that; the next copy is made with them in any case."""
    plain = house.write("in/deep/plain", "content")
    house.job()
    assert "--xattrs" not in copying(house)
    mark(plain)
    assert "--acls --xattrs" in copying(house)
    os.removexattr(plain, "user.foreign")
    assert house.run().outcome == "done"
    assert facts(house.point()) == facts(house.source)
    entitle(plain)
    assert "--acls --xattrs" in copying(house)
    assert house.run().outcome == "done"
    assert facts(house.point()) == facts(house.source)


@pytest.mark.namespace
def test_lists_that_come_between_look_and_copy_are_copied(house: House) -> None:
    house.write("in/deep/plain", "content")
    house.write("other", "content")
    house.job()
    argv = [*house.argv("run", "photos")]
    late = [argv[0], "-c", LATE, str(house.source), *argv[3:]]
    subprocess.run(late, env=house.environment, check=True, capture_output=True)
    assert house.call("verify", "photos").code == 0, "the manifest says what the point has"
    house.run()
    assert facts(house.point()) == facts(house.source)
    assert b"posix_acl" in str(facts(house.source)).encode()


@pytest.mark.namespace
def test_a_default_list_at_the_target_gives_the_copy_none(house: House) -> None:
    house.write("in/deep/plain", "content")
    house.target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["setfacl", "-d", "-m", "u:1001:rwx", house.target.parent], check=True)
    house.job()
    assert "--xattrs" not in copying(house)
    assert house.run().outcome == "done"
    assert house.call("verify", "photos").code == 0, "the manifest says what the point has"
    house.write("more", "content")
    assert house.run().outcome == "done"
    assert facts(house.point()) == facts(house.source)
