"""Guards: each limit refuses just above it, says what it saw and how to go on."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.job import GuardLimits, parse_limit
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import Changes, FolderChanges
from orchestrator.planners.guard import (
    EXAMPLES,
    GUARDS,
    GuardMemory,
    copy_name,
    decide_guard,
    loses_much,
    next_guard_memory,
    parse_guard_memory,
)

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


NOW = datetime(2026, 3, 4, tzinfo=UTC)
COPY = copy_name("red", "2026-03-04T000000Z")


def remembered(*runs: tuple[float, Changes], allowed: bool = False) -> GuardMemory:
    """The memory after these good runs, so many days ago."""
    text = None
    for days, look in runs:
        before, when = parse_guard_memory(text, COPY), NOW - timedelta(days=days)
        text = next_guard_memory(before, look, when, copy=COPY, loss_allowed=allowed)
    return parse_guard_memory(text, COPY)


def with_memory(look: Changes, memory: GuardMemory, guard: GuardLimits = GUARD) -> Refusal | None:
    return decide_guard(look, guard, job="photos", allowed=frozenset(), memory=memory, now=NOW)


def test_a_memory_that_cannot_be_read_is_forgotten() -> None:
    for text in (
        None,
        "",
        "{",
        "[]",
        '{"seen": [["never", 3]]}',
        '{"copies": {"x": "x"}}',
        '{"copies": []}',
        '{"shares": ["a"]}',
    ):
        assert parse_guard_memory(text) == GuardMemory()


def test_the_memory_comes_back_as_it_was_and_forgets_what_is_old() -> None:
    one, two = (
        replace(QUIET, entries_now=100, files_now=80),
        replace(QUIET, entries_now=90, files_now=70, files_gone=10, changed=20),
    )
    memory = remembered((40, one), (20, one), (10, one), (0, two))
    assert memory.files == 70
    assert memory.seen == ((NOW - timedelta(days=10), 100), (NOW, 90)), (
        "the same number is kept once, by when it was seen last"
    )
    assert memory.shares == (0.25,), "a run that changed nothing says nothing of what is usual"
    assert (memory.most_entries(NOW), memory.most_entries(NOW + timedelta(days=25))) == (100, 90)
    assert remembered((1, one), (0.5, one)) == remembered((1, one)), "nothing is written anew within a day"
    assert remembered((1, replace(one, entries_now=None))).seen == ()


def test_a_loss_in_small_parts_refuses_once_it_is_large() -> None:
    before = remembered((20, replace(QUIET, entries_now=100)), (10, replace(QUIET, entries_now=80)))
    look = replace(QUIET, entries_before=80, entries_now=65, deleted=15, deleted_examples=(b"x",))
    refusal = with_memory(look, before)
    assert refusal is not None
    assert refusal.why == "35 of 100 entries are gone in the last 30 days, a part in each run; max-deleted is 30%"
    assert (refusal.guard, refusal.evidence) == ("max-deleted", ("deleted: x",))
    assert with_memory(replace(look, created=15), before) is None, "what comes and goes in turn is no loss"
    assert with_memory(replace(look, entries_now=71, deleted=9), before) is None
    assert with_memory(replace(look, entries_now=None), before) is None
    for limit in (None, parse_limit("500")):
        assert with_memory(look, before, replace(GUARD, max_deleted=limit)) is None
    anew = remembered((20, replace(QUIET, entries_now=100)), (10, replace(QUIET, entries_now=80)), allowed=True)
    assert with_memory(look, anew) is None, "a person let that loss pass"
    assert decide(look) is None, "without a memory only this run counts"


def test_a_number_that_stood_for_long_is_what_a_loss_is_measured_by() -> None:
    before = remembered(*((day, replace(QUIET, entries_now=100)) for day in range(40, 0, -1)))
    after = remembered(
        *((day, replace(QUIET, entries_now=100)) for day in range(40, 9, -1)), (9, replace(QUIET, entries_now=71))
    )
    assert (before.most_entries(NOW), after.most_entries(NOW)) == (100, 100)
    refusal = with_memory(replace(QUIET, entries_before=71, entries_now=55, deleted=16), after)
    assert refusal is not None
    assert refusal.why.startswith("45 of 100 entries are gone in the last 30 days")


def test_a_share_that_is_usual_passes_where_the_limit_adapts() -> None:
    guard = GuardLimits()
    nightly = replace(QUIET, files_before=80, files_now=80, changed=60)
    assert with_memory(nightly, GuardMemory(), guard) is not None
    assert with_memory(nightly, remembered((1, nightly)), guard) is None
    assert with_memory(nightly, remembered((1, replace(nightly, changed=30))), guard) is not None
    assert with_memory(nightly, remembered((1, nightly)), replace(guard, max_changed=parse_limit("50%"))) is not None


def test_files_that_became_something_else_count_as_changed() -> None:
    before = remembered((1, replace(QUIET, files_now=80)))
    look = replace(QUIET, files_before=10, files_now=10, files_new=0, files_gone=0, created=70)
    assert before.replaced(look) == 70
    refusal = with_memory(look, before)
    assert refusal is not None
    assert refusal.why == "70 of 80 files have changed, 70 of them into links or other entries; max-changed is 40"
    assert before.replaced(replace(look, files_now=None)) == GuardMemory().replaced(look) == 0


def test_what_was_counted_at_one_copy_says_nothing_of_another() -> None:
    """A disk that is new or was away, and a place that is not mounted: all files are new there, and none became a link."""
    text = next_guard_memory(GuardMemory(), replace(QUIET, files_now=80), NOW, copy=COPY, loss_allowed=False)
    first = replace(QUIET, files_before=0, files_now=80, files_new=80, created=80)
    for other in (
        "",
        copy_name("red", ""),
        copy_name("red", "2026-03-05T000000Z"),
        copy_name("blue", "2026-03-04T000000Z"),
    ):
        assert with_memory(first, parse_guard_memory(text, other)) is None
    two = next_guard_memory(parse_guard_memory(text), first, NOW, copy=copy_name("blue", "x"), loss_allowed=False)
    after = next_guard_memory(parse_guard_memory(two), first, NOW, copy=copy_name("red", "y"), loss_allowed=False)
    assert parse_guard_memory(after).copies == {"blue/x": 80, "red/y": 80}
    assert (parse_guard_memory(after, COPY).files, parse_guard_memory(after, "red/y").files) == (None, 80)


def test_each_of_several_folders_is_judged_by_itself_and_named() -> None:
    few = FolderChanges(before=21, deleted=20, changed=0)
    look = replace(QUIET, entries_before=1000, deleted=20, entries_now=980, by_part=True, folders={b"etc": few})
    limits = GuardLimits(max_deleted=parse_limit("30%"))
    assert (decide(look, limits), loses_much(look)) == (None, False)
    many = replace(look, deleted=21, folders={b"etc": replace(few, before=22, deleted=21), b"home": few})
    assert (refused(many, limits).why, loses_much(many)) == (
        "etc/: 21 of 22 entries are gone; max-deleted is 30%",
        True,
    )
    assert not loses_much(replace(many, by_part=False))
    empty = refused(replace(look, deleted=0, folders={}, emptied=("/etc", "/srv/\n")))
    assert "the source /etc is empty, and its copy in the newest point is not" in empty.why
    assert (r"/srv/\n" in empty.why, empty.hint.count("--allow")) == (True, 1)
    gone = refused(replace(QUIET, device_before="device 7 mounted", device_now="device 1", unmounted=("/home",)))
    assert gone.why == "/home lies on another filesystem than at the newest point: is it mounted?"


def test_files_of_a_folder_that_the_job_names_no_more_became_nothing_else() -> None:
    memory = GuardMemory(files=80)
    look = replace(QUIET, files_now=20, files_before=20)
    assert (memory.replaced(look), memory.replaced(replace(look, given_up=("/home",)))) == (60, 0)
