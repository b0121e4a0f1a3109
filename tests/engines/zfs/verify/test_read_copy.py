"""Test what reads a copy whole: each dataset with all its snapshots, each block once."""

from pathlib import Path

import pytest

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.place import Host
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.verify.read_copy import (
    listing_command,
    parse_readable_datasets,
    read_command,
    survey_readable_datasets,
)
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.engines.zfs.script_runner import run, started
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


WHERE = CommandHost(host=Host(user="root", name="nas", port=None))


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
    far = job(place=WHERE.host)
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


@pytest.mark.parametrize("status", [0, 1, 137])
def test_it_is_read_whole_and_the_senders_status_is_not_lost(status: int, tmp_path: Path) -> None:
    zfs = f'echo "$*" > {tmp_path}/told; head -c 5M /dev/zero; echo why >&2; exit {status}'
    done = run(read_command(("send", "-w", "t@a b"), WHERE), tmp_path, {"zfs": zfs})
    assert (done.returncode, done.stderr, (tmp_path / "told").read_text()) == (status, "why\n", "send -w t@a b\n")
    assert "5242880 bytes" in done.stdout
    assert "\0" not in done.stdout, "none of it is handed on"


def test_a_reading_ends_when_nobody_listens_any_more(tmp_path: Path) -> None:
    """As after a link that is cut: nothing comes back by which it would see that, but for what dd says."""
    with started(read_command(("send", "-w", "t@a"), WHERE), tmp_path, {"zfs": "exec cat /dev/zero"}) as reads:
        assert reads.stdout
        reads.stdout.read(1)
        reads.stdout.close()
        assert reads.wait(60) not in (0, None)
