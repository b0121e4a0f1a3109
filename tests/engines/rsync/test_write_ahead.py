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
from orchestrator.engines.rsync.write_ahead import LEAST_AHEAD, pays_ahead, write_ahead_command
from tests.engines.rsync.builders import HOST, job, mirror, point

TO = Location(path="/srv/back")


@pytest.fixture
def wanted(tmp_path: Path) -> RestoreRequest:
    """A request for a point whose manifest is large."""
    manifest = tmp_path / "manifest.gz"
    manifest.write_bytes(bytes(LEAST_AHEAD * 30))
    return RestoreRequest(point=replace(point(), manifest=Location(path=str(manifest))), path=b"", to=TO)


def share(entries: int) -> ParallelCopy:
    return ParallelCopy(paths=(b"a",), size=Bytes(1), entries=entries)


def test_it_pays_for_many_entries_that_a_manifest_verifies(wanted: RestoreRequest) -> None:
    assert pays_ahead(job(), wanted, ())
    assert not pays_ahead(job(), replace(wanted, path=b"in"), ()), "how many lie there is not known"
    assert pays_ahead(job(), replace(wanted, path=b"in"), (share(LEAST_AHEAD - 1), share(1)))
    assert not pays_ahead(job(), wanted, (share(LEAST_AHEAD - 2), share(1)))
    few = replace(wanted.point, manifest=wanted.point.tree / "gone")
    for kept in (few, replace(few, manifest=None), replace(few, manifest=Location(path="/m", host=HOST))):
        assert not pays_ahead(job(), replace(wanted, point=kept), ())


@pytest.mark.parametrize("options", [{"owners": False}, {"modes": False}, {"fake_super": True}])
def test_a_copy_that_keeps_less_or_elsewhere_is_rsyncs(wanted: RestoreRequest, options: dict[str, Any]) -> None:
    assert not pays_ahead(job(**options), wanted, ())


def test_a_mirror_a_limit_and_a_copy_anew_are_rsyncs(wanted: RestoreRequest) -> None:
    assert not pays_ahead(mirror(), wanted, ())
    assert not pays_ahead(job(), replace(wanted, anew=True), ())
    assert not pays_ahead(replace(job(), pipe=PipeOptions(rate_limit=Bytes(1000))), wanted, ())


def test_the_program_reads_the_names_that_rsync_reads() -> None:
    (one,) = write_ahead_command(point().tree, TO, "/notes/lane-1").stages
    assert write_ahead_command(point().tree, TO, "/notes/lane-1").reads == "/notes/lane-1"
    listed, same = write_ahead_command(point().tree, TO, None).stages
    assert (same, listed.argv[0]) == (one, "find")
    assert dict(one.environment)["PYTHONPATH"]
