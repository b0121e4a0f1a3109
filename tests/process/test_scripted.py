"""The scripted executor keeps the promises of the real one."""

import pytest

from orchestrator.domain.plan import Pipeline
from orchestrator.process.executor import Broken, Forbidden, Result, Stop, StopReason, Writer
from orchestrator.process.scripted import Scripted, answer
from tests.process.pipelines import reads, writes


def test_lines_and_questions_are_answered_and_remembered() -> None:
    anything = answer(exits=(0, 3), words="no")
    reader = Scripted([("zfs list", answer(b"tank\n")), (lambda pipeline: len(pipeline.stages) == 2, anything)])
    assert isinstance(reader, Writer)
    assert reader.read(reads(("zfs", "list"))).stdout == b"tank\n"
    assert reader.read(reads(("a",), ("b",))) == anything
    assert anything.last_words == ("", "no")
    assert [str(pipeline) for pipeline in reader.asked] == ["zfs list", "a | b"]
    with pytest.raises(KeyError, match="rsync"):
        reader.read(reads(("rsync",)))


def test_records_fail_like_real_ones() -> None:
    reader = Scripted({"a": answer(b"x\0y\0z"), "b": answer(b"x\0", exits=(1,), words="gone")})
    with reader.records(reads(("a",))) as records:
        assert list(records) == [b"x", b"y", b"z"]
    with pytest.raises(Broken, match="gone"):
        list(reader.records(reads(("b",))))


def test_keys_fit_the_same_locks() -> None:
    writer = Scripted([(lambda _: True, answer())])
    with pytest.raises(Forbidden):
        writer.read(writes(("rm",)))
    with pytest.raises(Forbidden):
        writer.records(writes(("rm",)))
    assert writer.stream(writes(("rm",))).well


def test_streams_call_back_and_hear_the_stop() -> None:
    heard: list[object] = []
    result = Result(exits=(0,), stdout=b"line\n", moved=7)
    writer = Scripted([(lambda _: True, result)])
    pipeline: Pipeline = writes(("rsync",))
    writer.stream(pipeline, on_output=heard.append, on_bytes=heard.append, on_tick=lambda: heard.append("tick"))
    assert heard == [b"line\n", 7, "tick"]
    stop = Stop()
    stop.request("x")
    assert writer.stream(pipeline, stop=stop).stopped is StopReason.STOPPED
