"""A dataset that has another name now is found by its guid; what cannot be told for sure is not told."""

import pytest

from orchestrator.domain.errors import Stopped
from orchestrator.domain.plan import Pipeline
from orchestrator.process.moved_dataset import find_moved_dataset
from orchestrator.process.pipeline import PipelineResult
from orchestrator.process.scripted import ScriptedExecutor, scripted_result


def found(answer: bytes | PipelineResult, pool_guid: int = 7) -> str:
    told = scripted_result(answer) if isinstance(answer, bytes) else answer
    return find_moved_dataset(99, pool_guid, None, ScriptedExecutor([(lambda _: True, told)]))


@pytest.mark.parametrize(
    ("answer", "pool", "name"),
    [
        (b"7\tlake/my photos\n=end\n", 7, "lake/my photos"),
        (b"7\tlake\n8\ttank\n=end\n", 7, "lake"),  # one half of a pool that was split has the same datasets
        (b"8\ttank\n=end\n", 0, "tank"),
        (b"8\ttank\n=end\n", 7, ""),
        (b"7\tlake\n8\ttank\n=end\n", 0, ""),
        (b"=end\n", 7, ""),
        (b"", 7, ""),
        (b"7\tlake\n", 7, ""),
        (b"seven\tlake\n=end\n", 7, ""),
        (b"7\tla\x1bke\n=end\n", 7, ""),
        (b"7\ttank/photos_aside_2026-03-04T050607Z\n=end\n", 7, ""),
    ],
)
def test_a_dataset_is_known_by_its_guid_and_that_of_its_pool(answer: bytes, pool: int, name: str) -> None:
    assert found(answer, pool) == name


def test_what_fails_or_is_refused_finds_nothing() -> None:
    assert found(scripted_result(b"7\tlake\n=end\n", exits=(1,), words="refused")) == ""


def test_a_stop_is_no_answer() -> None:
    class Stopping(ScriptedExecutor):
        def read(self, pipeline: Pipeline, **_: object) -> PipelineResult:
            raise Stopped("the run was asked to stop")

    with pytest.raises(Stopped):
        find_moved_dataset(99, 7, None, Stopping([]))
