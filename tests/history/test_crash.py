"""Test that what was acknowledged outlives kills, full disks and other writers; what fails says what to do."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.errors import HistoryError
from orchestrator.domain.run import Outcome
from orchestrator.history.failures import explain
from orchestrator.history.store import open_history
from orchestrator.history.views import open_reader
from tests.history.records import NOON, begin, finish, later

ROOT = Path(__file__).resolve().parents[2]
KILLS = 25


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "history.sqlite")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 400 KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)], check=True)
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def recorder(path: str, job: str, count: int) -> subprocess.Popen[str]:
    """A process that records and acknowledges on its output."""
    command = [sys.executable, "-m", "tests.history.recorder", path, job, str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def killed(path: str, chance: random.Random) -> list[str]:
    """The acknowledgements of a recorder that was killed at a random moment."""
    with recorder(path, "photos", 100_000) as process:
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(chance.randint(1, 9))]
        time.sleep(chance.random() * 0.004)  # not to wait for anything: to hit anywhere in a transaction
        process.send_signal(signal.SIGKILL)
        seen += process.stdout.readlines()
    assert process.returncode == -signal.SIGKILL
    return [line.strip() for line in seen if line.endswith("\n")]


def test_what_was_acknowledged_outlives_a_kill_at_any_moment(path: str) -> None:
    chance = random.Random(2)
    acknowledged: list[str] = []
    for _ in range(KILLS):
        acknowledged += killed(path, chance)
        with open_history(path) as history:
            sound = history._database._connection.execute("PRAGMA integrity_check").fetchall()
            assert sound == [("ok",)]
    with open_reader(path) as views:
        stories = {run.id: views.run(run.id) for run in views.runs(None, 100_000)}
    assert len(acknowledged) > KILLS
    for line in acknowledged:
        word, number = line.split()
        story = stories[int(number)]
        assert story is not None
        if word in ("stepped", "ended"):
            assert story.attempts[0].steps[0].confirmed is True
        if word == "ended":
            assert story.run.outcome is Outcome.DONE
    for story in stories.values():  # what belongs together came together
        assert story is not None
        assert all(len(attempt.steps) == 1 and attempt.steps[0].ended_at for attempt in story.attempts)


def test_two_processes_record_at_once_and_a_reader_looks_on(path: str) -> None:
    open_history(path).close()
    both = [recorder(path, job, 40) for job in ("a", "b")]
    with open_reader(path) as views:
        while any(process.poll() is None for process in both):
            assert len(views.runs(None, 100)) <= 80
    for process in both:
        with process:
            assert process.wait() == 0
    with open_reader(path) as views:
        for job in ("a", "b"):
            assert [run.outcome for run in views.runs(job, 100)] == [Outcome.DONE] * 40


def test_a_history_that_stays_locked_says_so_and_goes_on_later(path: str) -> None:
    with open_history(path, wait_s=0.05) as history:
        run = finish(history, Outcome.DONE)
        other = sqlite3.connect(path, isolation_level=None)
        try:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(HistoryError, match="locked") as caught:
                history.said(run, NOON, "info", "no")
            assert "fuser" in caught.value.hint
            other.execute("ROLLBACK")
            other.execute("BEGIN")
            other.execute("SELECT * FROM runs").fetchone()  # a look held open stops the commit
            with pytest.raises(HistoryError, match="locked"):
                history.said(run, NOON, "info", "no")
            other.execute("ROLLBACK")
        finally:
            other.close()
        history.said(run, NOON, "info", "yes")
        story = history.views.run(run)
        assert story is not None
        assert [event.text for event in story.events] == ["yes"]


@pytest.mark.root
def test_a_full_disk_loses_nothing_that_was_acknowledged(small_disk: Path) -> None:
    path = str(small_disk / "history.sqlite")
    with open_history(path) as history:
        run = begin(history)
        said = 0
        with pytest.raises(HistoryError, match="disk is full") as caught:  # noqa: PT012 - it ends when it is full
            while True:
                history.said(run, NOON, "info", f"{said} " + "x" * 5000)
                said += 1
        assert "free some space" in caught.value.hint
        assert said > 3
        story = history.views.run(run)
        assert story is not None
        assert len(story.events) == said
        history._database._connection.execute("PRAGMA cache_size = 2")  # so that it meets the disk before the commit
        with pytest.raises(HistoryError, match="rolled back"), history.together():  # noqa: PT012
            with pytest.raises(HistoryError, match="disk is full"):
                history.said(run, NOON, "info", "x" * 300_000)
            history.said(run, NOON, "info", "not without the one before it")
    with open_reader(path) as views:
        story = views.run(run)
        assert story is not None
        assert len(story.events) == said


@pytest.mark.root
def test_a_filesystem_mounted_read_only_is_named(small_disk: Path) -> None:
    path = str(small_disk / "history.sqlite")
    with open_history(path) as history:
        finish(history, Outcome.DONE)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(HistoryError, match="may only be read") as caught, open_history(path) as history:
        begin(history)
    assert "mounted read-only" in caught.value.hint
    with open_reader(path) as views:
        assert len(views.runs(None, 10)) == 1


def test_a_backup_is_whole_and_holds_what_was_committed(path: str, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(b"an older copy")
    with open_history(path) as history:
        finish(history, Outcome.DONE)
        with recorder(path, "mail", 10) as process:
            history.backup_to(str(copy))
            assert process.wait() == 0
            assert process.stdout is not None
            process.stdout.read()
        history.said(1, later(days=1), "info", "after")
    with open_history(str(copy)) as history:
        assert finish(history, Outcome.DONE) > 1
        assert len(history.views.runs("photos", 10)) == 2
    assert sorted(os.listdir(tmp_path)) == [
        "copy.sqlite",
        "copy.sqlite-journal",
        "history.sqlite",
        "history.sqlite-journal",
    ]


def test_a_backup_that_fails_leaves_the_older_copy_and_no_litter(path: str, tmp_path: Path) -> None:
    with open_history(path) as history:
        with pytest.raises(HistoryError):
            history.backup_to(str(tmp_path / "missing" / "copy.sqlite"))
        (tmp_path / "copy").mkdir()
        with pytest.raises(HistoryError, match="copy"):
            history.backup_to(str(tmp_path / "copy"))
        Path(path).rename(tmp_path / "moved")
        with pytest.raises(HistoryError, match="cannot be opened"):
            history.backup_to(str(tmp_path / "another"))
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part") or name == "another"]


@pytest.mark.root
def test_a_backup_to_a_full_disk_leaves_the_older_copy(path: str, small_disk: Path) -> None:
    copy = small_disk / "copy.sqlite"
    copy.write_bytes(b"an older copy")
    with open_history(path) as history:
        run = begin(history)
        history.said(run, NOON, "info", "x" * 600_000)
        with pytest.raises(HistoryError, match="disk is full"):
            history.backup_to(str(copy))
    assert copy.read_bytes() == b"an older copy"
    assert os.listdir(small_disk) == ["copy.sqlite"]


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("SQLITE_BUSY_RECOVERY", "locked"),
        ("SQLITE_LOCKED_SHAREDCACHE", "locked"),
        ("SQLITE_READONLY_DIRECTORY", "may only be read"),
        ("SQLITE_READONLY_ROLLBACK", "middle of a write"),
        ("SQLITE_FULL", "disk is full"),
        ("SQLITE_IOERR_FSYNC", "reports an error"),
        ("SQLITE_CORRUPT_INDEX", "damaged"),
        ("SQLITE_NOTADB", "not an SQLite database"),
        ("SQLITE_CANTOPEN_ISDIR", "cannot be opened"),
        ("SQLITE_PERM", "may not be opened"),
        ("SQLITE_ERROR", "does not accept"),
        ("", "does not accept"),
    ],
)
def test_each_error_is_told_with_its_meaning_and_a_cure(name: str, meaning: str) -> None:
    error = explain(name=name, words="the words", path="/var/lib/h {x}")
    assert meaning in error.why
    assert "the words" in error.why
    assert "/var/lib/h {x}" in error.why
    assert error.hint
