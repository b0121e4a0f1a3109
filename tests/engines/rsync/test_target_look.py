"""The look at a target by system calls tells what its script tells of the same target, and leaves to the script what is odd."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.engines.rsync import parse, script_commands
from orchestrator.engines.rsync.survey import command_runner
from orchestrator.engines.rsync.target_look import look_here
from orchestrator.process.executor import Reader

NAME = "2026-11-26T150000Z"


def by_script(root: Path) -> bytes:
    return command_runner(Reader())(script_commands.survey_target_command(Location(path=str(root))))


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """A target with all that a look tells of."""
    ours, points = tmp_path / "target/.poolferry", tmp_path / "target/points"
    for folder in (ours / "work", ours / "trash/2026-01-01T000000Z", ours / "trash/new\nline", points / NAME / "deep"):
        folder.mkdir(parents=True)
    (ours / "target.json").write_text('{"format": 1, "job": "photos", "coarse": false}\nmore')
    (ours / "manifest.gz").write_text("")
    os.utime(ours / "manifest.gz", ns=(1_123_456_789, 1_123_456_789))
    ours.chmod(0o700)
    (points / f"{NAME}.manifest.gz").write_text("")
    (points / os.fsdecode(b"caf\xe9 a")).write_text("")
    root = tmp_path / "target"
    (root / "latest").symlink_to(f"points/{NAME}")
    (root / "link").symlink_to("/nowhere")
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(root / "socket"))
    root.chmod(0o1775)
    return root


def _as_it_is(_: Path) -> None:
    """Change nothing."""


def _bare(root: Path) -> None:
    (root / ".poolferry").rename(root / "another")
    (root / "points").rename(root / "more")
    (root / "latest").unlink()


def _others(root: Path) -> None:
    (root / ".poolferry/target.json").unlink()
    (root / ".poolferry/manifest.gz").unlink()
    (root / "points").rename(root / "more")
    (root / "points").symlink_to("more")
    (root / "latest").unlink()
    (root / "latest").mkdir()


def _led(root: Path) -> None:
    (root / ".poolferry").rename(root / "another")
    (root / ".poolferry").symlink_to("another")


@pytest.mark.parametrize("change", [_as_it_is, _bare, _others, _led])
def test_both_tell_the_same(target: Path, change: Callable[[Path], None]) -> None:
    change(target)
    told, expected = look_here(str(target)), by_script(target)
    assert told is not None
    ours, theirs = told.split(b"\0"), expected.split(b"\0")
    # How much is free changes all the time.
    assert [ours[1].split()[at] for at in (1, 2, 4)] == [theirs[1].split()[at] for at in (1, 2, 4)]
    assert len(ours[1].split()) == 5
    assert (ours[0], ours[2], sorted(ours[3:])) == (theirs[0], theirs[2], sorted(theirs[3:]))
    seen = parse.parse_target(told, Location(path=str(target)), mirror=False)
    assert seen.exists


def _marker_elsewhere(root: Path) -> None:
    (root / ".poolferry/target.json").unlink()
    (root / ".poolferry/target.json").symlink_to("/etc/hostname")


def _marker_is_a_pipe(root: Path) -> None:
    (root / ".poolferry/target.json").unlink()
    os.mkfifo(root / ".poolferry/target.json")


def _marker_of_many(root: Path) -> None:
    (root / ".poolferry/target.json").write_bytes(b'{"format": 1, "job": "photos"}\0p d 2025-01-01T000000Z\0v d 1234\n')


def _manifest_is_a_folder(root: Path) -> None:
    (root / ".poolferry/manifest.gz").unlink()
    (root / ".poolferry/manifest.gz").mkdir()


@pytest.mark.parametrize("spoil", [_marker_elsewhere, _marker_is_a_pipe, _marker_of_many, _manifest_is_a_folder])
def test_what_is_odd_is_left_to_the_script(target: Path, spoil: Callable[[Path], None]) -> None:
    spoil(target)
    assert look_here(str(target)) is None


def test_a_path_through_links_and_one_that_leads_to_no_folder_are_left_to_the_script(target: Path) -> None:
    (target.parent / "way").symlink_to(target)
    for path in (target.parent / "way", target.parent / "way/points", target / "absent", target / "fifo"):
        assert look_here(str(path)) is None
    assert look_here("/") is None
    assert look_here(f"{target}/points/..") is None
    assert look_here(str(target / "points")) is not None
