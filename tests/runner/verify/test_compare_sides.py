"""A comparison from plan to verdict: listings read and thrown away, findings counted, history told what concerns the point."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator import compose
from orchestrator.domain.errors import OutsideError, VerificationFailed
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.domain.plan import Effect, Refusal, Step, single_command
from orchestrator.domain.point import Finding, Verdict
from orchestrator.domain.run import Outcome, RunType
from orchestrator.engines.contract.comparison import ComparisonPlan, SnapshotPair
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.zfs import ZfsEngine
from orchestrator.engines.zfs.options import ZfsOptions
from orchestrator.history.values import PointRecord
from orchestrator.process.executor import Reader
from orchestrator.process.stop import StopRequest
from orchestrator.runner.problems import missing_parts
from orchestrator.runner.run_recorder import RunRecorder, begin_run
from orchestrator.runner.verify.compare_sides import ComparisonResult, compare_copy, comparison_report, require_same

JOB = Job(
    name="photos", file="", engine="zfs", source=Location(path="tank/photos"),
    target=Place(name="vault", location=Location(path="vault/photos")), options=ZfsOptions(),
)  # fmt: skip
ROOT, END = b"//d\t2\t1.0000000000\t755\t0\t0\t2\t1\t\0", b"//~\0"
FILE = b"a//f\t5\t1.5000000000\t644\t0\t0\t1\t7\t\0"
GOOD = ROOT + FILE + b"a//=sha256:1\0" + END


class ComparisonEngine(ZfsEngine):
    """The engine, but it compares what it was told to."""

    def __init__(self, answer: ComparisonPlan | Refusal) -> None:
        self.answer = answer

    def survey_both(self, job: Job, requested: RunRequest, reader: Reader, *, content: bool) -> bool:
        return content

    def plan_comparison(
        self, job: Job, seen: Any, requested: RunRequest, *, point: str | None, content: bool
    ) -> ComparisonPlan | Refusal:
        assert seen is content
        return self.answer

    def heal(
        self, job: Job, seen: Any, requested: RunRequest, copy: tuple[Finding, ...], source: tuple[Finding, ...]
    ) -> tuple[str, ...]:
        return tuple(
            f"{each.path.decode()} of the {called}"
            for called, found in (("copy", copy), ("source", source))
            for each in found
        )


def listed(folder: Path, called: str, records: bytes) -> Step:
    source = folder / f"{called}.records"
    source.write_bytes(records)
    work = replace(single_command("cat", str(source), effect=Effect.READS), keeps=str(folder / called))
    return Step(action=called, why="", worker=called, work=work, expected=None)


def pair(folder: Path, source: bytes = GOOD, target: bytes = GOOD) -> SnapshotPair:
    return SnapshotPair(name=b"@p", source=listed(folder, "source", source), target=listed(folder, "target", target))


def comparison(
    *stages: tuple[SnapshotPair, ...], findings: tuple[Finding, ...] = (), point: str | None = "p"
) -> ComparisonPlan:
    return ComparisonPlan(point=point, checked=3, datasets=1, findings=findings, stages=stages, warnings=("mind this",))


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[RunRecorder]:
    where = compose.Directories(config=str(tmp_path), state=str(tmp_path / "state"))
    with compose.open_history(where) as history:
        tools = compose.make_run_context(
            JOB, where, history, notify=lambda _: None, log=lambda _: None, stop=StopRequest(), ssh_options=()
        )
        begun = begin_run(JOB, tools, "a test", RunType.VERIFY)
        begun.attempt_begun()
        yield begun


def compared(journal: RunRecorder, answer: ComparisonPlan | Refusal, *, content: bool = True) -> ComparisonResult:
    engine: Any = ComparisonEngine(answer)
    journal.tools = replace(journal.tools, engine=engine)
    told = compare_copy(
        journal, journal.tools.writer(()), engine, f"{journal.tools.state}/notes", point=None, content=content
    )
    assert isinstance(told, ComparisonResult)
    return told


def point(journal: RunRecorder) -> PointRecord:
    (known,) = journal.tools.history.views.points("photos")
    return known


def test_the_same_on_both_sides_is_done(journal: RunRecorder, tmp_path: Path) -> None:
    told = compared(journal, comparison((pair(tmp_path),)))
    assert (told.reading.entries, told.reading.files_read, told.reading.bytes_read) == (3 + 2, 1, 5)
    assert told.reading.sound
    assert not (tmp_path / "source").exists()
    assert not (tmp_path / "target").exists()
    known = point(journal)
    assert (known.name, known.sound, known.reading and known.reading.scope) == ("p", True, "whole")
    require_same(told, journal)
    report = comparison_report(journal, told, content=True)
    assert report.outcome is Outcome.DONE
    assert (
        "both sides hold the same 3 snapshots of 1 dataset, by guid, and the same contents: 1 file, 5 B" in report.why
    )
    assert report.warnings == ("mind this",)
    assert {step.action for step in report.steps} == {"source", "target"}


@pytest.mark.parametrize("fails", ["source", "target"])
def test_a_side_that_fails_ends_the_other_at_once_and_is_what_is_told(
    journal: RunRecorder, tmp_path: Path, fails: str
) -> None:
    def step(called: str) -> Step:
        script = "echo the disk is gone >&2; exit 9" if called == fails else "sleep 120"
        work = replace(single_command("sh", "-c", script, effect=Effect.READS), keeps=str(tmp_path / called))
        return Step(action=called, why="", worker=called, work=work, expected=None)

    began = time.monotonic()
    with pytest.raises(OutsideError, match="the disk is gone"):
        compared(journal, comparison((SnapshotPair(name=b"@p", source=step("source"), target=step("target")),)))
    assert time.monotonic() - began < 60
    assert not journal.tools.stop.reason


def test_what_an_earlier_reading_left_is_not_read(journal: RunRecorder, tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"ghost//=sha256:1\0")
    assert compared(journal, comparison((pair(tmp_path),))).reading.sound


def test_a_rotten_file_is_named_with_its_snapshot(journal: RunRecorder, tmp_path: Path) -> None:
    told = compared(journal, comparison((pair(tmp_path, target=GOOD.replace(b":1", b":2")),)))
    assert [(found.path, found.verdict) for found in told.reading.findings] == [(b"@p/a", Verdict.ROTTEN)]
    assert point(journal).sound is False
    report = comparison_report(journal, told, content=True)
    assert (report.outcome, "1 rotten" in report.why, "zpool scrub" in report.hint) == (Outcome.FAILED, True, True)
    assert report.hint.endswith("how to send it again is shown below")
    assert "--aside" not in report.hint, "a damaged copy fits by its guids, so nothing would be sent"
    report = comparison_report(journal, replace(told, heals=()), content=True)
    assert report.hint.endswith("only another copy helps: `poolferry restore plan photos`")
    with pytest.raises(VerificationFailed, match="1 rotten"):
        require_same(told, journal)


def test_what_the_copy_lacks_before_its_newest_comes_only_from_the_beginning(journal: RunRecorder) -> None:
    told = compared(journal, comparison(findings=(Finding(path=b"@o", verdict=Verdict.MISSING, detail=""),)))
    hint = comparison_report(journal, told, content=True).hint
    whole = journal.job.target.location.path
    assert f"`zfs rename {whole} {whole}.old`" in hint
    assert "`poolferry run photos --aside`" in hint, "the root is looked for by its guid, and would be refused"


def test_what_came_after_the_point_does_not_harm_it(journal: RunRecorder) -> None:
    findings = tuple(
        Finding(path=path, verdict=Verdict.EDITED, detail="")
        for path in (b"", b"x", b"x@other", b"x@p2", b"@o")
    )  # fmt: skip
    told = compared(journal, comparison(findings=findings), content=False)
    assert not told.reading.sound
    assert point(journal).sound is True
    report = comparison_report(journal, told, content=False)
    assert (report.outcome, "somebody changed the copy" in report.hint) == (Outcome.FAILED, True)
    compared(journal, comparison(findings=(Finding(path=b"x@p", verdict=Verdict.MISSING, detail=""),)), content=False)
    assert point(journal).sound is False


def test_a_point_that_lacks_a_dataset_is_neither_sound_nor_damaged(journal: RunRecorder) -> None:
    missing = Finding(path=b"x@p", verdict=Verdict.MISSING, detail="")
    for _ in range(2):
        told = compared(journal, replace(comparison(findings=(missing,)), lacking=("tank/photos/x",)), content=False)
        assert comparison_report(journal, told, content=False).outcome is Outcome.FAILED
        history = journal.tools.history
        assert missing_parts(history.memory("photos"), "vault", "p") == ("tank/photos/x",)
        assert not history.problems.open_of("photos", "vault")
        assert not [each for each in history.views.points("photos") if each.sound is not None or each.verified_at]
    rotten = Finding(path=b"@p/a", verdict=Verdict.ROTTEN, detail="")
    both = replace(comparison(findings=(missing, rotten)), lacking=("tank/photos/x",))
    compared(journal, both, content=False)
    assert point(journal).sound is False
    assert [each.paths for each in history.problems.open_of("photos", "vault")] == [("@p/a",)]


def test_a_look_is_not_a_whole_reading(journal: RunRecorder) -> None:
    told = compared(journal, comparison(), content=False)
    assert told.source is None
    assert "contents were not read (--content reads them)" in comparison_report(journal, told, content=False).why
    known = point(journal)
    assert (known.whole_at, known.reading and known.reading.scope) == (None, "look")


def test_where_nothing_could_be_read_nothing_was(journal: RunRecorder) -> None:
    locked = Finding(path=b"@p", verdict=Verdict.UNPROVED, detail="")
    told = compared(journal, comparison(findings=(locked,)))
    assert point(journal).whole_at is None
    assert "1 could not be compared" in comparison_report(journal, told, content=True).why


def test_without_a_point_of_the_root_history_learns_nothing(journal: RunRecorder) -> None:
    compared(journal, comparison(point=None))
    assert journal.tools.history.views.points("photos") == ()


def test_what_the_source_cannot_read_is_no_fault_of_the_copy(journal: RunRecorder, tmp_path: Path) -> None:
    broken = ROOT + FILE + b"//!sha256sum: ./a: Input/output error\0" + END
    told = compared(journal, comparison((pair(tmp_path, source=broken),)))
    assert told.reading.sound
    assert point(journal).sound is True
    report = comparison_report(journal, told, content=True)
    assert report.outcome is Outcome.FAILED
    assert report.why == "1 entry cannot be read on the source; the copy can"
    assert report.evidence[-1] == "to heal @p/a of the source"


@pytest.mark.parametrize("records", [b"", ROOT + FILE, GOOD[:-1], ROOT + b"what\0" + END])
def test_a_listing_that_is_not_whole_proves_nothing(journal: RunRecorder, tmp_path: Path, records: bytes) -> None:
    for source, target in ((records, GOOD), (GOOD, records)):
        with pytest.raises(VerificationFailed):
            compared(journal, comparison((pair(tmp_path, source, target),)))
        assert not (tmp_path / "source").exists()
    assert journal.tools.history.views.points("photos") == ()


def test_more_than_can_be_held_is_counted(journal: RunRecorder, tmp_path: Path) -> None:
    many = b"".join(b"f%d//f\t0\t1.5000000000\t644\t0\t0\t1\t7\t\0" % number for number in range(1500))
    told = compared(journal, comparison((pair(tmp_path, source=ROOT + many + END, target=ROOT + END),)))
    assert (dict(told.reading.counts), len(told.reading.findings)) == ({Verdict.MISSING: 1500}, 1000)


def test_a_refusal_is_handed_back(journal: RunRecorder, tmp_path: Path) -> None:
    refusal = Refusal(why="no", evidence=(), hint="")
    told = compare_copy(
        journal, journal.tools.writer(()), ComparisonEngine(refusal), str(tmp_path / "n"), point="p", content=False
    )
    assert told is refusal
