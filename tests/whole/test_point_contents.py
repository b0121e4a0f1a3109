"""`ls`, `find` and `diff` look into real restore points: here, over ssh, on a disk; with names that would obey a terminal."""

import os
import resource
import shlex
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.verify.entry import ManifestEntry
from orchestrator.verify.manifest import ManifestHeader, write_manifest
from tests.ferry import Ferry
from tests.whole.house import House
from tests.whole.loop_disks import LoopDisks, missing
from tests.whole.sshd import Sshd, sshd

__all__ = ["sshd"]
RED = b"\x1b[31mred\nadded 1 B  lie\xff"


@pytest.fixture(scope="module")
def ferry(tmp_path_factory: pytest.TempPathFactory) -> Ferry:
    """Two points of one job: the second has a change of each kind. What a test changes there, it puts back."""
    made = Ferry(tmp_path_factory.mktemp("contents"))
    source = made.job()
    (source / "same.txt").write_text("stays")
    assert made.run("run", "photos").code == 0
    time.sleep(1.1 - datetime.now(UTC).microsecond % 1)  # a point's name is exact to the second
    (source / "b.bin").write_text("short")
    (source / "deep" / "a.txt").unlink()
    (source / "same.txt").chmod(0o600)
    (Path(os.fsdecode(os.fsencode(source) + b"/" + RED))).write_text("x")
    (source / "link").symlink_to("deep")
    assert made.run("run", "photos").code == 0
    return made


def points(ferry: Ferry) -> list[str]:
    return [point["point"] for point in ferry.run("points", "photos", "--json").value["points"]]


@contextmanager
def manifests(target: Path) -> Iterator[list[Path]]:
    """The manifests of both points, oldest first; they are as before afterwards."""
    found = sorted((target / "points").glob("*.manifest.gz"))
    assert len(found) == 2
    before = {path: path.read_bytes() for path in found}
    try:
        yield found
    finally:
        for path, content in before.items():
            path.write_bytes(content)


def test_a_folder_is_listed_as_it_was(ferry: Ferry) -> None:
    old, new = points(ferry)
    now = ferry.run("ls", "photos")
    assert now.code == 0
    assert [line.split("  ")[-1] for line in now.out.splitlines()] == [
        "lie\\xff", "b.bin", "deep/", "link -> deep", "same.txt",
    ]  # fmt: skip
    assert "\\x1b[31mred\\nadded 1 B  lie\\xff" in now.out
    assert "\x1b" not in now.out
    before = ferry.run("ls", "photos", "deep", "--point", old, "--json").value
    assert (before["point"], [each["path"] for each in before["entries"]]) == (old, ["deep/a.txt"])
    assert (before["entries"][0]["size_bytes"], before["entries"][0]["type"]) == (11, "file")
    whole = ferry.run("ls", "photos", "--recursive", "--point", old).out
    assert "deep/a.txt" in whole
    one = ferry.run("ls", "photos", f"{ferry.root}/photos-source/deep/a.txt", "--point", old)
    assert (one.code, one.out.split()[-1]) == (0, "deep/a.txt")
    gone = ferry.run("ls", "photos", "deep/a.txt")
    assert (gone.code, gone.out) == (1, "")
    assert f"no deep/a.txt in {new}" in gone.err
    assert ferry.run("find", "photos", "a.txt").code == 0, "as the hint says"
    assert ferry.run("ls", "photos", "../x").code == 2


def test_a_file_is_found_with_its_versions_in_all_points(ferry: Ferry) -> None:
    old, new = points(ferry)
    same = ferry.run("find", "photos", "same.txt")
    assert (same.code, same.out.splitlines()[0]) == (0, "same.txt")
    assert same.out.splitlines()[1].endswith(f"from {old} to {new} (2 points)")
    (found,) = ferry.run("find", "photos", "*.bin", "--json").value["files"]
    assert [(each["first"], each["last"], each["size_bytes"]) for each in found["versions"]] == [
        (old, old, 256 * 64), (new, new, 5),
    ]  # fmt: skip
    assert [each["path"] for each in ferry.run("find", "photos", "d*/a.*", "--json").value["files"]] == ["deep/a.txt"]
    none = ferry.run("find", "photos", "nothing")
    assert (none.code, none.out) == (1, "")
    assert "no name in 2 points fits nothing" in none.err


def test_who_names_a_whole_path_reads_the_command_that_finds_it(ferry: Ferry, tmp_path: Path) -> None:
    source = ferry.root / "photos-source"
    for pattern in (f"{source}/same.txt", "./same.txt"):
        none = ferry.run("find", "photos", "--", pattern)
        command = none.err.strip().partition("; paths are named below the source: ")[2]
        assert (none.code, shlex.split(command)) == (1, ["poolferry", "find", "photos", "--", "/same.txt"])
        assert ferry.run(*shlex.split(command)[1:]).code == 0
    refused = ferry.run(
        "--json", "restore", "run", "photos", "--path", f"{source}/deep", "--to", str(tmp_path / "back")
    )
    assert refused.code == 3
    command = refused.value["hint"].removeprefix("paths are named below the source: ")
    assert ferry.run(*shlex.split(command)[1:]).code == 0
    assert (tmp_path / "back").is_dir()
    assert ferry.run("find", "photos", "nothing", "--json").value["files"] == []


def test_two_points_are_compared(ferry: Ferry) -> None:
    old, new = points(ferry)
    told = ferry.run("diff", "photos")
    assert told.code == 0
    assert [line.split()[0] for line in told.out.splitlines()] == ["added", "changed", "removed", "added", "changed"]
    assert f"{old} to {new}: 2 added, 1 removed, 2 changed" in told.err
    value = ferry.run("diff", "photos", old, new, "--json").value
    assert {each["path"]: each["what"] for each in value["changes"] if each["change"] == "changed"} == {
        "b.bin": ["size", "time"], "same.txt": ["mode"],
    }  # fmt: skip
    assert (value["added"], value["removed"], value["changed"]) == (2, 1, 2)
    back = ferry.run("diff", "photos", new, old, "deep", "--json").value
    assert [(each["change"], each["path"]) for each in back["changes"]] == [("added", "deep/a.txt")]
    assert ferry.run("diff", "photos", old, "./deep").out.startswith("removed")
    assert ferry.run("diff", "photos", new).out == told.out, "of the newest: what it brought"
    assert ferry.run("diff", "photos", new, new).out == ""
    assert ferry.run("diff", "photos", "1999").code == 1
    assert ferry.run("diff", "photos", old, new, "deep", "more").code == 2


def test_a_damaged_manifest_is_one_clear_error_and_no_half_answer(ferry: Ferry) -> None:
    with manifests(ferry.target()) as (_, newest):
        whole = newest.read_bytes()
        for words, broken in (
            (("ls", "photos"), whole[: len(whole) // 2]),
            (("find", "photos", "*"), whole[:-4] + b"\0\0\0\0"),
            (("diff", "photos"), whole[:-9]),
            (("ls", "photos"), b"garbage"),
        ):
            newest.write_bytes(broken)
            told = ferry.run(*words)
            assert (told.code, told.out, "Traceback" in told.err) == (1, "", False), (words, told.err)
            assert "manifest" in told.err
        assert "manifest" in ferry.run("diff", "photos", "--json").value["error"]


def test_a_point_without_a_manifest_says_so(ferry: Ferry) -> None:
    old, new = points(ferry)
    with manifests(ferry.target()) as (_, newest):
        newest.unlink()
        told = ferry.run("ls", "photos")
        found = ferry.run("find", "photos", "same.txt")
    assert (told.code, told.out) == (1, "")
    assert f"point {new} of photos has no manifest" in told.err
    look = told.err.partition("look at the copy itself: ")[2].partition(";")[0]
    assert b"same.txt" in subprocess.run(shlex.split(look), capture_output=True, check=True).stdout
    assert found.code == 0
    assert f"in {old}" in found.out
    assert f"1 point without a manifest not looked into: {new}" in found.err


def test_points_and_jobs_are_completed(ferry: Ferry) -> None:
    old, new = points(ferry)
    for words in (["ls", "photos", "--point", ""], ["diff", "photos", ""], ["restore", "run", "photos", "--point", ""]):
        requested = {"COMP_WORDS": " ".join(["poolferry", *words]), "COMP_CWORD": str(len(words))}
        told = ferry.run(_POOLFERRY_COMPLETE="bash_complete", **requested)
        assert [line.partition(",")[2] for line in told.out.splitlines()] == [new, old], words
    told = ferry.run(_POOLFERRY_COMPLETE="bash_complete", COMP_WORDS="poolferry ls no --point 2", COMP_CWORD="4")
    assert (told.code, told.out.strip()) == (0, "")


def entries(count: int, *, time_ns: int) -> Iterator[ManifestEntry]:
    yield ManifestEntry(b"", "d", 0, 1, 0o755, 0, 0, 2, 1)
    for number in range(count):
        yield ManifestEntry(
            b"file-%07d.jpg" % number,
            "f",
            number,
            time_ns if number % 1000 == 0 else 1,
            0o644,
            0,
            0,
            1,
            2,
            b"",
            "xxh128:00",
        )


@pytest.mark.long
def test_a_hundred_thousand_entries_are_read_quickly(ferry: Ferry) -> None:
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with manifests(ferry.target()) as both:
        for number, path in enumerate(both):
            header = ManifestHeader(job="photos", source="/x", point="x", digest="xxh128", created=datetime.now(UTC))
            write_manifest(str(path), header, entries(100_000, time_ns=number + 5))
        assert len(ferry.run("ls", "photos").out.splitlines()) == 100_000
        assert len(ferry.run("ls", "photos", "--json").value["entries"]) == 100_000
        assert ferry.run("diff", "photos", "--json").value["changed"] == 100
        (found,) = ferry.run("find", "photos", "file-0001000.jpg", "--json").value["files"]
    assert len(found["versions"]) == 2
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - used < 30, "some 5 s"


@pytest.mark.slow
def test_points_of_a_host_are_looked_into(house: House, sshd: Sshd) -> None:
    house.job(target=sshd.url(house.target), pipe=sshd.pipe)
    house.write("deep/a", "one")
    assert house.run().outcome == "done"
    time.sleep(1.1)
    house.write("deep/a", "other")
    assert house.run().outcome == "done"
    listed = house.call("ls", "photos", "deep")
    assert [each["path"] for each in listed["entries"]] == ["deep/a"]
    assert [each["size_bytes"] for each in house.call("find", "photos", "a")["files"][0]["versions"]] == [3, 5]
    assert house.call("diff", "photos")["changed"] == 1
    assert house.call("ls", "photos", "nothing").code == 1


@pytest.mark.skipif(bool(missing()), reason=missing() or "none")
def test_points_on_an_attached_disk_are_looked_into(drawer: LoopDisks) -> None:
    drawer.enrolled("red")
    drawer.scan()
    red = drawer.full("red")
    away = drawer.run("ls", "photos")
    assert away.code == 75
    assert f"poolferry disks attach {red}" in away.err
    assert drawer.run("disks", "attach", red).code == 0
    told = drawer.run("ls", "photos", "--json").value
    assert (told["disk"], [each["path"] for each in told["entries"]]) == (red, ["a.txt", "b.bin"])
    assert f"on disk {red}" in drawer.run("ls", "photos").err
    assert drawer.run("disks", "eject", red).code == 0, "nothing holds it any more"
