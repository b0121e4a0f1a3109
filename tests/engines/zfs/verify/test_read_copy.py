"""Test what reads a copy whole: each dataset with all its snapshots, each block once."""

import pytest

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.place import Host
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.verify.read_copy import (
    listing_command,
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
LISTS = str(listing_command(job().target.location, CommandHost()))


def test_each_dataset_is_sent_from_its_first_snapshot_to_its_last() -> None:
    photos, mail = parse_readable_datasets(LISTED, job())
    assert (photos.name, photos.size, mail.name, mail.size) == (f"{PLACE}/photos", 1500, f"{PLACE}/mail", 70)
    assert [each.stages[0].argv[3:] for each in photos.reads] == [
        ("read-copy.sh", "send", "-w", f"{PLACE}/photos@a"),
        ("read-copy.sh", "send", "-w", "-I", f"{PLACE}/photos@a", f"{PLACE}/photos@b"),
    ]
    assert [each.stages[0].argv[3:] for each in mail.reads] == [("read-copy.sh", "send", "-w", f"{PLACE}/mail@a")]


def test_a_copy_elsewhere_is_read_there_and_crosses_no_line() -> None:
    """Seen: each half of the pipeline was a login of its own, so that all of the copy came here and went back."""
    far = job(place=Host(user="root", name="nas", port=None))
    reads = [each for one in parse_readable_datasets(LISTED, far) for each in one.reads]
    assert [len(each.stages) for each in reads] == [1, 1, 1]
    assert {each.stages[0].host for each in reads} == {far.target.location.host}


def test_nothing_of_it_changes_anything() -> None:
    assert all(pipeline.effect == 0 for each in parse_readable_datasets(LISTED, job()) for pipeline in each.reads)


def test_a_listing_that_failed_is_no_empty_copy() -> None:
    failed = scripted_result(exits=(1,), words="cannot open 'x': dataset does not exist")
    with pytest.raises(OrchestratorError):
        survey_readable_datasets(job(), ScriptedExecutor({LISTS: failed}))
    assert len(survey_readable_datasets(job(), ScriptedExecutor({LISTS: scripted_result(LISTED)}))) == 2
