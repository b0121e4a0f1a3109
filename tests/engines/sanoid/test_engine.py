"""The engine's face: the look, points, advice, and clear words where there is no copy."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.domain.errors import ProgramMissing, SourceMissing, SourceRenamed
from orchestrator.domain.job import SnapshotRules
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.source_identity import SOURCE_IDENTITY
from orchestrator.engines.contract.engine import Engine
from orchestrator.engines.contract.snapshots import Snapshotter
from orchestrator.engines.sanoid import ENGINE
from orchestrator.engines.sanoid.model import SanoidSurvey
from orchestrator.engines.sanoid.parse import parse_survey
from orchestrator.process.pipeline import PipelineResult
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.sanoid.builders import ASKED, FAR, FOLDER, GUID, NOW, ROOT, job, world

LOOK = b"1795187460\ntank/photos\t41\t-\ttank/photos\n\n1795187458\ttank/photos@autosnap_2026-11-20_15:10:58_daily\n"
DAILY = SnapshotRules(daily=2)


def mentions(word: str) -> Callable[[Pipeline], bool]:
    return lambda pipeline: word in str(pipeline)


def looks(result: PipelineResult, *, timer: bytes = b"") -> ScriptedExecutor:
    """A machine whose look ends so."""
    version = scripted_result(b"/usr/sbin/sanoid version 2.2.0\n")
    return ScriptedExecutor(
        [(mentions("--version"), version), (mentions("systemctl"), scripted_result(timer)), (mentions("zfs"), result)]
    )


def test_it_keeps_both_contracts() -> None:
    engine: Engine = ENGINE
    snapshotter: Snapshotter = ENGINE
    assert engine.name == "sanoid"
    assert snapshotter.take(job(DAILY), world(), FOLDER)
    assert snapshotter.prune_target(job(DAILY), FOLDER) == ()


def test_the_look_is_one_command_here_or_there() -> None:
    for source in (ROOT, FAR):
        reader = looks(scripted_result(LOOK))
        seen: SanoidSurvey = ENGINE.survey(job(DAILY, source=source), ASKED, reader)
        assert [len(reader.requested), seen.root, seen.snapshots[0].kind] == [1, source, "daily"]
        assert reader.requested[0].stages[0].host == source.host


def test_a_source_with_another_name_is_known_by_its_guid_and_its_own_rules_name_it_too() -> None:
    known = ENGINE.identity(world())
    assert (known, ENGINE.identity_of_kit("{}"), ENGINE.waiting(world())) == (f"{GUID} 0 {ROOT}", "", ())
    answers = ScriptedExecutor(
        [
            (mentions("find-datasets.sh"), scripted_result(b"=above\ttank\n5\ttank/old\n=end\n")),
            (lambda _: True, scripted_result(exits=(1,), words="cannot open 'tank/photos': dataset does not exist")),
        ]
    )
    remembered = replace(ASKED, remembered={SOURCE_IDENTITY: known})
    for rules, more in (
        (DAILY, ""),
        (SnapshotRules(use="/etc/sanoid"), ", and call it so in /etc/sanoid/sanoid.conf"),
        (None, ""),
    ):
        with pytest.raises(SourceRenamed) as raised:
            ENGINE.survey(job(rules), remembered, answers)
        assert raised.value.why == "the source tank/photos is called tank/old now, by its guid"
        assert raised.value.hint == (
            f'to go on under that name: write source = "tank/old" into photos.toml{more}; or give the former one back: '
            "zfs rename tank/old tank/photos"
        )
    with pytest.raises(SourceMissing) as absent:
        ENGINE.survey(job(DAILY), ASKED, answers)
    assert type(absent.value) is SourceMissing


def test_what_waits_to_be_pruned_is_told_with_its_space() -> None:
    day = parse_survey(LOOK, ROOT).snapshots[0]
    old = [replace(day, at=NOW - timedelta(days=days)) for days in (9, 5, 4, 3)]
    space = scripted_result(b"3000000\t1000000\n5\t500000\n5\t-\n")
    told = ENGINE.unpruned(job(DAILY), world(*old), looks(space))
    assert (
        told
        == "daily ones would go by [snapshots]; all its snapshots take 1.4 MiB, and 2.9 MiB are free in tank/photos"
    )
    reader = looks(space)
    for rules in (DAILY, SnapshotRules(daily=2, autoprune=False), None):
        assert ENGINE.unpruned(job(rules), world(day), reader) == ""
    assert reader.requested == []


def test_a_look_that_fails_is_never_empty() -> None:
    with pytest.raises(SourceMissing):
        ENGINE.survey(
            job(DAILY), ASKED, looks(scripted_result(exits=(1,), words="cannot open 'a': dataset does not exist"))
        )
    with pytest.raises(ProgramMissing):
        ENGINE.survey_snapshots(job(DAILY), looks(scripted_result(exits=(127,), words="sanoid: not found")))


def test_its_points_are_the_snapshots_where_they_are() -> None:
    (point,) = ENGINE.points(job(DAILY), looks(scripted_result(LOOK)))
    assert point.tree == Location(path="tank/photos@autosnap_2026-11-20_15:10:58_daily")


def test_what_could_not_go_is_told() -> None:
    name = "tank/a@autosnap_2026-11-20_15:10:58_daily"
    words = f"cannot destroy snapshot {name}: dataset is busy\ncould not remove {name} : 256 at sanoid line 1.\n"
    assert ENGINE.told(words) == (f"{name} could not be removed: dataset is busy",)
    assert "later" in ENGINE.told("INFO: deferring snapshot pruning (tank)...")[0]
    assert ENGINE.told(f"INFO: pruning {name} ... ") == ()


def test_advice_names_program_source_and_a_second_sanoid() -> None:
    found = ENGINE.advise(job(DAILY), looks(scripted_result(LOOK), timer=b"both\n"))
    assert [(each.good, each.hinders) for each in found] == [(True, True), (True, True), (False, False)]
    assert found[0].text == "version 2.2.0"
    assert "1 snapshot" in found[1].text
    assert [each.subject for each in ENGINE.advise(job(DAILY), looks(scripted_result(LOOK)))] == [
        "sanoid here",
        "source tank/photos",
    ]
    assert len(ENGINE.advise(job(), looks(scripted_result(LOOK), timer=b"both\n"))) == 2


def test_advice_says_what_is_wrong() -> None:
    reader = ScriptedExecutor(
        [
            (mentions("--version"), scripted_result(b"?")),
            (mentions("zfs"), scripted_result(exits=(1,), words="zfs: not found")),
        ]
    )
    found = ENGINE.advise(job(source=FAR), reader)
    assert [each.good for each in found] == [False, False]
    assert found[0].subject == "sanoid on root@master"
