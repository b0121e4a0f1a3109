"""The note of a run's progress: at most once a second, private, and no reader believes anything that is none."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.domain.events import TransferProgress
from orchestrator.domain.run_progress import LARGEST
from orchestrator.runner.context import ProcessIdentity
from orchestrator.runner.progress_note import ProgressNote, read_progress

NOW = datetime(2026, 11, 25, tzinfo=UTC)
WHO = ProcessIdentity(pid=7, started=8, boot="b", host="h")


class Ticks:
    def __init__(self) -> None:
        self.at = 100.0

    def __call__(self) -> float:
        return self.at


def note(state: Path, ticks: Ticks, run: int = 3) -> ProgressNote:
    return ProgressNote(
        str(state),
        run,
        begun=ticks.at,
        clock=lambda: NOW,
        monotonic=ticks,
        identity=WHO,
        alive=lambda pid, _started, _boot: pid == 7,
    )


def test_it_is_written_at_most_once_a_second(tmp_path: Path) -> None:
    ticks = Ticks()
    made = note(tmp_path, ticks)
    seen = []
    for _ in range(9):
        ticks.at += 0.5
        made.moved(TransferProgress(done=int(ticks.at * 100) - 10_000, expected=1000))
        found = read_progress(str(tmp_path), 3)
        assert found is not None
        seen.append(found.done)
    assert seen == [50, 50, 150, 150, 250, 250, 350, 350, 450]
    found = read_progress(str(tmp_path), 3)
    assert found is not None
    assert (found.rate, found.expected, found.at) == (100, 1000, NOW)
    assert found.left_s == pytest.approx(5.5, abs=1)
    made.step_begun()
    ticks.at += 1
    made.moved(TransferProgress(done=10, expected=None))
    assert read_progress(str(tmp_path), 3).expected is None  # type: ignore[union-attr]
    made.remove()
    assert list((tmp_path / "running").iterdir()) == []
    assert read_progress(str(tmp_path), 3) is None


def test_a_note_that_cannot_be_written_hinders_nothing(tmp_path: Path) -> None:
    (tmp_path / "running").write_text("a file")
    made = note(tmp_path, Ticks())
    made.moved(TransferProgress(done=1, expected=None))
    made.remove()


def test_notes_of_processes_that_are_gone_are_removed(tmp_path: Path) -> None:
    ticks = Ticks()
    note(tmp_path, ticks, 1).moved(TransferProgress(done=1, expected=None))
    folder = tmp_path / "running"
    gone = json.loads((folder / "1.json").read_text()) | {"pid": 9}
    (folder / "2.json").write_text(json.dumps(gone))
    (folder / "4.json").write_text("garbage")
    (folder / ".5").write_text("half a no")
    note(tmp_path, ticks)
    assert sorted(path.name for path in folder.iterdir()) == [".5", "1.json"]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"[" * LARGEST,
        b'{"run": 3}',
        b"\xff",
        b'{"run": 3, "done_bytes": "x", "expected_bytes": null}',
    ],
)
def test_what_is_no_note_is_no_progress(tmp_path: Path, text: bytes) -> None:
    folder = tmp_path / "running"
    folder.mkdir()
    (folder / "3.json").write_bytes(text)
    assert read_progress(str(tmp_path), 3) is None


def test_links_pipes_and_notes_of_other_runs_are_none(tmp_path: Path) -> None:
    note(tmp_path, Ticks(), 1).moved(TransferProgress(done=1, expected=None))
    folder = tmp_path / "running"
    (folder / "3.json").symlink_to("1.json")
    os.mkfifo(folder / "4.json")
    (folder / "5.json").write_bytes((folder / "1.json").read_bytes())
    assert [read_progress(str(tmp_path), run) for run in (3, 4, 5)] == [None] * 3
    assert read_progress(str(tmp_path), 1) is not None
