"""Locks: one run per job and per place, held as long as any child lives, and points that are being read."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orchestrator.domain.device import BlockDevice
from orchestrator.domain.errors import NotNow, RetryClass
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location, Place
from orchestrator.runner.locks import (
    folders_above,
    lock_destination,
    lock_device,
    lock_job,
    lock_point,
    lock_visit,
    points_being_read,
)
from tests.engines.rsync.builders import THERE, job
from tests.planners.rotation_world import device, disk
from tests.processes import lives
from tests.whole.house import wait_until


def told(folder: Path, name: str = "photos", place: str = "backup") -> Job:
    target = Place(name=place, location=Location(path=str(folder / place)))
    return replace(job(), name=name, target=target)


def never(_: float) -> bool:
    raise AssertionError("nobody is there to wait for")


def hold(
    each: Job, state: Path, *, wait: Callable[[float], bool] = never, patience: float = 0
) -> contextlib.AbstractContextManager[tuple[int, ...]]:
    return lock_job(each, str(state), wait=wait, patience=patience)


@pytest.mark.parametrize("there", ["nothing", "a link", "a file in the place of a folder"])
def test_a_marker_that_goes_at_the_last_moment_is_none(
    tmp_path: Path, there: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner of what lies above a target may exchange it at any moment: that must not end the run without a record."""
    ours = tmp_path / "backup/.poolferry"
    ours.parent.mkdir()
    if there == "a link":
        ours.mkdir()
        (ours / "target.json").symlink_to("/etc/passwd")
    elif there != "nothing":
        ours.touch()
    monkeypatch.setattr(os.path, "isfile", lambda _: True)
    with hold(told(tmp_path), tmp_path) as held:
        assert len(held) == 2


@pytest.mark.parametrize(
    ("name", "place", "busy"),
    [("photos", "backup", True), ("photos", "other", True), ("mail", "backup", True), ("mail", "other", False)],
)
def test_one_run_per_job_and_per_place(tmp_path: Path, name: str, place: str, busy: bool) -> None:
    with hold(told(tmp_path), tmp_path):
        expected = pytest.raises(NotNow, match=f"another run of {name}") if busy else contextlib.nullcontext()
        with expected, hold(told(tmp_path, name, place), tmp_path):
            pass
    with hold(told(tmp_path, name, place), tmp_path):  # free again
        pass


def test_a_busy_lock_is_waited_for(tmp_path: Path) -> None:
    first, waited = contextlib.ExitStack(), []
    first.enter_context(hold(told(tmp_path), tmp_path))

    def wait(seconds: float) -> bool:
        waited.append(seconds)
        if len(waited) == 3:
            first.close()
        return False

    with hold(told(tmp_path), tmp_path, wait=wait, patience=60):
        pass
    assert len(waited) == 3


def test_patience_ends_and_a_stop_ends_it_at_once(tmp_path: Path) -> None:
    with hold(told(tmp_path), tmp_path):
        waited: list[float] = []

        def wait(seconds: float) -> bool:
            waited.append(seconds)
            return False

        with pytest.raises(NotNow) as failure, hold(told(tmp_path), tmp_path, wait=wait, patience=1):
            pass
        assert 1 <= sum(waited) < 1.5
        assert failure.value.retry is RetryClass.WHEN_IT_CHANGES
        assert "poolferry status" in failure.value.hint
        with pytest.raises(NotNow), hold(told(tmp_path), tmp_path, wait=lambda _: True, patience=3600):
            pass


def test_a_run_with_another_state_meets_the_lock_at_the_target(tmp_path: Path) -> None:
    ours = tmp_path / "backup/.poolferry"
    ours.mkdir(parents=True)
    (ours / "target.json").write_text("{}")
    with hold(told(tmp_path), tmp_path / "one") as held:
        assert len(held) == 3
        with pytest.raises(NotNow), hold(told(tmp_path, "mail"), tmp_path / "two"):
            pass
    assert [entry.name for entry in ours.iterdir()] == ["target.json"]


def test_a_place_on_a_host_is_locked_here_only(tmp_path: Path) -> None:
    with hold(replace(job(), target=Place(name="far", location=THERE)), tmp_path) as held:
        assert len(held) == 2


def test_a_child_that_is_left_over_keeps_the_lock(tmp_path: Path) -> None:
    with hold(told(tmp_path), tmp_path) as held:
        child = subprocess.Popen(["sleep", "60"], pass_fds=held)
    try:
        with pytest.raises(NotNow), hold(told(tmp_path), tmp_path):
            pass
    finally:
        child.kill()
        child.wait()
    with hold(told(tmp_path), tmp_path):
        pass


def test_other_children_do_not_inherit_it(tmp_path: Path) -> None:
    with hold(told(tmp_path), tmp_path):
        child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with hold(told(tmp_path), tmp_path):
            pass
    finally:
        child.kill()
        child.wait()


def test_points_that_are_being_read(tmp_path: Path) -> None:
    each, names = told(tmp_path), ["one", "two", "three"]
    assert points_being_read(each, str(tmp_path), names) == ()
    with lock_point(each, str(tmp_path), "two"), lock_point(each, str(tmp_path), "two"):
        assert points_being_read(each, str(tmp_path), names) == ("two",)
        assert points_being_read(told(tmp_path, "mail"), str(tmp_path), names) == ()
    assert points_being_read(each, str(tmp_path), names) == ()
    assert os.stat(tmp_path / "locks").st_mode & 0o077 == 0


def test_a_program_that_outlived_its_run_is_named(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys\n"
        "from pathlib import Path\n"
        "from tests.runner.test_locks import hold, told\n"
        "folder = Path(sys.argv[1])\n"
        "with hold(told(folder), folder) as held:\n"
        "    print(subprocess.Popen(['sleep', '600'], pass_fds=held, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    pid = int(done.stdout)
    try:
        with pytest.raises(NotNow) as caught, hold(told(tmp_path), tmp_path):
            pass
        assert caught.value.hint == f"wait for it, or end it: kill {pid}"
        subprocess.run(caught.value.hint.partition(": ")[2], shell=True, check=True)  # noqa: S602
        wait_until(lambda: not lives(pid))
        with hold(told(tmp_path), tmp_path):
            pass
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    why = "an earlier run has ended, but a program of it still runs: `sleep 600` (process {}, since {:%Y-%m-%d %H:%M})"
    now = datetime.now(UTC).astimezone()
    assert caught.value.why in {why.format(pid, now - timedelta(minutes=ago)) for ago in (0, 1)}


def test_one_visit_of_a_disk_whatever_history_it_is_for(tmp_path: Path) -> None:
    lock_folder = str(tmp_path / "room")
    with lock_visit(disk(), str(tmp_path / "a"), lock_folder):
        with (
            pytest.raises(NotNow, match="another visit of disk red is going on"),
            lock_visit(disk(), "/nowhere", lock_folder),
        ):
            pass
        with lock_visit(disk(identity="another"), str(tmp_path / "b"), lock_folder):
            pass
    with lock_visit(disk(), str(tmp_path / "b"), lock_folder):
        pass


@pytest.mark.parametrize(
    ("other", "busy"),
    [
        (device("sdc", uuid=""), False),
        (device("sdb1", disk="sdb", uuid=""), True),
        (device("sdc"), True),
    ],
    ids=["another", "a part of it", "what is on it"],
)
def test_a_device_is_enrolled_by_one_and_not_while_it_is_visited(
    tmp_path: Path, other: BlockDevice, busy: bool
) -> None:
    lock_folder = str(tmp_path / "room")
    with lock_device(device("sdb"), str(tmp_path), lock_folder):
        expected = pytest.raises(NotNow, match="is being enrolled or visited") if busy else contextlib.nullcontext()
        with expected, lock_device(other, str(tmp_path), lock_folder):
            pass
        with pytest.raises(NotNow), lock_visit(disk(), str(tmp_path), lock_folder):
            pass


def test_who_may_not_write_below_run_has_a_lock_of_his_own(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with lock_visit(disk(), str(tmp_path / "state"), str(tmp_path / "file/room")):
        assert (tmp_path / "state/locks" / f"visit-{disk().identity}").exists()


@pytest.mark.parametrize(
    ("first", "second", "busy"),
    [
        ("tank", "tank/data", "another restore to tank is going on"),
        ("tank/data", "tank", "another restore to tank, or below it, is going on"),
        ("/srv/a", "/srv/a", "another restore to /srv/a, or below it, is going on"),
        ("tank/data", "tank/datasets", ""),
        ("/srv/a/b", "/srv/a/c", ""),
        ("/srv", "tank/srv", ""),
    ],
)
def test_a_restore_waits_for_one_above_or_below_it(tmp_path: Path, first: str, second: str, busy: str) -> None:
    def restoring(to: str) -> contextlib.AbstractContextManager[tuple[int, ...]]:
        return lock_destination(Location(path=to), str(tmp_path), wait=never, patience=0)

    with restoring(first):
        if not busy:
            with restoring(second):
                return
        with pytest.raises(NotNow) as caught, restoring(second):
            pass
        assert caught.value.why == busy
    with restoring(second), contextlib.suppress(NotNow):
        pass


@given(
    parts=some.lists(some.sampled_from(["a", "b c", "..", ".x"]), min_size=1, max_size=5),
    front=some.sampled_from(["/", ""]),
)
def test_the_folders_above_are_those_that_the_library_names(parts: list[str], front: str) -> None:
    path = front + "/".join(parts)
    above = [str(each) for each in PurePosixPath(path).parents if str(each) not in ("/", ".")]
    assert folders_above(path) == above[::-1]
