"""The source held still around a snapshot: real hooks, real programs, a real history."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.errors import NotNow, OrchestratorError, OutsideError, Stopped
from orchestrator.domain.job import JobHooks, SnapshotRules
from orchestrator.domain.source_identity import OWED
from orchestrator.domain.units import Seconds
from orchestrator.history.store import History, open_history
from orchestrator.process.executor import Writer
from orchestrator.runner.run_recorder import RunRecorder
from orchestrator.runner.source_freeze import hold_still, owing_run, release_left
from orchestrator.runner.steps import StepExecutor
from tests.runner.journals import journal, small

Make = Callable[..., RunRecorder]


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with open_history(str(tmp_path / "history.sqlite")) as opened:
        yield opened


@pytest.fixture
def made(history: History, tmp_path: Path) -> Make:
    """made(before, after): a begun run whose hooks are these scripts; each may append to $told."""

    def make(before: str | None, after: str | None, *, timeout: float = 20, needs_hook: bool = True) -> RunRecorder:
        told = f'told="{tmp_path}/told"; echo $POOLFERRY_EVENT >> "$told"; '
        calls = [("snapshot-before", before), ("snapshot-after", after)]
        hooks = tuple((event, (("sh", "-c", told + text),)) for event, text in calls if text is not None)
        one = journal(history, tmp_path)
        one.job = replace(
            one.job,
            hooks=JobHooks(calls=hooks, timeout=Seconds(timeout)),
            snapshots=SnapshotRules(daily=1, needs_hook=needs_hook),
        )
        return one

    return make


def snapshot(run: RunRecorder, tmp_path: Path, script: str = "") -> None:
    """Carries out a step that takes a snapshot."""
    step = replace(small(f'echo snapshot >> "{tmp_path}/told"; {script}'), freezes=True)
    StepExecutor(run, Writer(), str(tmp_path / "notes")).do((step,))


def told(tmp_path: Path) -> list[str]:
    return (tmp_path / "told").read_text().split()


def test_the_hooks_stand_around_the_snapshot_and_around_no_other_step(made: Make, tmp_path: Path) -> None:
    run = made("true", "true")
    snapshot(run, tmp_path)
    StepExecutor(run, Writer(), str(tmp_path / "notes")).do((small(f'echo other >> "{tmp_path}/told"'),))
    assert told(tmp_path) == ["snapshot-before", "snapshot", "snapshot-after", "other"]
    assert owing_run(run.job, run.tools.history) is None
    story = run.tools.history.views.run(run.run)
    assert story is not None
    assert [hook.event for hook in story.hooks] == ["snapshot-before", "snapshot-after"]


@pytest.mark.parametrize(
    ("before", "script", "error", "words", "events"),
    [
        ("echo no room for it; exit 3", "", OutsideError, "ended with 3: no room for it", []),
        ("exit 75", "", NotNow, "said not now", []),
        ("sleep 60", "", OutsideError, "took longer than 1 s", []),
        ("true", "echo broken >&2; exit 1", OrchestratorError, "broken", ["snapshot"]),
        ("true", "sleep 60", OrchestratorError, "longer than 1 s while the source", ["snapshot"]),
    ],
)
def test_whatever_fails_the_source_is_let_go(
    made: Make, tmp_path: Path, before: str, script: str, error: type[Exception], words: str, events: list[str]
) -> None:
    run = made(before, "true", timeout=1 if "sleep" in before + script else 20)
    began = time.monotonic()
    with pytest.raises(error, match=words):
        snapshot(run, tmp_path, script)
    assert time.monotonic() - began < 20
    assert told(tmp_path) == ["snapshot-before", *events, "snapshot-after"]
    assert owing_run(run.job, run.tools.history) is None


def test_a_failure_shows_its_line_and_what_helps(made: Make, tmp_path: Path) -> None:
    with pytest.raises(OutsideError) as caught:
        snapshot(made("exit 3", None), tmp_path)
    assert "POOLFERRY_EVENT=snapshot-before" in caught.value.evidence.lines[0]
    assert "mend the hook" in caught.value.hint


def test_by_consent_the_snapshot_is_taken_all_the_same(made: Make, tmp_path: Path) -> None:
    run = made("exit 3", "true", needs_hook=False)
    snapshot(run, tmp_path)
    assert told(tmp_path) == ["snapshot-before", "snapshot", "snapshot-after"]
    assert "taken all the same" in run.warnings[0]


def test_a_stop_during_the_hook_lets_go_and_one_before_it_holds_nothing(made: Make, tmp_path: Path) -> None:
    run = made("true", "true")

    def stopped_amid() -> None:
        with hold_still(run):
            run.tools.stop.request("asked to end (SIGTERM)")
            snapshot(run, tmp_path)

    with pytest.raises(Stopped):
        stopped_amid()
    assert told(tmp_path) == ["snapshot-before", "snapshot-after"]
    with pytest.raises(Stopped):
        snapshot(run, tmp_path)
    assert told(tmp_path) == ["snapshot-before", "snapshot-after"]


def test_what_cannot_be_let_go_fails_the_run_and_is_owed_until_it_can(made: Make, tmp_path: Path) -> None:
    run = made("true", f'[ -e "{tmp_path}/mended" ] || {{ echo stuck; exit 1; }}')
    with pytest.raises(OrchestratorError, match=r"may be held still yet.*stuck") as caught:
        snapshot(run, tmp_path)
    assert owing_run(run.job, run.tools.history) == run.run
    (tmp_path / "mended").touch()
    assert os.system(caught.value.hint.partition("; the next run")[0]) == 0  # noqa: S605 - the hint, as it is pasted
    release_left(run)
    assert owing_run(run.job, run.tools.history) is None
    release_left(run)
    assert told(tmp_path) == ["snapshot-before", "snapshot", *["snapshot-after"] * 3]


def test_the_debt_is_recorded_before_the_hook_begins(made: Make, tmp_path: Path) -> None:
    run = made(f'cp "{tmp_path}/history.sqlite" "{tmp_path}/then.sqlite"', "true")
    snapshot(run, tmp_path)
    with open_history(str(tmp_path / "then.sqlite")) as then:
        assert owing_run(run.job, then) == run.run


def test_without_snapshot_after_nothing_is_owed(made: Make, tmp_path: Path) -> None:
    run = made("true", None)
    snapshot(run, tmp_path)
    assert run.tools.history.recall(run.job.name, OWED) is None
