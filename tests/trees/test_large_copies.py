"""Large files of a source, copied before rsync: nothing of what just changes, nothing through a link, half of one in its folder alone."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from xxhash import xxh3_128_hexdigest

from orchestrator.engines.rsync.parse import parse_moved, parse_progress
from orchestrator.trees import large_copies
from orchestrator.trees.plain_files import TargetTakesNothing
from tests.trees.large_writer import CONTENT, LEAST, PARTIAL, aged, large, there, write
from tests.whole.house import loop_filesystem


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.setattr(large_copies, "PIECE", 128 << 10)
    monkeypatch.setattr(large_copies, "_TOLD", 4)
    old, new = tmp_path / "old", tmp_path / "new"
    for folder in (old / "in/deep", new):
        folder.mkdir(parents=True)
    return old, new


def test_a_file_gets_content_metadata_and_its_digest_and_is_told_as_it_goes(trees: tuple[Path, Path]) -> None:
    old, new = trees
    name = "in/deep/line\n\\#012"
    large(old / name).chmod(0o4750)
    if os.geteuid() == 0:
        os.chown(old / name, 1234, 4321)
        (old / name).chmod(0o4750)
    os.utime(old / name, ns=(0, 1_000_000_007))
    aged(old)
    names = list[list[str]]()
    told = write(old, new, name, tell=lambda _: names.append(there(new)))
    found, copy = (old / name).stat(), (new / name).stat()
    assert (new / name).read_bytes() == CONTENT
    assert [found.st_mode, found.st_uid, found.st_gid, found.st_mtime_ns] == [
        copy.st_mode,
        copy.st_uid,
        copy.st_gid,
        copy.st_mtime_ns,
    ]
    assert list(parse_moved(b"".join(told).split(b"\n"))) == [(name.encode(), xxh3_128_hexdigest(CONTENT))]
    assert [parse_progress(each) for each in told] == [512 << 10, 1 << 20, len(CONTENT)]
    assert names == [["in/deep/partial/line\n\\#012"]] * 3, "it is named once it is whole, and reported"
    assert there(new) == [name]
    assert not (new / "in/deep/partial").exists()


def replaced(file: Path) -> None:
    large(file.with_name("other"), CONTENT[::-1]).rename(file)


CHANGES: tuple[Callable[[Path], object], ...] = (
    lambda file: file.write_bytes(CONTENT[::-1]),
    lambda file: os.truncate(file, LEAST // 2),
    lambda file: os.truncate(file, 0),
    lambda file: file.write_bytes(CONTENT * 3),
    lambda file: file.chmod(0o640),
    lambda file: os.link(file, file.with_name(f"{file.name} second")),
    lambda file: file.unlink(),
    replaced,
)


def test_a_file_that_changes_while_it_is_read_is_left(trees: tuple[Path, Path]) -> None:
    old, new = trees
    cases = {f"in/{number} {when}": (change, when) for number, change in enumerate(CHANGES) for when in (0, 1)}
    for name in (*cases, "in/quiet"):
        large(old / name)
    aged(old)
    for name, (change, when) in cases.items():
        reports = list[bytes]()

        def hear(lines: bytes, name: str = name, reports: list[bytes] = reports) -> None:
            if len(reports) == cases[name][1]:
                cases[name][0](old / name)
            reports.append(lines)

        told = write(old, new, name, "in/quiet", tell=hear)
        assert there(new) == ["in/quiet"], (name, change, when)
        assert [path for path, _ in parse_moved(b"".join(told).split(b"\n"))] == [b"in/quiet"]
        assert parse_progress(told[-1]) == len(CONTENT)
        (new / "in/quiet").unlink()


def test_what_changed_just_before_is_left(trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = trees
    changed = large(old / "in/file").stat().st_ctime_ns
    for later, written in ((50_000_000, False), (3_100_000_000, True)):
        monkeypatch.setattr(large_copies, "clock_gettime_ns", lambda _, now=changed + later: now)
        write(old, new, "in/file")
        assert there(new) == (["in/file"] if written else [])


def test_what_is_not_for_it_is_left_and_nothing_goes_through_a_link(trees: tuple[Path, Path], tmp_path: Path) -> None:
    old, new = trees
    large(old / "in/small", CONTENT[:-4])
    large(old / "in/one")
    os.link(old / "in/one", old / "in/two")
    with open(old / "in/holes", "wb") as file:
        file.truncate(3 * LEAST)
    (old / "in/link").symlink_to("../plain")
    large(old / "plain")
    os.mkfifo(old / "in/pipe")
    (old / "led").symlink_to("in")
    for name in ("ours", PARTIAL):
        (old / name).mkdir()
        large(old / name / "file")
    large(old / "in/deep/file")
    large(old / "in/there")
    (tmp_path / "away").mkdir()
    (new / "in").mkdir()
    (new / "in/deep").symlink_to(tmp_path / "away")
    (new / "in/there").symlink_to("nowhere")
    aged(old)
    names = "small one two holes link pipe deep/file there gone gone/file"
    write(
        old,
        new,
        *(f"in/{name}" for name in names.split()),
        "led/one",
        "ours/file",
        f"{PARTIAL}/file",
        "../old/plain",
        "in",
        "",
    )
    assert there(new) == ["in/there"]
    assert os.listdir(tmp_path / "away") == []
    assert sorted(os.listdir(new)) == ["in"]


def test_long_runs_of_zeros_become_holes_where_that_is_asked(trees: tuple[Path, Path]) -> None:
    old, new = trees
    content = b"x" + bytes(LEAST) + os.urandom(70_000) + bytes(LEAST)
    large(old / "in/file", content)
    with open(old / "in/file", "r+b") as file:  # written, and no hole
        os.fsync(file.fileno())
    aged(old)
    for holes in (False, True):
        (told,) = (each for each in write(old, new, "in/file", holes=holes) if b"pf:" in each)
        assert (new / "in/file").read_bytes() == content
        assert xxh3_128_hexdigest(content).encode() in told
        taken = (new / "in/file").stat().st_blocks * 512
        assert (taken < LEAST) == holes, taken
        (new / "in/file").unlink()


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_signal_ends_it_at_once_and_leaves_the_half_in_its_folder(
    trees: tuple[Path, Path], how: signal.Signals
) -> None:
    old, new = trees
    large(old / "in/file")
    aged(old)
    if not (child := os.fork()):
        try:
            write(old, new, "in/file", tell=lambda _: os.kill(os.getpid(), how))
        finally:
            os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == how
    assert there(new) == [f"in/{PARTIAL}/file"]
    half = (new / "in" / PARTIAL / "file").read_bytes()
    assert half == CONTENT[: 512 << 10]
    assert (new / "in" / PARTIAL).stat().st_mode & 0o777 == 0o700
    assert write(old, new, "in/file") == [], "the half is the copy's matter"


@pytest.mark.root
def test_a_full_disk_and_a_limit_of_sizes_leave_no_half_file(trees: tuple[Path, Path]) -> None:
    old, new = trees
    for name in ("one", "two"):
        large(old / f"in/{name}")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1600k", "none", str(new)], check=True)
    try:
        aged(old)
        with pytest.raises(TargetTakesNothing):
            write(old, new, "in/one", "in/two")
        assert there(new) == ["in/one"]
        assert (new / "in/one").read_bytes() == CONTENT
        (new / "in/one").unlink()
        if not (child := os.fork()):
            import resource

            resource.setrlimit(resource.RLIMIT_FSIZE, (LEAST, LEAST))
            try:
                write(old, new, "in/one")
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert there(new) == []
        assert os.listdir(new / "in") == []
    finally:
        subprocess.run(["umount", str(new)], check=True)


@pytest.mark.root
def test_on_a_filesystem_that_clones_no_byte_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The digest is that of the clone; what the source becomes meanwhile is in neither."""
    monkeypatch.setattr(large_copies, "PIECE", 128 << 10)
    monkeypatch.setattr(large_copies, "_TOLD", 4)

    def refuse(*_: object) -> int:
        raise AssertionError("a byte is written")

    with loop_filesystem(tmp_path, "mkfs.btrfs", "-q", size=120 << 20) as mounted:
        old, new = mounted / "old", mounted / "new"
        for folder in (old, new):
            folder.mkdir()
        for name in ("quiet", "changing"):
            large(old / name).chmod(0o640)
        aged(old)
        monkeypatch.setattr(large_copies, "_write_all", refuse)
        read, readv = set[str](), os.readv

        def watched(file: int, room: list[bytearray]) -> int:
            read.add(os.readlink(f"/proc/self/fd/{file}"))
            return readv(file, room)

        monkeypatch.setattr(os, "readv", watched)
        told = write(old, new, "quiet")
        assert read == {str(new / PARTIAL / "quiet")}, "what was stored proves that it was"
        assert (new / "quiet").read_bytes() == CONTENT
        assert (new / "quiet").stat().st_mtime_ns == (old / "quiet").stat().st_mtime_ns
        assert list(parse_moved(b"".join(told).split(b"\n"))) == [(b"quiet", xxh3_128_hexdigest(CONTENT))]
        seen = list[bytes]()

        def meddle(_: bytes) -> None:
            seen.append((new / PARTIAL / "changing").read_bytes())
            with open(old / "changing", "r+b") as file:
                file.write(b"changed")

        write(old, new, "changing", tell=meddle)
        assert seen == [CONTENT]
        assert there(new) == ["quiet"]
        with open(old / "quiet", "r+b") as file:
            file.write(b"changed")
        assert (new / "quiet").read_bytes() == CONTENT
