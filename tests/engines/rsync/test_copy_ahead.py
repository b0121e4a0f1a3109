"""Small files of a first copy, written before rsync: the very programs of the plan, with a source that changes between the two."""

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
from orchestrator.domain.units import Bytes
from orchestrator.engines.rsync.model import RsyncSurvey, SparseFile
from orchestrator.engines.rsync.parse import parse_stats
from orchestrator.engines.rsync.write_ahead import LEAST_AHEAD_OF_COPY, count_ahead_of_copy
from tests.engines.rsync.ahead_copies import LANES, MANY, Copying, takes_missing_names
from tests.engines.rsync.builders import EMPTY, HOST, USED, job, mirror, world
from tests.whole.house import facts

ODD = ("line\n\tend", "\\#012", "é", os.fsdecode(b"\xff|pf:"))


def fill(source: Path) -> None:
    """Fill a source with what is written ahead, and what is not; wait until no file is young."""
    for name in ("a/gone", "a/same", "a/mode", "a/linked", "a/to folder", "a/to link", "a/to pipe", "a/deep/er/file",
                 "a/folder/in", "b/plain", "b/empty", "left/file", "other/file", "loose", "plain", "swapped/file"):  # fmt: skip
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(b"" if name.endswith("empty") else name.encode())
    for name in ODD:
        (source / "b" / name).write_bytes(os.fsencode(name))
    (source / "b/large").write_bytes(bytes(range(256)) * 1024)
    (source / "b/zeros").write_bytes(b"x" + bytes(20_000))
    (source / "b/attributes").write_bytes(b"x")
    os.setxattr(source / "b/attributes", "user.own", b"1")
    (source / "b/one").write_bytes(b"two names")
    os.link(source / "b/one", source / "b/two")
    (source / "b/set").write_bytes(b"set")
    (source / "b/shut").write_bytes(b"shut")
    if os.geteuid() == 0:
        os.chown(source / "b/set", 1234, 4321)
    (source / "b/set").chmod(0o6751)
    (source / "b/shut").chmod(0o000 if os.geteuid() == 0 else 0o400)
    for name in ("inherits/before", "inherits/listed"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_bytes(name.encode())
    for words in (("-d", "-m", "u:1234:rwx,o::-"), ("-m", "g:1234:r-x")):
        subprocess.run(["setfacl", *words, str(source / "inherits")], check=True)
    subprocess.run(["setfacl", "-m", "u:1234:r", str(source / "inherits/listed")], check=True)
    (source / "inherits/after").write_bytes(b"with the folder's list")
    (source / "inherits/deep").mkdir()
    (source / "inherits/deep/bare").write_bytes(b"without one")
    subprocess.run(["setfacl", "-b", str(source / "inherits/deep/bare")], check=True)
    (source / "b/capable").write_bytes(b"may bind any port")
    if os.geteuid() == 0:
        os.setxattr(
            source / "b/capable", "security.capability", bytes.fromhex("0100000200040000000000000000000000000000")
        )
    os.mkfifo(source / "b/pipe")
    os.utime(source / "b", ns=(0, 1_000_000_007))
    last = max(
        os.lstat(os.path.join(folder, name)).st_ctime_ns for folder, _, names in os.walk(source) for name in names
    )
    while time.time_ns() < last + 200_000_000:
        os.sched_yield()


def change(source: Path, *, lanes: bool) -> None:
    """Do what owners do, after the small files were read and before rsync looks."""
    (source / "a/gone").unlink()
    (source / "a/same").write_bytes(b"S/SAME")
    (source / "a/mode").chmod(0o640)
    os.link(source / "a/linked", source / "a/second name")
    (source / "a/to folder").unlink()
    (source / "a/to folder").mkdir()
    (source / "a/to folder/in").write_bytes(b"in")
    (source / "a/to link").unlink()
    (source / "a/to link").symlink_to("../../away")
    (source / "a/to pipe").unlink()
    os.mkfifo(source / "a/to pipe")
    (source / "a/folder/in").unlink()
    (source / "a/folder").rmdir()
    (source / "a/folder").write_bytes(b"file")
    (source / "a/later").write_bytes(b"later")
    (source / "a/deep/er").rename(source / "a/deep/moved")
    (source / "swapped/file").unlink()
    (source / "swapped").rmdir()
    (source / "swapped").write_bytes(b"swapped")
    if not lanes:  # of several, the one that is told of it by name fails as it always has
        (source / "left/file").unlink()
        (source / "left").rmdir()


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("changed", [False, True])
def test_what_is_left_is_copied_by_name(tmp_path: Path, lanes: bool, changed: bool) -> None:
    """Changes between the two come as they were read or as they are by then, and the comparison of both sides finds them; all else is equal."""
    copying = Copying(tmp_path, lanes=lanes)
    fill(copying.source)
    copying.run(copying.ahead)
    assert not copying.gave_up()
    before = facts(copying.source)
    if changed:
        change(copying.source, lanes=False)
        if not takes_missing_names(tmp_path):
            with pytest.raises(subprocess.CalledProcessError, match="exit status 2"):
                copying.run(copying.named)
            return
    copying.run(copying.named)
    now, made = facts(copying.source), facts(copying.work)
    if not changed:
        assert made == now
    other = {path for path in {*before, *now} if before.get(path) != now.get(path)}
    assert {path: each for path, each in made.items() if path not in other} == {
        path: each for path, each in now.items() if path not in other
    }
    for path in other & {*made}:
        assert made[path][:1] in {each[path][:1] for each in (before, now) if path in each}, path


@pytest.mark.root
@pytest.mark.parametrize("crosses", [True, False])
def test_a_folder_of_another_filesystem_is_rsyncs(tmp_path: Path, crosses: bool) -> None:
    copying = Copying(tmp_path, lanes=False, crosses=crosses)
    fill(copying.source)
    subprocess.run(["mount", "-t", "tmpfs", "none", str(copying.source / "other")], check=True)
    try:
        (copying.source / "other/file").write_bytes(b"there")
        copying.run(copying.ahead)
        assert copying.gave_up() == crosses
        copying.run((*(copying.copies if crosses else ()), *copying.named))
        seen = facts(copying.source)
        if not crosses:
            del seen[b"/other/file"]
        assert seen == facts(copying.work)
    finally:
        subprocess.run(["umount", str(copying.source / "other")], check=True)


@pytest.mark.parametrize("lanes", [False, True])
def test_a_source_that_changes_meanwhile_is_copied_as_it_is_then(tmp_path: Path, lanes: bool) -> None:
    copying = Copying(tmp_path, lanes=lanes)
    fill(copying.source)
    copying.run(copying.ahead)
    expected = {f"b/{name}" for name in ODD} | {"b/plain", "b/empty", "b/set", "a/gone", "a/deep/er/file"}
    expected |= {"inherits/before", "inherits/deep/bare"} | (set() if lanes else {"plain", "loose"})
    told = copying.told("moved-ahead-*")
    there = {
        os.path.relpath(os.path.join(at, name), copying.work)
        for at, _, names in os.walk(copying.work)
        for name in names
    }
    assert {os.fsdecode(path) for path in told} == there
    assert expected <= there
    left = {f"b/{name}" for name in "large zeros attributes one two pipe".split()} | {
        "inherits/listed",
        "inherits/after",
    }
    left |= {"b/capable"} if os.geteuid() == 0 else set()
    assert not there & left
    for path, digest in told.items():
        assert digest == xxh3_128_hexdigest((copying.work / os.fsdecode(path)).read_bytes())
    change(copying.source, lanes=lanes)
    assert not copying.gave_up()
    copying.run(copying.copies)
    assert facts(copying.source) == facts(copying.work)
    for path, digest in copying.told("moved-*").items():
        file = copying.work / os.fsdecode(path)
        if digest and file.is_file() and not file.is_symlink():  # a link has none
            assert digest == xxh3_128_hexdigest(file.read_bytes()), path
    stats = [parse_stats((copying.notes / f"moved-{number}").read_bytes()) for number in ((1, 2) if lanes else (0,))]
    regular = sum(path.is_file() and not path.is_symlink() for path in copying.work.rglob("*"))
    assert sum(each.regular for each in stats if each) == regular


def test_files_that_a_cut_left_without_their_time_are_copied_anew(tmp_path: Path) -> None:
    copying = Copying(tmp_path, lanes=False)
    fill(copying.source)
    copying.run(copying.ahead)
    for name, content in (("b/plain", b"half"), ("b/set", b"set"), ("plain", b"PLAIN")):
        (copying.work / name).write_bytes(content)  # whole or not, it has the time of its writing
    copying.run(copying.copies)
    assert facts(copying.source) == facts(copying.work)


def first(of: Job | None = None, **more: Any) -> tuple[Job, RsyncSurvey]:
    """A first copy by root that small files are written ahead of."""
    given = {"target": replace(EMPTY, by_root=True), "changes": MANY, "parallel_copies": LANES}
    return of or job(), world(**{**given, **more})


def test_it_is_for_first_copies_of_many_entries_within_this_machine() -> None:
    assert count_ahead_of_copy(*first()) == 2
    assert count_ahead_of_copy(*first(job(parallel=1), parallel_copies=None)) == 1, "no program beside it"
    by_root = replace(EMPTY, by_root=True)
    cases: tuple[dict[str, Any], ...] = (
        {"changes": replace(MANY, entries_now=LEAST_AHEAD_OF_COPY - 1)},
        {"changes": None},
        {"target": EMPTY},
        {"target": replace(USED, by_root=True)},
        *(
            {"target": each}
            for each in (replace(by_root, work=True), replace(by_root, led=True), replace(by_root, coarse=True))
        ),
        {"sparse": (SparseFile(paths=(b"a",), size=9, hole=9, owner=0),)},
        {"refused": ((b"a", "no"),)},
        {"mixed": "lies inside"},
    )
    for more in cases:
        assert count_ahead_of_copy(*first(None, **more)) == 0, more
    far = Location(path="/srv", host=HOST)
    others = [job(fake_super=True), job(checksum=True), job(owners=False), job(modes=False)]
    others += [job(excludes=("*.tmp",)), job(left_out="/notes/left-out"), job(source=far), job(target=far), mirror()]
    others += [replace(job(), pipe=PipeOptions(rate_limit=Bytes(1000))), replace(job(), parts=("srv/a",))]
    for other in others:
        assert count_ahead_of_copy(*first(other)) == 0, other
