"""Writes that a disk never took are done anew: the kernel tells of them once, and shows them whole from its memory until then."""

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.errors import TargetFull
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline, PointPublication
from orchestrator.engines.rsync import script_commands
from orchestrator.engines.rsync.errors import explain
from orchestrator.engines.rsync.model import MANIFEST, PARTIAL
from orchestrator.engines.rsync.survey import command_runner, survey_written
from orchestrator.process.executor import Reader
from orchestrator.runner.publish_point import PointPublisher
from tests.whole.house import House, facts, loop_filesystem, mounted
from tests.whole.kills import MIB
from tests.whole.sshd import Sshd, sshd

__all__ = ["sshd"]

pytestmark = [pytest.mark.root, pytest.mark.namespace]
# XFS goes on after errors; its log has its room from the begin.
_XFS = ("mkfs.xfs", "-q", "-K")


@pytest.fixture
def failing(house: House, tmp_path: Path) -> Iterator[House]:
    """Copies on a disk that has room for its own records and 8 MiB: it takes no more, and fails."""
    with mounted(tmp_path / "disk", "size=500m"), loop_filesystem(tmp_path / "disk", *_XFS, size=400 * MIB) as disk:
        house.target = disk / "copies"
        used = subprocess.run(["du", "-sm", disk.parent / "filesystem.img"], capture_output=True, text=True).stdout
        grow(house, int(used.split()[0]) + 8)
        yield house


def grow(house: House, size: int) -> None:
    """Give the disk so many MiB."""
    subprocess.run(["mount", "-o", f"remount,size={size}m", house.target.parent.parent], check=True)


def forget_memory(copy: Path) -> None:
    """Let only what the disk took be read from now on."""
    for path in copy.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.mark.parametrize("points", [True, False], ids=["points", "mirror"])
def test_what_the_disk_did_not_take_is_copied_anew(failing: House, points: bool) -> None:
    """Before, the next run found all of it in memory, and called it verified."""
    for number in range(24):
        failing.write(f"folder/{number}", random.randbytes(MIB))
    failing.job(rsync={"points": points})
    ran = failing.run()
    assert (ran.code, ran.outcome) == (1, "failed"), ran
    assert ran["why"].startswith("the disk did not take all that was written"), ran
    grow(failing, 500)
    ran = failing.run()
    assert ran.outcome == "done", ran
    assert "not certain that the disk took all" in str(ran["warnings"]), ran
    copy = failing.point() if points else failing.target
    forget_memory(copy / "folder")
    assert facts(failing.source / "folder") == facts(copy / "folder")
    assert failing.call("verify", "photos").code == 0
    assert failing.run().outcome == "nothing-to-do"


def hear_first(house: House, tmp_path: Path) -> None:
    """Let another program's sync be told of each error before the run's own."""
    other = tmp_path / "bin/sync"
    other.parent.mkdir()
    other.write_text('#!/bin/sh\n/usr/bin/sync "$@"\nexec /usr/bin/sync "$@"\n')
    other.chmod(0o755)
    house.environment["PATH"] = f"{other.parent}:{os.environ['PATH']}"


@pytest.mark.parametrize("points", [True, False], ids=["points", "mirror"])
def test_what_the_kernel_told_another_programs_sync_is_not_lost(failing: House, tmp_path: Path, points: bool) -> None:
    """Two runs may write to one disk, and the first sync of all is told what failed, and nobody after it."""
    hear_first(failing, tmp_path)
    for number in range(24):
        failing.write(f"folder/{number}", random.randbytes(MIB))
    failing.source.chmod(0o555)
    ran = failing.run(failing.job(rsync={"points": points}))
    assert (ran.code, ran.outcome, failing.points()) == (1, "failed", []), ran
    assert ran["why"].startswith("the disk did not take all that was written"), ran
    grow(failing, 500)
    assert failing.run().outcome == "done"
    copy = failing.point() if points else failing.target
    forget_memory(copy / "folder")
    assert facts(failing.source / "folder") == facts(copy / "folder")


def test_a_restore_that_the_disk_did_not_take_is_not_called_whole(failing: House, tmp_path: Path) -> None:
    """The same command, said again, copies anew what may be lost, though it looks whole."""
    back, disk = failing.target.parent / "back", failing.target
    failing.target = tmp_path / "copies"
    for number in range(24):
        failing.write(f"folder/{number}", random.randbytes(MIB))
    assert failing.run(failing.job()).outcome == "done"
    hear_first(failing, tmp_path)
    restore = ("restore", "run", "photos", "--to", str(back))
    ran = failing.call(*restore)
    assert (ran.code, ran.outcome) == (1, "failed"), ran
    assert ran["why"].startswith(("the disk did not take all", "not all could come back")), ran
    failing.target = disk
    grow(failing, 500)
    whole = {path: path.stat().st_ino for path in (back / "folder").iterdir()}
    assert len(whole) == 24
    ran = failing.call(*restore)
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert not [path for path, inode in whole.items() if path.stat().st_ino == inode], "each is a new file"
    forget_memory(back)
    assert facts(failing.source / "folder") == facts(back / "folder")


def test_a_single_file_that_the_disk_did_not_take_gets_no_place(failing: House, tmp_path: Path) -> None:
    """Before, it had its name, and the same command, said again, was refused: a restore overwrites nothing."""
    back, failing.target = failing.target.parent / "back", tmp_path / "copies"
    back.mkdir()
    big = failing.write("folder/big", random.randbytes(24 * MIB))
    assert failing.run(failing.job()).outcome == "done"
    restore = ("restore", "run", "photos", "--path", "folder/big", "--to", str(back))
    ran = failing.call(*restore)
    assert (ran.code, ran.outcome) == (1, "failed"), ran
    assert "the disk did not take all" in ran["why"], ran
    assert not (back / "big").exists()
    failing.target = back.parent / "copies"
    grow(failing, 500)
    ran = failing.call(*restore)
    assert (ran.code, ran.outcome) == (0, "done"), ran
    forget_memory(back)
    assert (back / "big").read_bytes() == big.read_bytes()
    assert os.listdir(back) == ["big"]


@pytest.mark.parametrize("single", [False, True], ids=["folder", "file"])
@pytest.mark.sample(1)
def test_a_half_copied_file_of_a_restore_in_doubt_is_begun_anew(
    failing: House, tmp_path: Path, sshd: Sshd, single: bool
) -> None:
    """From a host, rsync writes into what lies there only the blocks that differ in memory."""
    back, disk = failing.target.parent / "back", failing.target
    big = failing.write("folder/big", random.randbytes(24 * MIB))
    assert failing.run(failing.job(target=sshd.url(tmp_path / "copies"), pipe=sshd.pipe)).outcome == "done"
    to = back / "folder/big" if single else back
    to.parent.mkdir(parents=True, exist_ok=True)
    restore = ("restore", "run", "photos", *(("--path", "folder/big") if single else ()), "--to", str(to))
    assert failing.call(*restore).outcome == "failed"
    grow(failing, 500)
    (whole,) = back.rglob("big/big" if single else "big")
    part = whole.parent / PARTIAL / "big"
    part.parent.mkdir()
    whole.rename(part)  # as after a failure at its end
    failing.target, inode = disk, part.stat().st_ino
    with part.open("rb"):  # so that no new file has its number
        ran = failing.call(*restore)
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert (back / "folder/big").stat().st_ino != inode
    forget_memory(back)
    assert (back / "folder/big").read_bytes() == big.read_bytes()
    assert not list(back.rglob(PARTIAL))


@pytest.mark.parametrize("single", [False, True], ids=["folder", "file"])
def test_what_a_comparison_finds_wrong_is_copied_anew(house: House, tmp_path: Path, single: bool) -> None:
    """A cut leaves files of the right size and time with other bytes: before, the comparison failed each time."""
    first, back = house.write("folder/first", random.randbytes(MIB)), tmp_path / "back"
    assert house.run(house.job()).outcome == "done"
    flag, other = tmp_path / "flag", tmp_path / "bin/rsync"
    flag.touch()
    wrong = back / PARTIAL / "first/first" if single else back / "folder/first"
    other.parent.mkdir()
    other.write_text(
        f'#!/bin/sh\n/usr/bin/rsync "$@"\ncode=$?\nif [ -e {flag} ] && [ -e {wrong} ]; then rm {flag}\n'
        f"truncate -s 0 {wrong}; truncate -s 1M {wrong}; touch -r {first} {wrong}\nfi\nexit $code\n"
    )
    other.chmod(0o755)
    house.environment["PATH"] = f"{other.parent}:{os.environ['PATH']}"
    (tmp_path / "link").symlink_to(tmp_path)
    if single:
        back.mkdir()
    path = ("--path", "folder/first") if single else ()
    ran = house.call("restore", "run", "photos", *path, "--to", str(back))
    assert "does not match its manifest" in ran["why"], ran
    assert ran["hint"].startswith("run the command again"), ran
    assert not (back / "first").exists(), "what is not as the point promises gets no place"
    ran = house.call("restore", "run", "photos", *path, "--to", str(tmp_path / "link/back"))
    assert (ran.code, ran.outcome) == (0, "done"), ran
    if single:
        assert (back / "first").read_bytes() == first.read_bytes()
    else:
        assert facts(house.source) == facts(back)


def test_a_restore_without_a_manifest_that_was_cut_believes_nothing_for_its_size_and_time(
    house: House, tmp_path: Path
) -> None:
    """Nothing is compared at its end; before, a file that a power cut left without its bytes stayed so."""
    first, back = house.write("folder/first", random.randbytes(MIB)), tmp_path / "back"
    house.write("folder/second", "x")
    assert house.run(house.job()).outcome == "done"
    Path(f"{house.point()}.manifest.gz").unlink()
    lost, other = back / "folder/first", tmp_path / "bin/rsync"
    other.parent.mkdir()
    other.write_text(
        f'#!/bin/sh\n/usr/bin/rsync "$@"\ncode=$?\n[ -e {lost} ] || exit $code\n'
        f"truncate -s 0 {lost}; truncate -s 1M {lost}; touch -r {first} {lost}\nkill -9 $PPID\n"
    )
    other.chmod(0o755)
    path = house.environment["PATH"]
    house.environment["PATH"] = f"{other.parent}:{os.environ['PATH']}"
    restore = ("restore", "run", "photos", "--to", str(back))
    cut = house.start_call(*restore)
    cut.communicate(timeout=60)
    assert lost.exists()
    house.environment["PATH"] = path
    ran = house.call(*restore)
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert ran["why"].endswith("done, not verified"), ran
    assert facts(back) == facts(house.source)


def test_a_disk_that_fails_ends_the_run_with_its_own_cause(failing: House) -> None:
    """Before, a copy over a linked tree was made 100 times, as if the source had changed."""
    failing.write("folder/first", "content")
    assert failing.run(failing.job(retry={"attempts": 3, "wait": "1s"})).outcome == "done"
    for number in range(24):
        failing.write(f"folder/{number}", random.randbytes(MIB))
    ran = failing.run()
    assert (ran.outcome, ran["attempts"]) == ("failed", 1), ran
    assert ran["why"].startswith("the disk did not take all that was written"), ran
    assert not list(failing.state.rglob("*.new")), "the record of the next look is given up"


def run_stages(pipeline: Pipeline) -> None:
    for stage in pipeline.stages:
        subprocess.run(stage.argv, check=True)


def test_a_point_that_is_left_to_its_script_is_none_either(failing: House) -> None:
    ours, name = failing.target / ".poolferry", "2026-11-26T150000Z"
    (ours / "work").mkdir(parents=True)
    (failing.target / "points").mkdir()
    os.chown(failing.target / "points", 1234, 1234)  # of somebody else: the system calls leave it
    (ours / "manifest.gz").write_bytes(b"")
    root, publisher = Location(path=str(failing.target)), PointPublisher(explain)
    publisher.watch_disk(root.path)
    (ours / "work/file").write_bytes(random.randbytes(24 * MIB))
    assert subprocess.run(["sync", "-f", ours], check=False).returncode == 1  # another program, which is told
    script = Pipeline(stages=(script_commands.publish_command(root, name, MANIFEST),))
    work = PointPublication(root=root, name=name, manifest=MANIFEST, otherwise=script)
    with pytest.raises(TargetFull):
        publisher.publish(work, run_stages)
    publisher.let_go()
    assert (ours / "work").exists()
    assert (ours / "unwritten").exists(), "the next run discards the copy"


def test_all_of_a_mirror_is_in_doubt_where_no_list_says_which_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A filesystem without a time of change of its own lists nothing, and a find that fails lists too little."""

    def doubtful(place: Path, *, began: int) -> tuple[bytes, ...]:
        (place / ".poolferry/work").mkdir(parents=True, exist_ok=True)
        (place / "file").touch()
        at = (place / "file").stat().st_ctime_ns + began * 10**9
        os.utime(place / ".poolferry/work", ns=(at, at))
        return survey_written(Location(path=str(place)), command_runner(Reader()))

    with mounted(tmp_path / "unknown", "mode=755", "ramfs"):
        assert doubtful(tmp_path / "unknown", began=10) == (b"",)
    with mounted(tmp_path / "known"):
        assert doubtful(tmp_path / "known", began=10) == ()
        assert doubtful(tmp_path / "known", began=2) == (b"file",), "a time may be one of whole seconds"
        find = tmp_path / "bin/find"
        find.parent.mkdir()
        find.write_text('#!/bin/sh\n/usr/bin/find "$@"\nexit 1\n')
        find.chmod(0o755)
        monkeypatch.setenv("PATH", f"{find.parent}:{os.environ['PATH']}")
        assert doubtful(tmp_path / "known", began=10) == (b"",)
