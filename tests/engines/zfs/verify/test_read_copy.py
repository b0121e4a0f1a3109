"""Test what reads a copy whole: each dataset with all its snapshots, each block once."""

import pytest

from orchestrator.domain.errors import OrchestratorError
from orchestrator.engines.zfs.verify.read_copy import (
    listing_pipeline,
    parse_readable_datasets,
    survey_readable_datasets,
)
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.zfs.sides import job

PLACE = job().target.location.path
LISTED = f"""{PLACE}\t24576\t0
{PLACE}/photos\t1000\t500
{PLACE}/photos@a\t-\t-
{PLACE}/mail\t70\t0
{PLACE}/photos@b\t-\t-
{PLACE}/mail@a\t-\t-
""".encode()


def test_each_dataset_is_sent_from_its_first_snapshot_to_its_last() -> None:
    photos, mail = parse_readable_datasets(LISTED, job())
    assert (photos.name, photos.size, mail.name, mail.size) == (f"{PLACE}/photos", 1500, f"{PLACE}/mail", 70)
    assert [str(each.stages[0]) for each in photos.reads] == [
        f"zfs send -w {PLACE}/photos@a", f"zfs send -w -I {PLACE}/photos@a {PLACE}/photos@b",
    ]  # fmt: skip
    assert [str(each) for each in mail.reads] == [f"zfs send -w {PLACE}/mail@a | dd of=/dev/null bs=1M status=none"]


def test_nothing_of_it_changes_anything() -> None:
    assert all(pipeline.effect == 0 for each in parse_readable_datasets(LISTED, job()) for pipeline in each.reads)


def test_a_listing_that_failed_is_no_empty_copy() -> None:
    failed = scripted_result(exits=(1,), words="cannot open 'x': dataset does not exist")
    with pytest.raises(OrchestratorError):
        survey_readable_datasets(job(), ScriptedExecutor({str(listing_pipeline(job())): failed}))
    assert (
        len(survey_readable_datasets(job(), ScriptedExecutor({str(listing_pipeline(job())): scripted_result(LISTED)})))
        == 2
    )
