"""Programs that answer without an end, or not at all: each look ends, in bounded memory, with an error that names the host."""

import os
import resource
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from orchestrator.domain.errors import OrchestratorError, Stalled, UnreadableAnswer
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect, Pipeline, single_command
from orchestrator.domain.units import Seconds
from orchestrator.engines.pool.errors import explain as explain_pool
from orchestrator.engines.rsync.errors import explain as explain_rsync
from orchestrator.engines.rsync.source_summary import survey_tree
from orchestrator.engines.sanoid.errors import explain as explain_sanoid
from orchestrator.engines.zfs.errors.explain import explain as explain_zfs
from orchestrator.process import executor
from orchestrator.process.executor import PipelineFailed, Reader, Writer, pipeline_failure
from orchestrator.verify import manifest_lines
from tests.engines.rsync.builders import job

MIB = 1 << 20
PRINTING = "import sys\nwhile True: sys.stdout.write({}); sys.stdout.flush(); {}"


def program(text: str, then: str = "") -> Pipeline:
    return single_command(sys.executable, "-c", PRINTING.format(text, then), effect=Effect.READS)


@pytest.mark.parametrize(
    ("limit", "value", "pipeline", "error"),
    [
        ("LONGEST_SILENCE", Seconds(1), single_command("sleep", "600", effect=Effect.READS), Stalled),
        ("LONGEST_LISTING", Seconds(1), program("'x' * 1000 + chr(0)", "__import__('time').sleep(0.05)"), Stalled),
        ("MOST_RECORDS", 8 * MIB, program("('x' * 1000 + chr(0)) * 100"), UnreadableAnswer),
    ],
    ids=["silence", "drops", "records without end"],
)
def test_a_listing_without_an_end_is_ended(
    monkeypatch: pytest.MonkeyPatch, limit: str, value: float, pipeline: Pipeline, error: type[OrchestratorError]
) -> None:
    monkeypatch.setattr(executor, limit, value)
    with pytest.raises(PipelineFailed) as caught, Reader().records(pipeline) as records:
        for _ in records:
            pass
    assert isinstance(explain_rsync(caught.value), error)


def test_a_file_that_collects_an_answer_does_not_fill_the_disk(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    pipeline = Pipeline(stages=program("'x' * 65536").stages, keeps=str(kept))
    result = Writer().stream(pipeline, most_kept=8 * MIB)
    assert not result.well
    assert isinstance(explain_rsync(pipeline_failure(pipeline, result)), UnreadableAnswer)


def test_a_file_that_was_too_large_at_its_end_is_refused_too(tmp_path: Path) -> None:
    pipeline = single_command("head", "-c", "2000", "/dev/zero", effect=Effect.READS)
    pipeline = Pipeline(stages=pipeline.stages, keeps=str(tmp_path / "kept"))
    assert not Writer().stream(pipeline, most_kept=1000).well
    assert Writer().stream(pipeline, most_kept=2000).well, "what lay there before does not count"


def test_no_reading_waits_for_ever() -> None:
    """A limit that a caller forgets to set has a default."""
    assert 0 < (Reader.read.__kwdefaults__ or {})["timeout"] <= 3600
    assert 0 < (Writer.stream.__kwdefaults__ or {})["stall_after"] <= 6 * 3600


@pytest.mark.parametrize("explain", [explain_rsync, explain_zfs, explain_sanoid, explain_pool])
@pytest.mark.parametrize(
    "reason", [executor.StopReason.STALLED, executor.StopReason.TIMED_OUT, executor.StopReason.FLOODED]
)
def test_who_was_silent_or_said_too_much_is_named(
    explain: Callable[[PipelineFailed], OrchestratorError], reason: executor.StopReason
) -> None:
    pipeline = Pipeline(stages=(Command(argv=("zfs", "list"), effect=Effect.READS, host=Host(name="nas")),))
    result = executor.PipelineResult(exits=(0,), last_output=("",), stopped=reason)
    error = explain(pipeline_failure(pipeline, result))
    assert "nas" in error.why
    assert error.hint


@pytest.fixture
def listing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A `find` that lists what this Python text prints, without an end."""

    def make(text: str) -> None:
        file = tmp_path / "find"
        file.write_text(
            f"#!{sys.executable}\nimport itertools, sys\nfor n in itertools.count():\n    sys.stdout.write({text}\n"
        )
        file.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return make


@pytest.mark.parametrize(
    "record",
    [
        r"f'{n}//f\t1\t1\t{n}\t8\0')",
        r"f'{n}//f\t1\t2\t{n}\t8\0')",
        r"f'{n}//d\t1\t2\t{n}\t8\0')",
        r"f'{n}/' + 'a/' * 1900 + 'b//f\t1\t1\t1\t8\0')",
    ],
    ids=["files", "hard links", "folders", "deep folders"],
)
def test_a_source_that_lists_without_an_end_fills_no_memory(
    listing: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, record: str
) -> None:
    monkeypatch.setitem(survey_tree.__globals__, "_half_the_memory", lambda: 8 * MIB)
    listing(record)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UnreadableAnswer, match="half the memory"):
        survey_tree(job(source=Location(path="/srv")), Reader())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 << 10


@pytest.mark.parametrize(
    "record", [r"f'{n}/.~poolferry-partial~//f\t1\t1\t1\t8\0')", r"'a/' * 9000 + f'{n}//f\t1\t1\t1\t8\0')"]
)
def test_what_is_passed_over_in_a_listing_fills_no_memory_either(
    listing: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, record: str
) -> None:
    monkeypatch.setattr(executor, "MOST_RECORDS", 32 * MIB)
    listing(record)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(UnreadableAnswer, match="said more"):
        survey_tree(job(source=Location(path="/srv")), Reader())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10


def test_a_path_deeper_than_rsync_can_copy_stops_no_run(listing: Callable[[str], None]) -> None:
    """An owner of files makes one with a few commands."""
    listing(r"'a/' * 20000 + 'b//f\t1\t1\t1\t8\0' + 'c//f\t5\t1\t2\t8\0'); sys.exit()")
    listed, _, _ = survey_tree(job(source=Location(path="/srv")), Reader())
    assert listed.totals() == (1, 5)


def test_a_packed_manifest_is_unpacked_in_pieces(tmp_path: Path) -> None:
    import gzip

    file = tmp_path / "m.gz"
    file.write_bytes(gzip.compress(manifest_lines.FORMAT + b"\n" * (64 * MIB), 9))
    assert file.stat().st_size < MIB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert max(map(len, manifest_lines.unpacked_pieces(str(file)))) <= 4 * MIB
    assert len(list(islice(manifest_lines.packed_lines(str(file)), 1000))) == 1000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 150 << 10
