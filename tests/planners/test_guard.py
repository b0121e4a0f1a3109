"""Guards: each limit refuses just above it, says what it saw and how to go on."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.job import GuardLimits, parse_limit
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import Changes, FolderChanges
from orchestrator.planners.guard import EXAMPLES, GUARDS, decide_guard

QUIET = Changes(entries_before=100, files_before=80, entries_now=100, deleted=0, changed=0, created=0)
GUARD = GuardLimits(
    max_deleted=parse_limit("30%"),
    max_changed=parse_limit("40"),
    max_deleted_per_folder=parse_limit("90%"),
    max_changed_per_folder=parse_limit("5"),
)


def decide(look: Changes, guard: GuardLimits = GUARD, *allowed: str) -> Refusal | None:
    return decide_guard(look, guard, job="photos", allowed=frozenset(allowed))


def refused(look: Changes, guard: GuardLimits = GUARD, *allowed: str) -> Refusal:
    refusal = decide(look, guard, *allowed)
    assert refusal is not None
    assert refusal.guard in GUARDS
    return refusal


def test_ordinary_change_passes() -> None:
    folder = FolderChanges(before=10, deleted=9, changed=5)
    assert decide(replace(QUIET, deleted=30, entries_now=70, changed=40, folders={b"a": folder})) is None


def test_a_first_run_passes() -> None:
    first = Changes(entries_before=0, files_before=0, entries_now=9, deleted=0, changed=0, created=9)
    assert decide(first) is None
    empty = replace(first, entries_now=0, created=0)
    assert decide(empty) is None
    assert decide(replace(empty, entries_before=None, files_before=None)) is None


def test_too_many_deleted_refuses_with_names_and_the_way_on() -> None:
    names = (b"a\xff", b"b\nc", *(b"%d" % number for number in range(30)))
    refusal = refused(replace(QUIET, deleted=31, entries_now=69, deleted_examples=names, changed_examples=(b"x",)))
    assert refusal.why == "31 of 100 entries are gone; max-deleted is 30%"
    assert refusal.evidence[:3] == ("deleted: a\\xff", "deleted: b\\nc", "deleted: 0")
    assert len(refusal.evidence) == EXAMPLES
    assert refusal.hint == "look at the source; if this is meant: poolferry run photos --allow max-deleted"
    assert refusal.guard == "max-deleted"


def test_too_many_changed_refuses() -> None:
    refusal = refused(replace(QUIET, changed=41, changed_examples=(b"x",)))
    assert refusal.why == "41 of 80 files have changed; max-changed is 40"
    assert (refusal.evidence, refusal.guard) == (("changed: x",), "max-changed")


def test_a_folder_is_judged_by_itself() -> None:
    folders = {
        b"b\n": FolderChanges(before=10, deleted=10, changed=6),
        b"a": FolderChanges(before=20, deleted=19, changed=0),
        b"c": FolderChanges(before=20, deleted=1, changed=0),
    }
    refusal = refused(replace(QUIET, folders=folders, deleted=30, deleted_examples=(b"a/1",)), GUARD)
    assert refusal.guard == "max-deleted-per-folder"
    assert refusal.why == (
        "a/: 19 of 20 entries are gone and 1 more; max-deleted-per-folder is 90%; "
        "b\\n/: 6 of 10 files have changed; max-changed-per-folder is 5"
    )
    assert refusal.evidence == (
        "a/: 19 of 20 entries are gone", "b\\n/: 10 of 10 entries are gone", "deleted: a/1",
        "b\\n/: 6 of 10 files have changed",
    )  # fmt: skip
    assert refusal.hint.endswith("--allow max-deleted-per-folder --allow max-changed-per-folder")
    assert refused(replace(QUIET, folders=folders), GUARD, "max-deleted-per-folder").guard == "max-changed-per-folder"


def test_names_are_told_once() -> None:
    folders = {b"a": FolderChanges(before=31, deleted=31, changed=0)}
    look = replace(QUIET, deleted=31, entries_now=69, folders=folders, deleted_examples=(b"a/1",))
    assert refused(look).evidence == ("deleted: a/1", "a/: 31 of 31 entries are gone")


def test_an_empty_source_refuses_whatever_the_limits() -> None:
    look = replace(QUIET, entries_now=0, deleted=100)
    assert refused(look, GuardLimits(max_deleted=None)).guard == "source-empty"
    assert refused(look).hint.endswith("run photos --allow source-empty --allow max-deleted")
    assert refused(replace(look, entries_before=None), GuardLimits(max_deleted=None)).evidence == (
        "entries in the newest point: an unknown number, at least 100",
        "entries now: 0",
    )
    assert decide(replace(look, entries_now=None), GuardLimits(max_deleted=None)) is None
    assert decide(look, GuardLimits(max_deleted=None), "source-empty") is None


@pytest.mark.parametrize(
    ("before", "now", "guard"), [(1, 2, "source-moved"), ("a", "a", None), (None, 2, None), (1, None, None)]
)
def test_another_filesystem_refuses(before: int | str | None, now: int | str | None, guard: str | None) -> None:
    look = replace(QUIET, device_before=before, device_now=now)
    refusal = decide(look)
    assert (refusal and refusal.guard) == guard
    assert not refusal or refusal.evidence == ("filesystem at the newest point: 1", "filesystem now: 2")
    assert decide(look, GUARD, "source-moved") is None


def test_an_unknown_number_before_is_taken_as_small_as_it_can_be() -> None:
    unknown = Changes(entries_before=None, files_before=None, entries_now=70, deleted=31, changed=0, created=1)
    assert refused(unknown).why == "31 of an unknown number, at least 100 entries are gone; max-deleted is 30%"
    assert decide(replace(unknown, deleted=29)) is None
    assert refused(replace(unknown, entries_now=None, deleted=4, changed=9)).why.startswith(
        "4 of an unknown number, at least 13"
    )
    assert decide(replace(unknown, entries_now=None, deleted=3, changed=9)) is None
    percent = GuardLimits(max_deleted=None, max_changed=parse_limit("99%"))
    assert refused(replace(unknown, changed=1), percent).guard == "max-changed"
    folder = {b"a": FolderChanges(before=None, deleted=9, changed=0)}
    assert refused(replace(unknown, deleted=9, folders=folder)).guard == "max-deleted-per-folder"
    assert decide(replace(unknown, deleted=9, folders={b"a": replace(folder[b"a"], changed=1)})) is None


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300), st.integers(0, 100))
def test_not_knowing_the_number_before_never_lets_more_through(
    kept: int, deleted: int, created: int, percent: int
) -> None:
    guard = GuardLimits(max_deleted=parse_limit(f"{percent}%"))
    look = Changes(
        entries_before=kept + deleted,
        files_before=0,
        entries_now=kept + created,
        deleted=deleted,
        changed=0,
        created=created,
    )
    known = decide(look, guard, "source-empty")
    unknown = decide(replace(look, entries_before=None), guard, "source-empty")
    blind = decide(replace(look, entries_before=None, entries_now=None), guard, "source-empty")
    assert (known is None) == (unknown is None)
    assert (known is None) == (deleted <= percent * (kept + deleted) / 100)
    assert known is None or blind is not None
