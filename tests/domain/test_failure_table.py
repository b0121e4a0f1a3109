"""The one table of failures: what fits a row, and that the shared rows stand in each table that reaches hosts."""

import re

import pytest

from orchestrator.disks import errors as disks
from orchestrator.domain.errors import HostUnreachable, OutsideError, PermissionDenied, TargetFull
from orchestrator.domain.failure_table import (
    CHANGED_KEY,
    LOGIN,
    NETWORK,
    FailureRow,
    ends,
    find_failure,
    first_line,
    hint_of,
    says,
    whole_lines,
)
from orchestrator.engines.pool import errors as pool
from orchestrator.engines.rsync import errors as rsync
from orchestrator.engines.sanoid import errors as sanoid
from orchestrator.engines.zfs.errors import messages as zfs

TABLES = {
    "rsync": rsync._TABLE, "zfs": zfs.ERROR_RULES, "sanoid": sanoid._TABLE, "pool": pool._TABLE, "disks": disks._TABLE,
}  # fmt: skip
FULL = says("no space", TargetFull, "full", "free space")
CUT = ends((12, 255), HostUnreachable, "cut", "again")
BOTH = FailureRow(words="odd", exits=(3,), program="mount", error=OutsideError, why="both", hint="look")


@pytest.mark.parametrize(
    ("said", "codes", "program", "found"),
    [
        ("there is no space", (12,), "", FULL),
        ("nothing known", (12,), "", CUT),
        ("nothing known", (1,), "", None),
        ("odd", (3,), "mount", BOTH),
        ("odd", (3,), "umount", None),
        ("odd", (4,), "mount", None),
        ("even", (3,), "mount", None),
    ],
)
def test_words_come_before_codes_and_all_conditions_must_hold(
    said: str, codes: tuple[int, ...], program: str, found: FailureRow | None
) -> None:
    fits = find_failure((FULL, CUT, BOTH), said, codes=codes, program=program)
    assert (fits.row if fits else None) == found


def test_the_place_is_told_so_that_its_whole_lines_can_be_shown() -> None:
    said = "first\n  there is no space\nlast"
    fits = find_failure((FULL,), said)
    assert fits is not None
    assert fits.at is not None
    assert whole_lines(said, fits.at) == "there is no space"
    assert first_line("\n \n two \n") == "two"
    assert first_line("") == ""


@pytest.mark.parametrize("name", TABLES)
def test_each_pattern_is_one_and_each_row_says_what_helps(name: str) -> None:
    for row in TABLES[name]:
        re.compile(row.words or "")
        assert row.words is not None or row.exits, row
        assert row.why, row
        assert row.hint, row
    assert len(set(TABLES[name])) == len(TABLES[name])


@pytest.mark.parametrize("name", ["rsync", "zfs", "sanoid", "pool"])
def test_what_reaches_hosts_says_the_same_of_ssh(name: str) -> None:
    assert {*LOGIN, *NETWORK} <= set(TABLES[name])
    assert TABLES[name].index(LOGIN[1]) < min(
        number
        for number, row in enumerate(TABLES[name])
        if row.error is PermissionDenied
        and row.words
        and re.search(row.words, "Permission denied (publickey)")
        and row not in LOGIN
    )


def test_the_hint_for_a_changed_host_key_is_the_command_that_ssh_named() -> None:
    said = "REMOTE HOST IDENTIFICATION HAS CHANGED!\n  ssh-keygen -f '/root/known hosts' -R '[nas]:2222'\n"
    assert "`ssh-keygen -f '/root/known hosts' -R '[nas]:2222'` here, then log in" in hint_of(CHANGED_KEY, said)
    assert "`ssh-keygen -R HOST` here" in hint_of(CHANGED_KEY, "Offending ED25519 key in x:1")
    assert hint_of(FULL, said) == "free space"
