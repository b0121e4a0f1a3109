"""The bytes of a stage in which one step copies ahead of another: of its whole, never more."""

from types import SimpleNamespace
from typing import Any

from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.plan import Effect, Step, single_command
from orchestrator.domain.units import Bytes
from orchestrator.runner.stage_progress import StageProgress


def test_what_was_copied_ahead_is_expected_no_more() -> None:
    told: list[tuple[int, int | None]] = []
    journal: Any = SimpleNamespace(
        tools=SimpleNamespace(notify=lambda event: told.append((event.done, event.expected)))
    )
    copy = Step(
        action="copy", why="", worker="a", work=single_command("true", effect=Effect.WRITES), expected=Bytes(100), copies=True,
    )  # fmt: skip
    ahead, other = replace(copy, expected=None, ahead=True), replace(copy, worker="b", expected=Bytes(50))
    progress = StageProgress(journal, (ahead, copy, other))
    progress.feed(ahead, 60, None)
    progress.ended(ahead)
    progress.feed(copy, 10, None)
    progress.feed(copy, 40, None)
    progress.ended(copy)
    progress.feed(other, 50, None)
    assert told == [(60, 150), (70, 150), (100, 150), (150, 150)]
    told.clear()
    unknown = StageProgress(journal, (ahead, replace(copy, expected=None)))
    unknown.feed(ahead, 60, None)
    unknown.ended(ahead)
    assert told == [(60, None)]
