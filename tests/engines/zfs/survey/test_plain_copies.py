"""Of which copies it is asked whether they need properties, and that no answer means that they do."""

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.domain.errors import Stopped
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command
from orchestrator.engines.zfs.model import Dataset, Snapshot
from orchestrator.engines.zfs.survey.plain_copies import choose_candidates
from orchestrator.engines.zfs.survey.survey import survey
from orchestrator.process.pipeline import PipelineResult, StopReason
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.zfs.sides import ASKED, COPY, HOST, MARK, SOURCE, A, B, C, dataset, job, side
from tests.engines.zfs.survey_text import HEAD, rows

NAMES = ("", "x", "y")
HERE = tuple(dataset(name, A, B, C) for name in NAMES)
THERE = tuple(dataset(name, A) for name in NAMES)


def asked_of(*more: tuple[Dataset, Dataset | None]) -> list[str]:
    """The datasets that are asked of, among three ordinary ones and these."""
    here, there = (one for one, _ in more), (one for _, one in more if one)
    return [one.name for one in choose_candidates(job(), side(SOURCE, *HERE, *here), side(COPY, *THERE, *there))]


def test_each_is_asked_of_with_all_that_may_be_sent() -> None:
    first, x, _ = choose_candidates(job(), side(SOURCE, *HERE), side(COPY, *THERE))
    assert (first.source, first.copy, first.snapshots) == (
        "tank/photos",
        "vault/copies/photos",
        ("tank/photos@b", "tank/photos@c"),
    )
    assert (x.name, x.source, x.copy) == ("x", "tank/photos/x", "vault/copies/photos/x")
    assert x.guids == {A.guid, B.guid, C.guid}


def test_nothing_is_asked_of_few_or_of_other_machines_or_where_no_properties_are_sent() -> None:
    source, target = side(SOURCE, *HERE), side(COPY, *THERE)
    far_source = side(Location(path=SOURCE.path, host=HOST), *HERE)
    far_target = side(Location(path=COPY.path, host=HOST), *THERE)
    assert choose_candidates(job(), source, far_target) == choose_candidates(job(), far_source, target) == ()
    assert choose_candidates(job(properties=False), source, target) == ()
    assert choose_candidates(job(), side(SOURCE, *HERE[:2]), target) == ()


MANY = tuple(Snapshot(name=f"s{number}", guid=number, createtxg=number) for number in range(1, 60))


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ({}, None),
        ({}, {"snapshots": ()}),
        ({}, {"snapshots": (C,)}),  # nothing to do
        ({}, {"snapshots": (Snapshot(name="own", guid=9, createtxg=9),)}),
        ({"snapshots": (B, C), "bookmarks": (MARK,)}, {}),  # from a bookmark no stream brings properties
        ({"encrypted": True}, {}),
        ({}, {"encrypted": True}),
        ({"waits": True}, {}),
        ({"burdens": {"dedup": "on"}}, {}),
        ({}, {"partial": True}),
        ({}, {"placeholder": True}),
        ({}, {"bare": True}),
        ({"snapshots": MANY}, {}),
    ],
)
def test_what_has_more_to_come_is_not_asked_of(here: dict[str, Any], there: dict[str, Any] | None) -> None:
    both = dataset("z", A, B, C), dataset("z", A)
    assert asked_of(both) == [*NAMES, "z"]
    assert asked_of((replace(both[0], **here), None if there is None else replace(both[1], **there))) == list(NAMES)


def looks(answer: PipelineResult) -> ScriptedExecutor:
    """Answers a survey of three datasets, and this to the question of their properties."""

    def listed(root: str, *names: str) -> PipelineResult:
        all_of = "".join(rows(f"{root}/{name}".rstrip("/")) for name in NAMES)
        marks = "".join(
            f"{root}/{name}".rstrip("/") + f"@{mark}\t{guid}\t{guid}\n"
            for name in NAMES
            for guid, mark in enumerate(names, 1)
        )
        return scripted_result(f"{HEAD}=datasets\n{all_of}=snapshots\n{marks}=end\n".encode())

    return ScriptedExecutor(
        [
            (lambda pipeline: "plain_copies" in str(pipeline), answer),
            (lambda pipeline: "survey.sh" in pipeline.stages[0].argv and SOURCE.path in pipeline.stages[0].argv, listed(SOURCE.path, "a", "b")),
            (lambda pipeline: "survey.sh" in pipeline.stages[0].argv, listed(COPY.path, "a")),
        ]
    )  # fmt: skip


def command_of(executor: ScriptedExecutor) -> Command:
    (command,) = (one.stages[0] for one in executor.requested if "plain_copies" in str(one))
    return command


def test_a_survey_asks_once_and_believes_a_whole_answer_alone() -> None:
    executor = looks(scripted_result(b"0\n2\n=end\n"))
    assert survey(job(protect=("compression",)), ASKED, executor).plain == {"": {1, 2}, "y": {1, 2}}
    never, *rest = command_of(executor).argv[4:]
    assert never.split(",") == ["mountpoint", "sharenfs", "sharesmb", "quota", "refquota", "reservation", "refreservation", "compression"]  # fmt: skip
    assert rest[:4] == ["tank/photos", "vault/copies/photos", "tank/photos@b", ""]
    assert rest.count("") == 3


@pytest.mark.parametrize("answer", [scripted_result(b"0\n2\n"), scripted_result(b""), scripted_result(b"", exits=(1,))])
def test_no_whole_answer_means_that_properties_are_sent(answer: PipelineResult) -> None:
    assert survey(job(), ASKED, looks(answer)).plain == {}


def test_a_request_to_stop_is_no_missing_answer() -> None:
    with pytest.raises(Stopped):
        survey(job(), ASKED, looks(replace(scripted_result(), stopped=StopReason.STOPPED)))
