"""Test that what rsync says of refused entries names those alone, whatever their owners called them."""

import errno
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync.left_out import OVER_QUOTA, leave_out_remainders, overgrown_files, rules_for
from orchestrator.engines.rsync.model import TEMPORARY, PartialFile
from orchestrator.engines.rsync.refused_entries import few_entries, find_refused
from tests.engines.rsync.builders import EMPTY, HOST, NOW, cut_world, failed, job

LONG = os.strerror(errno.ENAMETOOLONG)
ENDED = b"rsync error: some files/attrs were not transferred (see previous errors) (code 23) at main.c(1)"


def refused(message: str, source: Location, into: Path, who: str = "generator") -> set[bytes]:
    found = find_refused(
        failed(), [f"rsync: [{who}] {message}: {LONG} (36)".encode(), ENDED], job(source=source), str(into), None
    )
    return set(found.entries) if found else set()


@pytest.mark.parametrize(
    ("call", "number", "left_out"),
    [
        ("chown", errno.EDQUOT, True),
        ("chgrp", errno.EDQUOT, True),
        ("chown", errno.EINVAL, False),
        ("mkstemp", errno.EINVAL, True),
        ("mkstemp", errno.EDQUOT, False),
    ],
)
def test_of_owners_that_are_not_given_only_a_quota_leaves_out_a_file(call: str, number: int, left_out: bool) -> None:
    """In a container all owners that it does not know are invalid: without them a point would hold next to nothing."""
    line = f'rsync: [receiver] {call} "/copy/hers/.file.Ab12Cd" failed: {os.strerror(number)} ({number})'
    found = find_refused(failed(), [line.encode(), ENDED], job(), "/copy", None)
    assert (found is not None and set(found.entries) == {b"hers/file"}) is left_out


def test_links_that_cannot_be_named_are_listed_by_what_the_hint_says(tmp_path: Path) -> None:
    """It had SOURCE in it, for a person to replace."""
    source = tmp_path / "her 'links'"
    source.mkdir()
    os.symlink("x" * 2000, source / "long")
    os.symlink("x" * 1000, source / "short")
    found = find_refused(failed(code=13), [], job(source=Location(path=str(source))), "/copy", None)
    assert found is not None
    command = found.hint.split("`")[1]
    listed = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    assert listed == f"{source}/long\n"
    far = find_refused(failed(code=13), [], job(source=Location(path="/a b", host=HOST)), "/copy", None)
    assert far is not None
    assert f"`{HOST.ssh} " in far.hint


@pytest.mark.parametrize("far", [False, True], ids=["source here", "source far"])
@pytest.mark.parametrize("name", ['shared/alice" -> "x', 'shared/bob" -> "x', "shared/plain"])
def test_a_name_with_an_arrow_in_a_folder_of_several_users_leaves_out_no_entry_of_another(
    tmp_path: Path, far: bool, name: str
) -> None:
    """rsync's message looks as if the link were alice's folder, or bob's file."""
    for root in ("source", "copy"):
        (tmp_path / root / "shared/alice").mkdir(parents=True)
        (tmp_path / root / "shared/bob").write_text("his")
    text = 'long" -> "text'
    os.symlink(text, tmp_path / "source" / name)
    source = Location(path="/gone" if far else str(tmp_path / "source"), host=HOST if far else None)
    told = refused(f'symlink "{tmp_path}/copy/{name}" -> "{text}" failed', source, tmp_path / "copy")
    assert os.fsencode(name) in told
    assert all(each.startswith(os.fsencode(name)) for each in told)
    assert far or len(told) == 1


def test_a_link_that_changed_meanwhile_leaves_out_no_entry_of_another(tmp_path: Path) -> None:
    (tmp_path / "alice").mkdir()
    told = refused(
        f'symlink "{tmp_path}/copy/alice" -> "x" -> "text" failed', Location(path=str(tmp_path)), tmp_path / "copy"
    )
    assert told == {b'alice" -> "x'}


def test_a_hard_link_is_known_by_its_file(tmp_path: Path) -> None:
    for name in ("alice", "first"):
        (tmp_path / name).write_text(name)
    os.link(tmp_path / "first", tmp_path / 'alice" => x')
    told = refused(
        f'link "{tmp_path}/copy/alice" => x" => first failed', Location(path=str(tmp_path)), tmp_path / "copy"
    )
    assert told == {b'alice" => x'}


@pytest.mark.parametrize(
    ("folder", "temporary"),
    [
        ('hers/z.abcdef" -> "theirs', 'hers/z.abcdef" -> "theirs'),
        ('hers/z.abcdef" -> "theirs', TEMPORARY),
        ("hers", "hers"),
    ],
)
def test_a_file_that_gets_no_name_is_named_by_its_whole_path(tmp_path: Path, folder: str, temporary: str) -> None:
    """A folder with an arrow in its name made the message name a file of another folder."""
    told = refused(
        f'rename "{tmp_path}/{temporary}/.zfile.Ab12Cd" -> "{folder}/zfile"',
        Location(path="/gone"),
        tmp_path,
        "receiver",
    )
    assert told == {f"{folder}/zfile".encode()}


def test_more_refused_names_than_rules_may_be_leave_out_their_folder_and_no_other() -> None:
    entries = {f"home/hers/{number}".encode(): "why" for number in range(9)}
    others = {b"home/theirs/x": "why", b"other": "why"}
    all_of_it = {b"home/hers": "in it: why, and of many more such entries, so all of it is left out"}
    assert few_entries({**entries, **others}, 5) == {**all_of_it, **others}
    assert few_entries({**entries, **others}, 11) == {**entries, **others}
    assert few_entries(entries, 5) == all_of_it


OTHERS = [b"report", b"report-2026", b"a", b"zebra", b"x[y]", b"x\\\\y", b"x"]


@pytest.mark.parametrize(
    "made",
    [b"evil-%05d\xff", b"report%05d", b"x[y]*%05d", b"x\\\\y\\\\%05d", b"%05d", b"x%05d?"],
)
def test_many_refused_names_in_a_shared_folder_cost_no_other_name_there(tmp_path: Path, made: bytes) -> None:
    """Before, all of the folder was left out, with what others have there."""
    hers = [made % number for number in range(0, 3000, 7)]
    few = few_entries({b"tmp/" + name: "why" for name in hers}, 100)
    assert 1 < len(few) <= 100
    source = tmp_path / "source/tmp"
    source.mkdir(parents=True)
    for name in (*hers, *OTHERS):
        (source / os.fsdecode(name)).touch()
    (tmp_path / "rules").write_bytes(rules_for(few))
    (tmp_path / "copy").mkdir()
    rules = ("--from0", f"--exclude-from={tmp_path}/rules")
    subprocess.run(["rsync", "-a", *rules, f"{tmp_path}/source/", f"{tmp_path}/copy/"], check=True)
    assert sorted(os.listdir(os.fsencode(tmp_path / "copy/tmp"))) == sorted(OTHERS)
    half = tuple(
        PartialFile(path=b"tmp/" + name, lies=b"", orphan=False, have=1, wanted=2) for name in (*hers, *OTHERS)
    )
    request = RunRequest(now=NOW, notes="/n", refused=few)
    seen = leave_out_remainders(replace(EMPTY, half=half), request)
    assert [each.path for each in seen.half if each.wanted is not None] == [b"tmp/" + name for name in OTHERS]


def test_what_has_nothing_in_common_leaves_out_its_folder() -> None:
    few = few_entries({b"tmp/%c" % number: "why" for number in range(65, 91)}, 20)
    assert list(few) == [b"tmp"]


def test_of_many_alike_the_reason_is_told_once() -> None:
    few = few_entries({b"tmp/a%d" % number: "why" for number in range(90)}, 5)
    again = few_entries(few | {b"tmp/ab%d" % number: "why" for number in range(9)}, 4)
    told = "what begins so: why, and of many more such entries, so all of these are left out"
    assert len(again) <= 4
    assert set(again.values()) <= {told, "why"}
    assert told in again.values()


@pytest.mark.parametrize("each", [True, False], ids=["an entry in each", "at the end alone"])
def test_many_refused_names_in_folders_that_are_deep_in_each_other(each: bool) -> None:
    deep = b"d/" * 1500
    entries = {deep[: 2 * depth] + b"x": "why" for depth in range(1, 1500) if each} | {
        b"%s%d" % (deep, number): "why" for number in range(3000)
    }
    few = few_entries(entries, 2000)
    assert 0 < len(few) <= 2000
    assert all(any(path == name or path.startswith(name + b"/") for name in few) for path in entries)


def test_many_of_several_folders_are_together_no_more_rules_than_may_be() -> None:
    """rsync compares each name with each rule; a folder with few keeps its own names."""
    many = {b"%c/%04d" % (folder, number): "too long" for folder in b"ab" for number in range(60)} | {
        b"c/1": "too long"
    }
    few = few_entries(many, 100)
    assert len(few) <= 100
    assert few[b"c/1"] == "too long"
    assert not {b"a", b"b", b"c"} & few.keys()


def test_what_lies_in_a_folder_that_is_dropped_is_not_dropped_again() -> None:
    cut = cut_world(())
    left = ((b"hers", OVER_QUOTA), (b"hers/a", OVER_QUOTA), (b"hers-too", OVER_QUOTA), (b"other/a", "odd name"))
    assert overgrown_files(replace(cut, refused=left)) == (b"hers", b"hers-too")
    assert overgrown_files(replace(cut, refused=left, target=replace(cut.target, work=False))) == ()
