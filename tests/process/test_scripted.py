"""The scripted executor keeps the promises of the real one."""

import pytest

from orchestrator.domain.plan import Pipeline
from orchestrator.process.executor import Forbidden, PipelineFailed, PipelineResult, StopReason, StopRequest, Writer
from orchestrator.process.scripted import ScriptedExecutor, scripted_result
from tests.process.pipelines import reads, writes


def test_lines_and_questions_are_answered_and_remembered() -> None:
    anything = scripted_result(exits=(0, 3), words="no")
    reader = ScriptedExecutor(
        [("zfs list", scripted_result(b"tank\n")), (lambda pipeline: len(pipeline.stages) == 2, anything)]
    )
    assert isinstance(reader, Writer)
    assert reader.read(reads(("zfs", "list"))).stdout == b"tank\n"
    assert reader.read(reads(("a",), ("b",))) == anything
    assert anything.last_output == ("", "no")
    assert [str(pipeline) for pipeline in reader.requested] == ["zfs list", "a | b"]
    with pytest.raises(KeyError, match="rsync"):
        reader.read(reads(("rsync",)))


def test_records_fail_like_real_ones() -> None:
    reader = ScriptedExecutor(
        {"a": scripted_result(b"x\0y\0z"), "b": scripted_result(b"x\0", exits=(1,), words="gone")}
    )
    with reader.records(reads(("a",))) as records:
        assert list(records) == [b"x", b"y", b"z"]
    with pytest.raises(PipelineFailed, match="gone"):
        list(reader.records(reads(("b",))))


def test_keys_fit_the_same_locks() -> None:
    writer = ScriptedExecutor([(lambda _: True, scripted_result())])
    with pytest.raises(Forbidden):
        writer.read(writes(("rm",)))
    with pytest.raises(Forbidden):
        writer.records(writes(("rm",)))
    assert writer.stream(writes(("rm",))).well


def test_streams_call_back_and_hear_the_stop() -> None:
    heard: list[object] = []
    result = PipelineResult(exits=(0,), stdout=b"line\n", moved=7)
    writer = ScriptedExecutor([(lambda _: True, result)])
    pipeline: Pipeline = writes(("rsync",))
    writer.stream(pipeline, on_output=heard.append, on_bytes=heard.append, on_tick=lambda: heard.append("tick"))
    assert heard == [b"line\n", 7, "tick"]
    stop = StopRequest()
    stop.request("x")
    assert writer.stream(pipeline, stop=stop).stopped is StopReason.STOPPED
