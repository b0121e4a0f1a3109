"""Two readings side by side: what fails ends the other, and is what is told."""

import time
from collections.abc import Callable

import pytest

from orchestrator.domain.errors import Stopped, VerificationFailed
from orchestrator.process.executor import PipelineFailed, PipelineResult, Reader, StopReason
from orchestrator.process.reading_beside import ReadingBeside
from orchestrator.process.stop import StopRequest
from tests.process.pipelines import reads, sh

LONG = reads(("sleep", "120"))


def records(reader: Reader, script: str) -> list[bytes]:
    with reader.records(reads(sh(script))) as told:
        return list(told)


def beside(thread: Callable[[Reader], object], body: Callable[[Reader], object]) -> None:
    with ReadingBeside(Reader(), thread) as read:
        body(read.executor)
        read.result()


def test_the_reading_in_the_thread_is_ended_when_the_other_fails() -> None:
    began = time.monotonic()
    with pytest.raises(PipelineFailed, match="exit 3"):
        beside(lambda reader: records(reader, "sleep 120"), lambda reader: records(reader, "exit 3"))
    assert time.monotonic() - began < 60


def test_the_reading_in_the_body_is_ended_when_the_thread_fails_and_that_one_is_told() -> None:
    began = time.monotonic()
    with pytest.raises(PipelineFailed, match="exit 4"):
        beside(lambda reader: records(reader, "exit 4"), lambda reader: records(reader, "sleep 120"))
    with pytest.raises(VerificationFailed, match="the disk is gone"):
        beside(lambda _: fail("the disk is gone"), lambda reader: stopped(reader.read(LONG)))
    assert time.monotonic() - began < 60


def fail(words: str) -> None:
    raise VerificationFailed(words)


def stopped(result: PipelineResult) -> None:
    assert result.stopped is StopReason.STOPPED
    raise Stopped("the run was asked to stop")


def test_of_two_that_failed_both_are_told() -> None:
    def fail_after_the_other(reader: Reader) -> None:
        assert reader.read(LONG).stopped is StopReason.STOPPED
        fail("the host is gone")

    with pytest.raises(VerificationFailed) as told:
        beside(lambda _: fail("the disk is gone"), fail_after_the_other)
    assert told.value.why == "the host is gone; and beside it: the disk is gone"


def test_one_that_ends_well_ends_nothing() -> None:
    with ReadingBeside(Reader(), lambda reader: records(reader, "sleep 0.2; printf 'a\\0'")) as beside:
        assert records(beside.executor, "printf 'b\\0'") == [b"b"]
        assert beside.result() == [b"a"]


def test_a_request_from_above_ends_both_and_neither_ends_what_is_above() -> None:
    above = StopRequest()
    one = Reader(stop=above)
    below, stop = one.beside()
    stop.request("this alone")
    assert (above.reason, below.read(LONG).stopped) == (None, StopReason.STOPPED)
    other, still = one.beside()
    above.request("all")
    assert (still.reason, other.read(LONG).stopped, still.wait(60)) == ("all", StopReason.STOPPED, True)
    late, _ = one.beside()
    result: PipelineResult = late.read(LONG)
    assert result.stopped is StopReason.STOPPED
