"""The [sanoid] section, the rules of [snapshots], and what of both does not fit together."""

from dataclasses import replace

import pytest

from orchestrator.domain.job import KeepRules, SnapshotRules, VerifyRules
from orchestrator.domain.place import Location
from orchestrator.domain.source_tree import SourceTree
from orchestrator.engines.sanoid.model import INTERVALS, SanoidRules
from orchestrator.engines.sanoid.options import (
    SanoidOptions,
    excluded_patterns,
    is_recursive,
    mistakes,
    rules_of,
    rules_on_target,
    snapshot_mistakes,
    snapshots_of,
)
from tests.engines.sanoid.builders import COPY, ROOT, job

BLANK = Location(path="tank/my photos")


def test_a_section_without_rules_is_none() -> None:
    assert snapshots_of(job()) is None
    assert snapshots_of(job(SnapshotRules())) is None
    assert snapshots_of(job(SnapshotRules(daily=1))) == SnapshotRules(daily=1)
    assert snapshots_of(job(SnapshotRules(use="/etc/sanoid"))) is not None


def test_rules_are_the_numbers() -> None:
    rules = rules_of(SnapshotRules(hourly=24, daily=7))
    assert rules == SanoidRules(hourly=24, daily=7)
    assert rules.kinds == ("hourly", "daily")
    assert str(rules) == "24 hourly, 7 daily"


def test_on_the_target_the_newest_of_each_kind_stays() -> None:
    rules = rules_on_target(SnapshotRules(frequently=4, hourly=24, daily=7), KeepRules(daily=30, monthly=6))
    assert rules == SanoidRules(frequently=1, hourly=1, daily=30, monthly=6)


@pytest.mark.parametrize("told", [SnapshotRules(use="/etc/sanoid"), None])
def test_where_others_rule_any_kind_may_be_the_newest(told: SnapshotRules | None) -> None:
    rules = rules_on_target(told, KeepRules(daily=30))
    assert {kind: rules.of(kind) for kind in INTERVALS} == dict.fromkeys(INTERVALS, 1) | {"daily": 30}


@pytest.mark.parametrize(
    ("told", "key"),
    [
        (SnapshotRules(use="etc/sanoid"), "snapshots.use"),
        (SnapshotRules(use="/etc/sanoid", daily=1), "snapshots.use"),
    ],
)
def test_use_stands_alone(told: SnapshotRules, key: str) -> None:
    assert [found[0] for found in snapshot_mistakes(told, ROOT, COPY)] == [key]


@pytest.mark.parametrize(("source", "copy"), [(BLANK, COPY), (ROOT, BLANK)])
def test_sanoid_finds_nothing_below_a_blank(source: Location, copy: Location) -> None:
    told = SnapshotRules(daily=1)
    assert [found[0] for found in snapshot_mistakes(told, source, copy)] == ["snapshots.recursive"]
    assert not list(snapshot_mistakes(replace(told, recursive=False), source, copy))
    assert not list(snapshot_mistakes(SnapshotRules(use="/etc/sanoid"), source, copy))
    assert not list(snapshot_mistakes(told, ROOT, None))


def test_the_section_of_its_own_jobs_too() -> None:
    assert [found[0] for found in mistakes(SanoidOptions(), SourceTree(root=BLANK), BLANK, VerifyRules())] == ["source"]
    assert not list(mistakes(SanoidOptions(recursive=False), SourceTree(root=BLANK), BLANK, VerifyRules()))
    assert not list(mistakes(SanoidOptions(), SourceTree(root=ROOT), ROOT, VerifyRules()))
    assert [
        found[0] for found in mistakes(SanoidOptions(exclude=("/a", "b")), SourceTree(root=ROOT), ROOT, VerifyRules())
    ] == ["sanoid.exclude[0]"]


def test_what_lies_below_belongs_to_it_when_both_sections_say_so() -> None:
    assert is_recursive(job(SnapshotRules(daily=1)))
    assert not is_recursive(job(SnapshotRules(daily=1, recursive=False)))
    assert not is_recursive(job(SnapshotRules(daily=1), recursive=False))
    assert excluded_patterns(job(SnapshotRules(daily=1), exclude=("a",))) == ("a",)
    assert excluded_patterns(job(SnapshotRules(daily=1, recursive=False), exclude=("a",))) == ()


def test_a_job_without_datasets_is_a_mistake_of_ours() -> None:
    with pytest.raises(TypeError, match="photos"):
        is_recursive(replace(job(), options=object()))
