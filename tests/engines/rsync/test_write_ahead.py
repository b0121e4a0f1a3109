"""Small files of a restore, written before rsync does the rest: where that pays."""

from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.job import PipeOptions
from orchestrator.domain.place import Location
from orchestrator.domain.units import Bytes
from orchestrator.engines.contract.restore import RestoreRequest
from orchestrator.engines.rsync.parallel import ParallelCopy
from orchestrator.engines.rsync.write_ahead import LEAST_AHEAD, count_ahead_of_restore, write_ahead_command
from tests.engines.rsync.builders import HOST, job, mirror, point

TO = Location(path="/srv/back")


@pytest.fixture
def wanted(tmp_path: Path) -> RestoreRequest:
    """A request for a point whose manifest is large."""
    manifest = tmp_path / "manifest.gz"
    manifest.write_bytes(bytes(LEAST_AHEAD * 30))
    return RestoreRequest(
        point=replace(point(), manifest=Location(path=str(manifest))), path=b"", to=TO, notes="/notes"
    )


def share(entries: int) -> ParallelCopy:
    return ParallelCopy(paths=(b"a",), size=Bytes(1), entries=entries)


def test_it_pays_for_many_entries_that_a_manifest_verifies(wanted: RestoreRequest) -> None:
    assert count_ahead_of_restore(job(), wanted, (), TO) == 2
    assert count_ahead_of_restore(job(parallel=1), wanted, (), TO) == 1
    assert count_ahead_of_restore(job(), replace(wanted, path=b"in"), (), TO) == 0, "how many lie there is not known"
    assert count_ahead_of_restore(job(), replace(wanted, path=b"in"), (share(LEAST_AHEAD - 1), share(1)), TO) == 2
    assert count_ahead_of_restore(job(), wanted, (share(LEAST_AHEAD - 2), share(1)), TO) == 0
    few = replace(wanted.point, manifest=wanted.point.tree / "gone")
    for kept in (few, replace(few, manifest=None), replace(few, manifest=Location(path="/m", host=HOST))):
        assert count_ahead_of_restore(job(), replace(wanted, point=kept), (), TO) == 0


@pytest.mark.parametrize("options", [{"owners": False}, {"modes": False}, {"fake_super": True}])
def test_a_copy_that_keeps_less_or_elsewhere_is_rsyncs(wanted: RestoreRequest, options: dict[str, Any]) -> None:
    assert count_ahead_of_restore(job(**options), wanted, (), TO) == 0


def test_a_mirror_a_limit_and_a_copy_anew_are_rsyncs(wanted: RestoreRequest) -> None:
    assert count_ahead_of_restore(mirror(), wanted, (), TO) == 0
    assert count_ahead_of_restore(job(), replace(wanted, anew=True), (), TO) == 0
    assert count_ahead_of_restore(replace(job(), pipe=PipeOptions(rate_limit=Bytes(1000))), wanted, (), TO) == 0


def test_what_is_left_is_told_in_the_notes_of_a_run(wanted: RestoreRequest) -> None:
    assert count_ahead_of_restore(job(), replace(wanted, notes=""), (), TO) == 0


def test_the_program_reads_the_names_that_rsync_reads() -> None:
    named = write_ahead_command(point().tree, TO, "/notes/lane-1", left="/notes/left-1")
    (one,) = named.stages
    assert named.reads == "/notes/lane-1"
    assert "/notes/left-1" in one.argv
    assert " 0 1 /notes/left-1 " in str(one)
    assert " 1 2 /n " in str(write_ahead_command(point().tree, TO, None, left="/n", share=(1, 2)))
    listed, same = write_ahead_command(point().tree, TO, None, left="/notes/left-1").stages
    assert (same, listed.argv[0]) == (one, "find")
    assert dict(one.environment)["PYTHONPATH"]
