"""Test what the source remembers of a pool that is away."""

import pytest

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.place import Location
from orchestrator.domain.rotation import IncrementBase
from orchestrator.domain.units import Bytes
from orchestrator.engines.zfs.plan.hold_names import (
    ReplicationTargetId,
    cursor_bookmark_name,
    hold_bookmark_name,
    replication_target_id,
)
from orchestrator.engines.zfs.space.forecast import parse_bases, source_pipeline, survey_bases
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.zfs.sides import job

POOL, OTHER = 15440512953407512343, 77
PLACE = job().target.location
SOURCE = job().source.path


def listing(*marks: str) -> bytes:
    rows = [(SOURCE, "4096"), (f"{SOURCE}/deep", "100"), *((mark, "-") for mark in marks)]
    return "".join(f"{name}\t{used}\n" for name, used in rows).encode()


def kept(*marks: str) -> dict[str, bool]:
    return {base.dataset.removeprefix(SOURCE): base.bookmark for base in parse_bases(listing(*marks), job(), POOL)}


def mark(dataset: str, target_id: ReplicationTargetId) -> str:
    return f"{SOURCE}{dataset}#{cursor_bookmark_name(target_id, 5)}"


def test_each_dataset_by_the_bookmark_for_this_very_copy() -> None:
    ours = replication_target_id(POOL, PLACE)
    assert kept() == {"": False, "/deep": False}
    assert kept(mark("", ours)) == {"": True, "/deep": False}
    assert kept(mark("", ours), mark("/deep", ReplicationTargetId(pool=POOL))) == {"": True, "/deep": True}, (
        "older names tell no place"
    )
    other_place = replication_target_id(POOL, Location(path="vault/elsewhere"))
    held = f"{SOURCE}#{hold_bookmark_name(ours, 5)}"
    assert not any(
        kept(mark("", ReplicationTargetId(pool=OTHER)), mark("", other_place), held, f"{SOURCE}#mine").values()
    )


def test_the_size_of_a_whole_copy_is_told() -> None:
    found = parse_bases(listing(), job(), POOL)
    assert found[0] == IncrementBase(dataset=SOURCE, snapshot=False, bookmark=False, kept=None, whole=Bytes(4096))


def test_only_what_the_job_copies_counts() -> None:
    alone = job(recursive=False)
    assert [base.dataset for base in parse_bases(listing(), alone, POOL)] == [SOURCE]
    assert "-d 1" in str(source_pipeline(alone))
    assert [base.dataset for base in parse_bases(listing(), job(exclude=("deep",)), POOL)] == [SOURCE]


def test_a_listing_that_failed_is_no_forecast() -> None:
    requested = str(source_pipeline(job()))
    assert survey_bases(job(), POOL, ScriptedExecutor({requested: scripted_result(listing())}))
    with pytest.raises(OrchestratorError):
        survey_bases(
            job(),
            POOL,
            ScriptedExecutor(
                {requested: scripted_result(exits=(1,), words="cannot open 'tank/photos': dataset does not exist")}
            ),
        )
