"""A target by system calls is as by the scripts: real filesystems answer alike, marks and points are the same, and what is odd is theirs to judge."""

import contextlib
import fcntl
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect, Pipeline, PointPublication
from orchestrator.engines.rsync import script_commands
from orchestrator.engines.rsync.abilities import ABILITIES
from orchestrator.engines.rsync.errors import explain
from orchestrator.runner.publish_point import PointPublisher
from orchestrator.trees.beneath import Folder
from orchestrator.trees.local_target import prepare_target, publish_point, try_abilities
from tests.whole.house import loop_filesystem, mounted

LACKS = {  # by root, and besides by any other user
    "ext4": (set(), {"owners", "devices", "xattrs"}),
    "ext4 with small inodes": ({"times"}, {"owners", "devices", "xattrs"}),
    "xfs": (set(), {"owners", "devices", "xattrs"}),
    "tmpfs": (set(), {"owners", "devices", "xattrs"}),
    "ramfs": ({"acls", "xattrs", "fake-super"}, {"owners", "devices"}),
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can enter."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        os.chmod(made, 0o755)
        yield Path(made)


def filesystem(name: str, folder: Path) -> contextlib.AbstractContextManager[Path | None]:
    match name:
        case "ext4":
            return loop_filesystem(folder, "mkfs.ext4", "-q", size=20 << 20)
        case "ext4 with small inodes":
            return loop_filesystem(folder, "mkfs.ext4", "-q", "-I", "128", size=20 << 20)
        case "xfs":
            return loop_filesystem(folder, "mkfs.xfs", "-q", size=300 << 20)
    return mounted(folder / "filesystem", kind=name)


def as_user(user: int, act: Callable[[], str]) -> str:
    """Return the short text that an act returns in a process of that user's."""
    ends, told = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            os.write(told, act().encode())
        finally:
            os._exit(0)
    os.close(told)
    with open(ends) as words:
        text = words.read()
    os.waitpid(child, 0)
    return text


def lacks_by_calls(root: Path) -> str:
    return " ".join(ability for ability in ABILITIES if not try_abilities(str(root), (ability,)))


def lacks_by_script(commands: Mapping[str, tuple[str, ...]]) -> str:
    return " ".join(each for each, argv in commands.items() if subprocess.check_output(argv, cwd="/"))


@pytest.mark.root
@pytest.mark.parametrize("name", list(LACKS))
def test_a_filesystem_holds_by_system_calls_what_the_script_says(name: str, folder: Path) -> None:
    with filesystem(name, folder):
        lacks = set[str]()
        for user, more in zip((0, 65534), LACKS[name], strict=True):
            root = folder / f"filesystem/{user}/new"
            root.parent.mkdir()
            os.chown(root.parent, user, user)
            lacks |= more
            commands = {
                each: script_commands.try_abilities_command(Location(path=str(root)), (each,)).argv
                for each in ABILITIES
            }
            for tried in (partial(lacks_by_calls, root), partial(lacks_by_script, commands)):
                assert set(as_user(user, tried).split()) == lacks, tried
                assert list(root.iterdir()) == [], "nothing of it stays"


def test_what_is_no_filesystems_own_is_left_to_the_script(tmp_path: Path) -> None:
    """A trial that was cut, our folder as a link or a file, a file in a path."""
    left = tmp_path / "left/.poolferry/abilities/new"
    left.parent.mkdir(parents=True)
    left.write_text("")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").mkdir()
    (tmp_path / "link/.poolferry").symlink_to("../elsewhere")
    (tmp_path / "file").mkdir()
    (tmp_path / "file/.poolferry").write_text("")
    for root in ("left", "link", "file", "file/.poolferry"):
        assert not try_abilities(str(tmp_path / root), ("names",))
        assert root == "left" or not prepare_target(str(tmp_path / root), "photos", ("work",), stored=False)
    assert left.exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert try_abilities(str(tmp_path / "new/below"), ("names", "times", "hard-links"))


def shape(root: Path) -> list[tuple[str, int, int, bytes]]:
    found = sorted((root, *root.rglob("*")))
    return [
        (str(each.relative_to(root)), each.lstat().st_mode, each.lstat().st_uid, each.read_bytes() if each.is_file() else b"") for each in found
    ]  # fmt: skip


@pytest.mark.parametrize("stored", [False, True])
def test_a_target_is_marked_as_by_the_script(tmp_path: Path, stored: bool) -> None:
    folders = ("work", "partial")
    one, other = tmp_path / "in/one", tmp_path / "in/other"
    command = script_commands.prepare_command(Location(path=str(one)), "phötos", folders, patience=1, stored=stored)
    for _ in range(2):  # a target that is ours already stays as it is
        subprocess.run(command.argv, check=True)
        assert prepare_target(str(other), "phötos", folders, stored=stored)
        assert shape(one) == shape(other)
    assert [mode & 0o777 for name, mode, _, _ in shape(other) if name.startswith(".poolferry")] == [
        0o700,
        0o600,
        0o700,
        0o600,
        0o700,
    ]


def _lock(ours: Path) -> int:
    held = os.open(ours / "lock", os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_SH)
    return held


def _fifo(ours: Path) -> None:
    (ours / "lock").unlink()
    os.mkfifo(ours / "lock")


def _folder(ours: Path) -> None:
    (ours / "work").rmdir()
    (ours / "work").symlink_to("/tmp")


def _owner(ours: Path) -> None:
    os.chown(ours, 1234, 1234)


@pytest.mark.root
@pytest.mark.parametrize("spoil", [_lock, _fifo, _folder, _owner])
def test_a_target_in_use_or_led_elsewhere_is_left_to_the_script(
    tmp_path: Path, spoil: Callable[[Path], int | None]
) -> None:
    assert prepare_target(str(tmp_path), "photos", ("work",), stored=False)
    held = spoil(tmp_path / ".poolferry")
    before = shape(tmp_path)
    assert not prepare_target(str(tmp_path), "photos", ("work",), stored=False)
    assert shape(tmp_path) == before
    if held is not None:
        os.close(held)
        assert prepare_target(str(tmp_path), "photos", ("work",), stored=False)


NAME, MANIFEST = "2026-11-26T150000Z", ".poolferry/manifest.gz"


def sync(folder: int) -> None:
    subprocess.run(["sync", "-f", f"/proc/{os.getpid()}/fd/{folder}"], check=True)


def made_ready(root: Path) -> Path:
    """A target with a tree that may become a point."""
    assert prepare_target(str(root), "photos", ("work",), stored=False)
    (root / ".poolferry/work/file").write_text("content")
    (root / MANIFEST).write_text("manifest")
    return root


@pytest.mark.parametrize("former", ["", "points/2025-01-01T000000Z"])
def test_a_point_is_published_as_by_the_script(tmp_path: Path, former: str) -> None:
    one, other = made_ready(tmp_path / "one"), made_ready(tmp_path / "other")
    for root in (one, other):
        if former:
            (root / "latest").symlink_to(former)
        (root / ".poolferry/latest").symlink_to("left by a cut")
    command = script_commands.publish_command(Location(path=str(one)), NAME, MANIFEST)
    subprocess.run(command.argv, check=True)
    assert publish_point(partial(Folder.at_place, str(other)), NAME, MANIFEST, sync)
    assert shape(one) == shape(other)
    assert os.readlink(other / "latest") == f"points/{NAME}"
    assert (other / "points" / NAME / "file").read_text() == "content"


@pytest.mark.parametrize("well", [0, 1])
def test_a_sync_that_fails_ends_the_publishing_where_it_is(tmp_path: Path, well: int) -> None:
    """The first one before anything has a name; the second leaves all as it is."""
    root, synced = made_ready(tmp_path), list[int]()

    def fail(folder: int) -> None:
        synced.append(folder)
        if len(synced) > well:
            raise RuntimeError("the disk did not take all")

    with pytest.raises(RuntimeError):
        publish_point(partial(Folder.at_place, str(root)), NAME, MANIFEST, fail)
    assert (root / "points" / NAME / "file").exists() == (root / "latest").exists() == bool(well)
    assert (root / ".poolferry/work/file").exists() == (root / ".poolferry/unwritten").exists() == (not well)
    assert prepare_target(str(root), "photos", ("work",), stored=False) == bool(well), "the script discards the copy"


@pytest.mark.root
def test_a_tree_that_its_owner_may_not_write_to_is_published_with_its_mode(tmp_path: Path) -> None:
    root = made_ready(tmp_path)
    (root / ".poolferry/work").chmod(0o500)
    assert publish_point(partial(Folder.at_place, str(root)), NAME, MANIFEST, sync)
    assert (root / "points" / NAME).stat().st_mode & 0o777 == 0o500


def test_a_point_is_published_where_its_copy_lies_though_another_target_took_its_path(tmp_path: Path) -> None:
    """An owner of the folder above may exchange two targets of ours while a copy goes on; before, the other one's half copy was a point."""
    root, other = made_ready(tmp_path / "photos"), made_ready(tmp_path / "papers")
    publisher = PointPublisher(explain)
    publisher.watch_disk(str(root))
    root.rename(tmp_path / "moved")
    other.rename(root)
    none = Pipeline(stages=(Command(argv=("false",), effect=Effect.WRITES),))
    work = PointPublication(root=Location(path=str(root)), name=NAME, manifest=MANIFEST, otherwise=none)
    publisher.publish(work, lambda _: None)
    publisher.let_go()
    assert (tmp_path / "moved/points" / NAME / "file").read_text() == "content"
    assert not (root / "points").exists()
    assert (root / ".poolferry/work/file").exists()


def _point_there(root: Path) -> None:
    (root / "points" / NAME).mkdir(parents=True)


def _manifest_there(root: Path) -> None:
    (root / "points").mkdir()
    (root / f"points/{NAME}.manifest.gz").write_text("")


def _points_elsewhere(root: Path) -> None:
    (root / "points").symlink_to("/tmp")


def _latest_is_a_folder(root: Path) -> None:
    (root / "latest").mkdir()


def _no_manifest(root: Path) -> None:
    (root / MANIFEST).unlink()


def _not_ours(root: Path) -> None:
    (root / "points").mkdir()
    os.chown(root / "points", 1234, 1234)


@pytest.mark.root
@pytest.mark.parametrize(
    "spoil",
    [_point_there, _manifest_there, _points_elsewhere, _latest_is_a_folder, _no_manifest, _not_ours],
)
def test_what_cannot_be_published_plainly_is_taken_back_and_left_to_the_script(
    tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    root = made_ready(tmp_path / "target")
    spoil(root)
    before = [each for each in shape(root) if each[0] not in ("points", ".poolferry/latest")]
    assert not publish_point(partial(Folder.at_place, str(root)), NAME, MANIFEST, sync)
    assert [each for each in shape(root) if each[0] not in ("points", ".poolferry/latest")] == before


@pytest.mark.root
def test_who_may_only_pass_through_a_folder_reaches_his_own_below_it() -> None:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as above:
        own = Path(above) / "own"
        own.mkdir()
        os.chmod(above, 0o711)
        os.chown(own, 12345, 12345)

        def look() -> str:
            with Folder.ours_at(str(own)) as folder:
                Path(folder.held, "file").touch()
                return " ".join(os.listdir(folder.fd))

        assert as_user(12345, look) == "file"
