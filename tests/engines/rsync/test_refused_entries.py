"""Test that what rsync says of refused entries names those alone, whatever their owners called them."""

import errno
import os
from pathlib import Path

import pytest

from orchestrator.domain.place import Location
from orchestrator.engines.rsync.model import TEMPORARY
from orchestrator.engines.rsync.refused_entries import few_entries, find_refused
from tests.engines.rsync.builders import HOST, failed, job

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


@pytest.mark.parametrize("each", [True, False], ids=["an entry in each", "at the end alone"])
def test_many_refused_names_in_folders_that_are_deep_in_each_other(each: bool) -> None:
    deep = b"d/" * 1500
    entries = {deep[: 2 * depth] + b"x": "why" for depth in range(1, 1500) if each} | {
        b"%s%d" % (deep, number): "why" for number in range(3000)
    }
    few = few_entries(entries, 2000)
    assert 0 < len(few) <= 2000
    assert all(any(path == name or path.startswith(name + b"/") for name in few) for path in entries)
