"""Steps that are carried out: what they count together, and what they tell later plans. Real programs and a real history."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.events import RunEvent, TransferProgress
from orchestrator.domain.plan import Command, Effect, Pipeline, Plan, Step
from orchestrator.domain.units import Bytes, Seconds
from orchestrator.history.store import History, open_history
from orchestrator.process.executor import Writer
from orchestrator.runner.execute import _weighed
from orchestrator.runner.run_recorder import close_notes, notes_in_order
from orchestrator.runner.steps import StepExecutor
from tests.runner.journals import journal, small

FULL = "cannot receive incremental stream: out of space"
BROKEN = "cannot receive incremental stream: checksum mismatch or incomplete stream."


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


def sending(size: int, *, expected: int | None, worker: str = "main", told: int | None = None) -> Step:
    """A stream of so many bytes; the sender may tell a size as it begins."""
    says = f"printf 'size\\t{told}\\n' >&2; " if told is not None else ""
    sender = Command(argv=("sh", "-c", f"{says}head -c {size} /dev/zero"), effect=Effect.READS)
    receiver = Command(argv=("sh", "-c", "cat >/dev/null"), effect=Effect.WRITES)
    return Step(
        action=f"send {size}", why="", worker=worker, work=Pipeline(stages=(sender, receiver)),
        expected=None if expected is None else Bytes(expected), copies=True,
    )  # fmt: skip


def carried_out(history: History, tmp_path: Path, *stages: tuple[Step, ...]) -> list[TransferProgress]:
    events: list[RunEvent] = []
    executor = StepExecutor(journal(history, tmp_path, events), Writer(), str(tmp_path))
    executor.count(Plan(summary="", stages=stages))
    for stage in stages:
        executor.do(stage)
    return [event for event in events if isinstance(event, TransferProgress)]


def test_all_copies_of_a_plan_are_counted_together(history: History, tmp_path: Path) -> None:
    stages = (
        (small(),), (sending(70_000, expected=70_000),), (sending(20_000, expected=25_000), sending(9_000, expected=5_000)),
        (small(),),
    )  # fmt: skip
    moved = carried_out(history, tmp_path, *stages)
    assert all(event.whole for event in moved)
    assert (moved[0].expected, moved[-1].done) == (100_000, 99_000)
    assert [event.done for event in moved] == sorted(event.done for event in moved)
    assert moved[-1].expected == 70_000 + 20_000 + 5_000  # of those that have ended, what they moved


def test_a_size_that_nobody_knows_leaves_the_whole_unknown(history: History, tmp_path: Path) -> None:
    first, last = sending(50_000, expected=None), sending(30_000, expected=None, told=40_000)
    moved = carried_out(history, tmp_path, (sending(1_000, expected=1_000),), (first,), (last,))
    assert moved[0].expected is None
    assert moved[-1].expected == 1_000 + 50_000 + 40_000


def test_a_single_copy_is_counted_by_itself(history: History, tmp_path: Path) -> None:
    moved = carried_out(history, tmp_path, (small(),), (sending(30_000, expected=40_000),))
    assert {(event.expected, event.whole) for event in moved} == {(40_000, False)}


def test_a_later_note_counts_though_the_clock_was_set_back(history: History, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    executor = StepExecutor(journal(history, tmp_path), Writer(), str(notes))
    names = ["moved-ahead-1", "moved-on-0", "moved-0"]
    for name, year in zip(names, (2100, 2090, 2080), strict=True):
        command = Command(argv=("touch", "-d", f"{year}-01-01", f"{notes}/{name}"), effect=Effect.WRITES)
        copying = replace(small(), work=Pipeline(stages=(command,), keeps=f"{notes}/{name}"))
        executor.do((replace(small(), needs=((f"{notes}/{name}", b""),)) if "-on-" in name else copying,))
    (notes / "moved-again").touch()  # of a program that has not ended
    close_notes(str(notes))
    found = [Path(path).name.removeprefix("earlier-000001-") for path in notes_in_order(str(notes))]
    assert found == [*names, "moved-again"]


@pytest.mark.parametrize(
    ("unknown", "known", "requested"), [(1, 0, 0), (1, 5, 0), (2, 0, 1), (50, 0, 1), (51, 0, 0), (0, 3, 0)]
)
def test_sizes_are_asked_where_several_copies_share_a_count(
    history: History, tmp_path: Path, unknown: int, known: int, requested: int
) -> None:
    stage = (
        *(sending(1, expected=None) for _ in range(unknown)),
        *(sending(1, expected=1) for _ in range(known)),
        small(),
    )
    made = journal(history, tmp_path)
    weighed = _weighed(made, Plan(summary="", stages=(stage,)), Writer())
    assert all(step.expected == 1000 for step in weighed.steps) == bool(requested)


def fails(words: str, code: int = 1) -> str:
    return f"echo '{words}' >&2; exit {code}"


def test_what_a_step_tells_later_plans(history: History, tmp_path: Path) -> None:
    executor = StepExecutor(journal(history, tmp_path), Writer(), str(tmp_path))
    executor.do((small(remembers=("cut", "anew"), vain=("cut", "once")),))
    assert history.memory("photos") == {"cut": "anew"}
    with pytest.raises(OrchestratorError):
        executor.do((small(fails(BROKEN), remembers=("cut", "well"), vain=("cut", "once")),))
    assert history.memory("photos") == {"cut": "once"}


def test_several_failures_of_one_run_are_one(history: History, tmp_path: Path) -> None:
    made = journal(history, tmp_path)
    for number in (1, 2, 3):
        executor = StepExecutor(made, Writer(), str(tmp_path))  # each attempt has its own
        with pytest.raises(OrchestratorError):
            executor.do((small(fails(BROKEN), vain=("cut", f"runs {number}")),))
    assert history.memory("photos") == {"cut": "runs 1"}
    with pytest.raises(OrchestratorError):
        StepExecutor(journal(history, tmp_path), Writer(), str(tmp_path)).do(
            (small(fails(BROKEN), vain=("cut", "runs 2")),)
        )
    assert history.memory("photos") == {"cut": "runs 2"}


@pytest.mark.parametrize(
    "step", [fails(FULL), fails("permission denied"), fails("ssh: connect to host x port 22: Connection refused", 255)]
)
def test_what_is_no_fault_of_the_stream_counts_for_nothing(history: History, tmp_path: Path, step: str) -> None:
    with pytest.raises(OrchestratorError):
        StepExecutor(journal(history, tmp_path), Writer(), str(tmp_path)).do((small(step, vain=("cut", "once")),))
    assert history.memory("photos") == {}


def test_no_sizes_are_asked_where_nobody_watches_and_no_pace_is_judged(history: History, tmp_path: Path) -> None:
    made = journal(history, tmp_path)
    made.tools = replace(made.tools, watched=False)
    plan = Plan(summary="", stages=((sending(1, expected=None), sending(1, expected=None)),))
    assert _weighed(made, plan, Writer()) is plan
    made.job = replace(made.job, target=replace(made.job.target, within=Seconds(60)))
    assert [step.expected for step in _weighed(made, plan, Writer()).steps] == [1000, 1000]


def test_a_step_before_the_look_is_part_of_the_attempt(history: History, tmp_path: Path) -> None:
    made = journal(history, tmp_path)
    made.attempt_begun(looking=True)
    StepExecutor(made, Writer(), str(tmp_path)).do((sending(10, expected=10),))
    told = history.views.run(made.run)
    assert told is not None
    assert [len(attempt.steps) for attempt in told.attempts] == [0, 1]
