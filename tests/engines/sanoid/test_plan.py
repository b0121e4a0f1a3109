"""Test what is due, what has outlived its time, and the steps that come of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies

from orchestrator.domain.job import KeepRules, SnapshotRules
from orchestrator.domain.plan import Effect, NothingToDo, Pipeline, Plan, Refusal, Step
from orchestrator.domain.source_state import SourceState
from orchestrator.engines.sanoid.model import ALL, INTERVAL_SECONDS, INTERVALS, SanoidRules, SanoidSnapshot
from orchestrator.engines.sanoid.parse import parse_survey
from orchestrator.engines.sanoid.plan import (
    due_intervals,
    find_excluded_datasets,
    interval_start,
    outlived_intervals,
    plan,
    prune_source_steps,
    prune_target_steps,
    refuse_misdated,
    take_steps,
)
from tests.engines.sanoid.builders import ASKED, FAR, FOLDER, NOW, ROOT, job, taken, world

DAILY = SnapshotRules(daily=2)
TODAY, YESTERDAY = taken("daily", 2026, 11, 20), taken("daily", 2026, 11, 19, 12)
OLD = (taken("daily", 2026, 11, 16), taken("daily", 2026, 11, 17))


def text_of(step: Step) -> str:
    """The configuration that a step works with."""
    assert isinstance(step.work, Pipeline)
    return step.needs[0][1].decode() if step.needs else step.work.stages[0].argv[5]


@pytest.mark.parametrize(
    ("kind", "then"),
    [
        ("frequently", (2026, 11, 20, 15, 0)),
        ("hourly", (2026, 11, 20, 15, 0)),
        ("daily", (2026, 11, 20)),
        ("weekly", (2026, 11, 16)),
        ("monthly", (2026, 11, 1)),
        ("yearly", (2026, 1, 1)),
    ],
)
def test_boundaries(kind: str, then: tuple[int, ...]) -> None:
    instant = datetime(*then, tzinfo=UTC)  # type: ignore[misc, arg-type]
    assert interval_start(kind, NOW) == instant
    assert interval_start(kind, instant) == instant
    assert interval_start(kind, instant - timedelta(seconds=1)) < instant


@given(strategies.datetimes(timezones=strategies.just(UTC)), strategies.sampled_from(INTERVALS))
def test_the_present_span_holds_the_instant(instant: datetime, kind: str) -> None:
    longest = timedelta(seconds=INTERVAL_SECONDS[kind], days=1 if kind == "yearly" else 0)
    assert interval_start(kind, instant) <= instant < interval_start(kind, instant) + longest
    assert interval_start(kind, interval_start(kind, instant)) == interval_start(kind, instant)


def test_due_is_what_the_present_span_lacks() -> None:
    rules = SanoidRules(hourly=3, daily=2)
    assert due_intervals(rules, world()) == ("hourly", "daily")
    assert due_intervals(rules, world(TODAY)) == ("hourly",)
    assert due_intervals(rules, world(YESTERDAY, taken("hourly", 2026, 11, 20, 15))) == ("daily",)
    assert due_intervals(rules, world(TODAY, taken("hourly", 2026, 11, 20, 15, 0, 1))) == ()


def test_the_day_is_that_of_the_machine_with_the_pool() -> None:
    late = datetime(2026, 11, 19, 23, 59, 59, tzinfo=UTC)
    assert due_intervals(SanoidRules(daily=2), world(YESTERDAY, at=late)) == ()
    assert due_intervals(SanoidRules(daily=2), world(YESTERDAY)) == ("daily",)


def test_outlived_is_what_is_older_than_its_spans_and_too_many() -> None:
    rules = SanoidRules(daily=2)
    assert outlived_intervals(rules, world(*OLD)) == ()
    assert outlived_intervals(rules, world(*OLD), coming=("daily",)) == ("daily",)
    assert outlived_intervals(rules, world(*OLD, TODAY)) == ("daily",)
    young = (taken("daily", 2026, 11, 19, 1), taken("daily", 2026, 11, 19, 2), TODAY)
    assert outlived_intervals(rules, world(*young)) == ()
    assert outlived_intervals(SanoidRules(hourly=1), world(*OLD, TODAY)) == ()


def test_the_day_begins_and_a_snapshot_is_taken() -> None:
    (step,) = take_steps(job(DAILY), world(YESTERDAY), FOLDER)
    assert step.action == "take daily snapshots of tank/photos"
    assert step.why == f"the newest daily one is {YESTERDAY.name}"
    assert step.effect is Effect.WRITES
    assert step.needs[0][0] == f"{FOLDER}/source-take/sanoid.conf"
    assert "recursive = zfs\nautosnap = yes" in text_of(step)
    assert isinstance(step.work, Pipeline)
    assert step.work.stages[0].argv[-1] == f"daily={int(interval_start('daily', NOW).timestamp())}"


def test_on_a_host_nothing_is_written_here() -> None:
    (step,) = take_steps(job(DAILY, source=FAR), world(root=FAR), FOLDER)
    assert step.needs == ()
    assert "[tank/photos]" in text_of(step)
    assert step.why == "there is no daily one"


@pytest.mark.parametrize("told", [None, SnapshotRules(), SnapshotRules(daily=2, autosnap=False)])
def test_nothing_is_taken_unasked(told: SnapshotRules | None) -> None:
    assert take_steps(job(told), world(), FOLDER) == ()


@pytest.mark.parametrize("told", [None, SnapshotRules(), SnapshotRules(daily=2, autoprune=False)])
def test_nothing_is_pruned_unasked(told: SnapshotRules | None) -> None:
    assert prune_source_steps(job(told), world(*OLD, TODAY), FOLDER) == ()
    assert prune_target_steps(job(told), FOLDER) == ()


def test_what_is_there_is_not_taken_again() -> None:
    assert take_steps(job(DAILY), world(TODAY), FOLDER) == ()
    assert prune_source_steps(job(DAILY), world(TODAY), FOLDER) == ()


def test_the_source_is_pruned_by_its_rules_and_other_kinds_are_left_alone() -> None:
    (step,) = prune_source_steps(job(DAILY), world(*OLD), FOLDER)
    assert step.effect is Effect.DESTROYS
    assert step.why == "kept are 2 daily"
    assert f"hourly = {ALL}\ndaily = 2\n" in text_of(step)
    assert prune_source_steps(job(SnapshotRules(daily=2, autosnap=False)), world(*OLD), FOLDER) == ()


def test_the_copy_is_pruned_by_keep() -> None:
    (step,) = prune_target_steps(job(SnapshotRules(hourly=24), keep=KeepRules(daily=30)), FOLDER)
    assert step.action == "prune snapshots of vault/replicas/photos"
    assert "autosnap = no\nautoprune = yes\nfrequently = 0\nhourly = 1\ndaily = 30\nweekly = 0\n" in text_of(step)
    assert prune_target_steps(job(SnapshotRules(hourly=24)), FOLDER) == ()
    assert prune_target_steps(job(SnapshotRules(hourly=24, autoprune=False), keep=KeepRules(daily=1)), FOLDER) == ()


def test_a_copy_whose_snapshots_others_take_is_pruned_too() -> None:
    (step,) = prune_target_steps(job(keep=KeepRules(daily=30)), FOLDER)
    assert "frequently = 1\nhourly = 1\ndaily = 30\nweekly = 1\n" in text_of(step)


def test_rules_of_ones_own_are_always_asked() -> None:
    own = job(SnapshotRules(use="/etc/sanoid"))
    took, pruned = take_steps(own, world(TODAY), FOLDER), prune_source_steps(own, world(TODAY), FOLDER)
    assert [step.needs for step in took + pruned] == [(), ()]
    assert "/etc/sanoid" in str(took[0].work)
    assert took[0].action == "take the snapshots of /etc/sanoid"
    assert pruned[0].why == "kept are the rules in /etc/sanoid"


def test_left_out_is_the_topmost_of_what_patterns_name() -> None:
    seen = world(below=("a", "a-b", "a/b", "a/b/c", "vm", "vm/x-tmp", "vm/x-tmp/y"))
    assert find_excluded_datasets(seen, ("a", "a/*", "vm/*-tmp")) == ("tank/photos/a", "tank/photos/vm/x-tmp")
    assert find_excluded_datasets(seen, ()) == ()
    assert find_excluded_datasets(seen, ("*",)) == ("tank/photos/a", "tank/photos/a-b", "tank/photos/vm")
    (step,) = take_steps(job(DAILY, exclude=("vm/*",)), seen, FOLDER)
    assert "recursive = yes\nautosnap = yes" in text_of(step)
    assert "[tank/photos/vm/x-tmp]" in text_of(step)


def test_a_job_of_its_own() -> None:
    decided = plan(job(DAILY), world(*OLD), ASKED)
    assert isinstance(decided, Plan)
    assert [len(stage) for stage in decided.stages] == [1, 1]
    assert decided.summary == "take daily snapshots of tank/photos and prune snapshots of tank/photos"
    nothing = plan(job(DAILY), world(TODAY), ASKED)
    assert nothing == NothingToDo(why="no snapshot is due and none is to go", current=TODAY.name)
    assert isinstance(plan(job(SnapshotRules(daily=2, autosnap=False)), world(), ASKED), NothingToDo)


def test_without_rules_it_is_refused() -> None:
    refused = plan(job(), world(), ASKED)
    assert isinstance(refused, Refusal)
    assert "[snapshots]" in refused.hint


def test_a_snapshot_from_the_future_is_refused_and_counts_no_more_under_another_name() -> None:
    wrong = taken("daily", 2026, 12, 20, 15, 10, 58)
    decided = plan(job(DAILY), world(wrong), ASKED)
    assert isinstance(decided, Refusal)
    assert decided.why == f"tank/photos@{wrong.name} is dated 30 d after now: until then sanoid takes no daily snapshot"
    assert decided.hint.endswith(f"zfs rename -r tank/photos@{wrong.name} @misdated-{wrong.name}")
    assert (
        refuse_misdated(
            job(DAILY),
            parse_survey(
                f"1\ntank/photos\t41\t-\ttank/photos\n\n9999999\ttank/photos@misdated-{wrong.name}\n".encode(), ROOT
            ),
        )
        is None
    )


@pytest.mark.parametrize(
    ("rules", "at"),
    [(SnapshotRules(use="/etc/sanoid"), (2027, 1, 1)), (SnapshotRules(hourly=1), (2027, 1, 1)), (SnapshotRules(daily=1), (2026, 11, 20, 15, 50)),
     (SnapshotRules(daily=1, autosnap=False), (2027, 1, 1))],
    ids=["rules of the owner's", "another kind", "a clock that was set back a little", "none is taken"],
)  # fmt: skip
def test_a_future_that_hinders_nothing_is_no_refusal(rules: SnapshotRules, at: tuple[int, ...]) -> None:
    assert refuse_misdated(job(rules), world(taken("daily", *at))) is None


spans = strategies.lists(strategies.integers(min_value=0, max_value=200 * 24), unique=True, max_size=12)


@given(spans, strategies.integers(min_value=1, max_value=5))
def test_what_is_outlived_always_leaves_the_newest(hours: list[int], number: int) -> None:
    there = tuple(
        SanoidSnapshot(name=f"autosnap_{each}_daily", kind="daily", at=NOW - timedelta(hours=each))
        for each in sorted(hours)
    )
    gone = outlived_intervals(SanoidRules(daily=number), world(*there))
    assert bool(gone) == (len(there) > number and max(hours, default=0) > number * 24)


def test_nothing_is_taken_or_removed_while_the_root_is_being_restored() -> None:
    """Seen: a restore that was cut could not go on, as the next night had taken snapshots of what was there by then."""
    for source, command in (
        (ROOT, f"zfs inherit poolferry:flags {ROOT}"),
        (FAR, f"ssh root@master 'zfs inherit poolferry:flags {ROOT}'"),
    ):
        found = plan(job(SnapshotRules(daily=1), source=source), replace(world(root=source), restoring=True), ASKED)
        assert isinstance(found, Refusal)
        assert found.why.startswith(f"{source} is being brought back from a copy, and is not whole yet")
        assert (found.source, found.hint.endswith(f"its owner has set that: {command}")) == (
            SourceState.RESTORING,
            True,
        )


def test_what_is_being_restored_below_is_left_out_alone() -> None:
    seen = replace(world(below=("a", "b", "c")), unfinished=("tank/photos/b", "tank/photos/c"))
    found = plan(job(SnapshotRules(daily=1), exclude=("c",)), seen, ASKED)
    assert isinstance(found, Plan)
    assert found.warnings == ("tank/photos/b, tank/photos/c: being restored, and left out until that is finished",)
    (step,) = found.steps
    text = step.needs[0][1].decode()
    assert [name for name in ("a", "b", "c") if f"[tank/photos/{name}]" in text] == ["b", "c"]
    assert "recursive = yes" in text, "one by one, as zfs would take those, too"
    old = taken("daily", 2026, 1, 1), taken("daily", 2026, 1, 2), taken("daily", 2026, 11, 20)
    (prune,) = prune_source_steps(
        job(SnapshotRules(daily=1)), replace(world(*old), unfinished=("tank/photos/b",)), FOLDER
    )
    assert "[tank/photos/b]" in prune.needs[0][1].decode()
    many = replace(seen, unfinished=tuple(f"tank/photos/{number}" for number in range(7)))
    told = plan(job(SnapshotRules(daily=1)), many, ASKED)
    assert isinstance(told, Plan)
    assert told.warnings[0].startswith(
        "tank/photos/0, tank/photos/1, tank/photos/2, tank/photos/3, tank/photos/4 …: being restored"
    )
