"""The removal of points in a folder: only those that were judged, and nothing by a link that somebody put there."""

import fcntl
from pathlib import Path

import pytest

from orchestrator.domain.errors import LookAgain, NotNow, OrchestratorError, Stopped
from orchestrator.domain.place import Location
from orchestrator.domain.plan import PointsRemoval
from orchestrator.history.store import open_history
from orchestrator.runner import remove_points as removal
from orchestrator.runner.remove_points import remove_points
from orchestrator.runner.run_recorder import RunRecorder, begin_run
from tests.engines.prune.builders import job
from tests.runner.journals import journal

NAMES = ("2026-01-01T000000Z", "2026-02-01T000000Z")


def filled(folder: Path) -> PointsRemoval:
    for name in NAMES:
        (folder / "points" / name).mkdir(parents=True)
        (folder / "points" / name / "file").write_text(name)
        (folder / "points" / f"{name}.manifest.gz").write_text("")
    (folder / ".poolferry").mkdir()
    first = folder / "points" / NAMES[0]
    return PointsRemoval(root=Location(path=str(folder)), points=((NAMES[0], str(first.stat().st_ino)), ("gone", "1")))


@pytest.fixture
def run(tmp_path: Path) -> RunRecorder:
    with open_history(str(tmp_path / "history.sqlite")) as history:
        return begin_run(job(), journal(history, tmp_path).tools, "asked by hand")


def there(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "points").iterdir())


def test_what_was_judged_goes_and_nothing_else(tmp_path: Path, run: RunRecorder) -> None:
    work = filled(folder := tmp_path / "in")
    (folder / ".poolferry/trash" / NAMES[0] / "deep").mkdir(parents=True)  # what a cut removal left, of the same name
    remove_points(work, run)
    assert there(folder) == [NAMES[1], f"{NAMES[1]}.manifest.gz"]
    assert not (folder / ".poolferry/trash").exists()
    remove_points(work, run)


def test_another_point_of_that_name_stays(tmp_path: Path, run: RunRecorder) -> None:
    work = filled(folder := tmp_path / "in")
    (folder / "points" / NAMES[0]).rename(folder / "old")
    (folder / "points" / NAMES[0]).mkdir()
    before = there(folder)
    with pytest.raises(LookAgain, match="is another one than the look found"):
        remove_points(work, run)
    assert there(folder) == before


@pytest.mark.parametrize("name", ["points", ".poolferry", ".poolferry/trash"])
def test_a_link_leads_nowhere(tmp_path: Path, run: RunRecorder, name: str) -> None:
    work = filled(folder := tmp_path / "in")
    aside = tmp_path / "aside"
    aside.mkdir()
    (aside / "file").write_text("stays")
    if (folder / name).exists():
        (folder / name).rename(tmp_path / "was")
    (folder / name).symlink_to(aside)
    with pytest.raises(OrchestratorError, match="is not a folder") as raised:
        remove_points(work, run)
    assert "findmnt" in raised.value.hint
    assert [path.name for path in aside.iterdir()] == ["file"]


def test_a_copy_that_comes_in_is_waited_for_and_a_stop_ends_the_wait(
    tmp_path: Path, run: RunRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = filled(folder := tmp_path / "in")
    before = there(folder)
    with (folder / ".poolferry/adding").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        monkeypatch.setattr(removal, "_PATIENCE", -1.0)
        with pytest.raises(NotNow, match="another machine is copying"):
            remove_points(work, run)
        monkeypatch.setattr(removal, "_PATIENCE", 60.0)
        run.tools.stop.request("asked to")
        with pytest.raises(Stopped, match="asked to"):
            remove_points(work, run)
    assert there(folder) == before
