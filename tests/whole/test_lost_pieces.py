"""One piece is lost and a tired person asks: the target is not mounted, the state is full, the job's file is gone or broken."""

import contextlib
import os
import random
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orchestrator.app.overview_cache import OverviewCache
from orchestrator.app.settings import Settings
from orchestrator.views.source_rows import headline
from tests.history.records import older_history
from tests.whole.house import House, facts, hinted_commands, loop_filesystem, mounted


@pytest.fixture
def copied(house: House) -> House:
    """A house with one point."""
    house.write("file", "content")
    assert house.run(house.job()).outcome == "done"
    return house


def advice(house: House) -> list[str]:
    """Return the lines of `check --system` that hinder a run."""
    found = house.call("check", "--system")
    lines = [*found["jobs"][0]["advice"], *found["machine"]]
    bad = [f"{each['subject']}: {each['text']}" for each in lines if each["hinders"]]
    assert found.code == bool(bad), found
    return bad


@pytest.mark.parametrize("left", ["an empty folder", "nothing"])
def test_a_target_that_is_not_mounted_is_named_by_each_command(copied: House, left: str) -> None:
    assert advice(copied) == []
    copied.target.rename(copied.folder / "away")
    if left == "an empty folder":
        copied.target.mkdir()
    (bad,) = advice(copied)
    assert bad == (
        f"target {copied.target}: {copied.target} held copies of photos and shows no sign of them now: is it mounted? "
        "mount it, or bring it back, and say the same command again"
    )
    told = copied.call("check", "--system").value
    assert not [each for each in told["jobs"][0]["advice"] if each["good"] and each["subject"].startswith("target ")]
    for words in (("ls", "photos"), ("find", "photos", "file"), ("diff", "photos")):
        ended = copied.call(*words)
        assert (ended.code, "is it mounted?" in ended["error"]) == (3, True), ended
    shutil.rmtree(copied.target, ignore_errors=True)
    (copied.folder / "away").rename(copied.target)
    assert (advice(copied), copied.call("ls", "photos").code) == ([], 0)


@pytest.mark.root
def test_a_state_in_which_nothing_can_be_recorded_hinders(copied: House) -> None:
    subprocess.run(["mount", "--bind", copied.state, copied.state], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", copied.state], check=True)
        (bad,) = advice(copied)
        assert bad.startswith(f"state {copied.state}: no run can be recorded: "), bad
    finally:
        subprocess.run(["umount", copied.state], check=True)
    assert advice(copied) == []
    (copied.state / "history.sqlite").write_bytes(b"no database at all" * 999)
    (bad,) = advice(copied)
    assert "is not an SQLite database" in bad


@pytest.mark.root
def test_a_state_that_is_full_or_may_only_be_read_is_no_state_to_be_up_in(house: House) -> None:
    """Name the obstacle: no run begins, and so none that fails is recorded."""
    house.write("file", "content")
    house.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "none", house.state], check=True)
    try:
        assert house.run(house.job()).outcome == "done"
        assert house.call("status").code == 0
        with open(house.state / "fill", "wb") as file, pytest.raises(OSError, match="No space left"):
            file.write(bytes(4 << 20))
        full = house.call("status")
        assert (full.code, full["unrecorded"]["why"]) == (
            4,
            f"no run can be recorded in {house.state}: its filesystem is full",
        )
        assert house.run("photos").code == 1
        os.unlink(house.state / "fill")
        assert (house.call("status").code, "unrecorded" in house.call("status").value) == (0, False)
        kept = OverviewCache(Settings(config=str(house.config), state=str(house.state)))
        assert kept.get(datetime.now(UTC)).unrecorded == ""
        subprocess.run(["mount", "-o", "remount,ro", house.state], check=True)
        told = kept.get(datetime.now(UTC))  # though history has not changed
        assert (headline(told, ()).kind, headline(told, ()).title) == ("bad", "No run can be recorded")
        assert house.call("status")["unrecorded"]["why"].endswith("its filesystem is mounted read-only")
    finally:
        subprocess.run(["umount", house.state], check=True)


@pytest.mark.root
@pytest.mark.namespace
def test_a_state_on_ext4_that_root_filled_is_full(house: House, tmp_path: Path) -> None:
    """ext4 counts as free what it keeps from root, too: status said up while no run could begin."""
    house.write("file", "content")
    with loop_filesystem(tmp_path, "mkfs.ext4", "-q", "-F", size=20 << 20) as disk:
        house.state = disk / "state"
        house.state.mkdir(mode=0o700)
        assert house.run(house.job()).outcome == "done"
        fill_up(house.state / "fill")
        (house.source / "other").symlink_to("what is plain comes without rsync")
        full = house.call("status")
        assert (full.code, full["unrecorded"]["why"].endswith("its filesystem is full")) == (4, True), full
        ran = house.run()
        assert (ran.code, "its disk is full" in ran.outcome) == (1, True), ran
        (house.state / "fill").unlink()
        assert (house.call("status").code, "unrecorded" in house.call("status").value) == (0, False)
        assert house.run().outcome == "done"


@pytest.mark.root
@pytest.mark.namespace
@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_the_end_is_recorded_though_something_else_fills_the_state_meanwhile(
    house: House, tmp_path: Path, kind: str
) -> None:
    """A run of which no end was recorded passed for one that was killed, and a restore that was complete ended as a failure."""
    for number in range(200):
        house.write(str(number), random.randbytes(100))
    held = loop_filesystem(tmp_path, "mkfs.ext4", "-q", "-F", size=40 << 20)
    with mounted(tmp_path / "state", "size=16m,mode=700") if kind == "tmpfs" else held as disk:
        house.state = (disk or tmp_path) / "state"
        house.state.mkdir(mode=0o700, exist_ok=True)
        assert house.run(house.job(retry={"attempts": 1})).outcome == "done"
        (house.source / "other").symlink_to("what is plain comes without rsync")
        full = {**house.environment, "PATH": _filler(house, tmp_path / "bin")}
        house.environment = full
        ran = house.run()
        (job,) = house.call("status")["jobs"]
        assert (job["last_run"]["outcome"], job["last_run"]["why"]) == (ran.outcome, ran["why"]), ran
        (house.state / "fill").unlink()
        restored = house.call("restore", "run", "photos", "--to", str(tmp_path / "back"))
        assert (restored.outcome, restored.code) == ("done", 0), restored
        assert facts(tmp_path / "back") == facts(house.point())
        (house.state / "fill").unlink()
        house.environment["PATH"] = os.environ["PATH"]
        assert house.run().code == 0
        assert facts(house.point()) == facts(house.source)


@pytest.mark.root
@pytest.mark.namespace
def test_a_run_that_fills_the_state_itself_says_so_and_does_not_blame_the_target(house: House, tmp_path: Path) -> None:
    """And a restore test says how much is free there, and how much is to stay so."""
    for number in range(16_000):
        house.write(f"{number:0200d}", "x")
    with mounted(tmp_path / "state", "size=4m,mode=700"):
        ran = house.run(house.job(rsync={"parallel": 1}, drill={"files": 3}))
        assert (ran.outcome, f"the state directory {house.state} is full" in ran["why"]) == ("failed", True), ran
        assert "target" not in ran["why"]
        assert f"its notes in {house.state}/notes/photos held " in ran["why"], ran
        assert not (house.state / "notes/photos").exists()
        house.write(tmp_path / "hers/file", "small")
        assert house.run(house.job("hers", source=tmp_path / "hers", target=tmp_path / "copies")).outcome == "done"
        subprocess.run(["mount", "-o", "remount,size=60m", house.state], check=True)  # as the hint says
        assert house.run().outcome == "done"
        assert facts(house.point()) == facts(house.source)
        drilled = house.call("drill", "photos")
        assert (drilled.outcome, "of which 64.0 MiB are to stay free" in drilled["why"]) == ("refused", True), drilled
        assert "smaller" not in drilled["hint"]
        subprocess.run(["mount", "-o", "remount,size=100m", house.state], check=True)
        assert house.follow(drilled["hint"]).outcome == "done"


def _filler(house: House, folder: Path) -> str:
    """Return a PATH in which an rsync that copies fills the state directory before."""
    folder.mkdir()
    (folder / "rsync").write_text(
        f"""#!/bin/sh
case " $* " in *" --version"* | *" --dry-run "*) exec {shutil.which("rsync")} "$@" ;; esac
for size in 65536 4096 100; do dd if=/dev/zero bs=$size >> {house.state}/fill 2> /dev/null; done
exec {shutil.which("rsync")} "$@"
"""
    )
    (folder / "rsync").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def fill_up(path: Path) -> None:
    """Leave no room on a filesystem."""
    with open(path, "ab", buffering=0) as file:
        for size in (65536, 4096, 100):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)) == size:
                    pass


@pytest.mark.parametrize("content", [b"", b"garbage", b"\0" * 248], ids=["empty", "garbage", "zeros"])
@pytest.mark.parametrize("path", ["", "in/file"], ids=["all", "one file"])
@pytest.mark.sample(2)
def test_a_damaged_key_does_not_keep_data_from_coming_back(
    house: House, tmp_path: Path, content: bytes, path: str
) -> None:
    """Each run says what to do, as does the check of the machine; a restore ended in its middle."""
    house.write("in/file", "content")
    assert house.run(house.job()).outcome == "done"
    (house.state / "authentication.key").write_bytes(content)
    (bad,) = advice(house)
    assert "is no key that this version can read" in bad
    house.write("new", "content")
    ran = house.run()
    assert ran.outcome == "failed", ran
    back = house.call("restore", "run", "photos", "--to", str(tmp_path / "back"), *(["--path", path] if path else []))
    assert back.outcome == "done", back
    assert any("no tag of a manifest can be judged" in warning for warning in back["warnings"]), back
    found = tmp_path / "back" if path else tmp_path / "back/in/file"
    assert found.read_text() == "content"
    (command,) = re.findall(r"(rm -- .*?) \(", ran["hint"])
    subprocess.run(shlex.split(command), check=True)
    assert advice(house) == []
    assert house.run().outcome == "done"
    assert house.call("verify", "photos").code == 0


@pytest.mark.parametrize("points", [True, False], ids=["points", "mirror"])
@pytest.mark.parametrize("content", [None, b"", b'{"format": 1, "jo'], ids=["gone", "empty", "cut"])
@pytest.mark.sample(2)
def test_copies_whose_marker_is_lost(house: House, tmp_path: Path, points: bool, content: bytes | None) -> None:
    """They come back without a configuration, too, as their manifest names the job; and a mirror that is there is not called gone."""
    house.write("in/file", "content")
    assert house.run(house.job(rsync={"points": points, "delete": not points})).outcome == "done"
    marker = house.target / ".poolferry/target.json"
    if content is None:
        marker.unlink()
    else:
        marker.write_bytes(content)
    words = ("restore", "run", "--from", str(house.target), "--to", str(tmp_path / "back"))
    back = house.call(*words)
    if content:
        assert back.outcome == "refused", back
        (command,) = re.findall(r"(rm -- .*?) \(", back["hint"])
        subprocess.run(shlex.split(command), check=True)
        back = house.call(*words)
    assert (back.outcome, (tmp_path / "back/in/file").read_text()) == ("done", "content"), back
    house.write("new", "content")
    ran = house.run()
    assert (ran.outcome, "has lost .poolferry/target.json" in ran["why"]) == ("refused", True), ran
    assert house.follow(ran["hint"].split(" (")[0]).outcome == "done"
    copy = house.point() if points else house.target
    assert (copy / "new").read_text() == (copy / "in/file").read_text() == "content"
    assert house.call("verify", "photos").code == 0


_CUT_WRITE = """
import os, signal, sqlite3, sys
history = sqlite3.connect(sys.argv[1], isolation_level=None)
history.execute("PRAGMA cache_size = 1")
history.execute("BEGIN IMMEDIATE")
for number in range(200):
    history.execute("INSERT INTO memory (job, key, value) VALUES ('x', ?, ?)", (str(number), "v" * 3000))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.root
def test_a_state_that_others_may_write_and_a_cut_write_are_looked_at(copied: House) -> None:
    """As the next run does, but without a change."""
    planted = copied.state / "planted"
    planted.write_text("")
    os.chown(planted, 1234, 1234)
    copied.state.chmod(0o777)
    (bad,) = advice(copied)
    assert str(planted) in bad, bad
    assert copied.state.stat().st_mode & 0o777 == 0o777
    copied.state.chmod(0o700)
    planted.unlink()
    history = copied.state / "history.sqlite"
    subprocess.run([sys.executable, "-c", _CUT_WRITE, history], check=False)
    journal = copied.state / "history.sqlite-journal"
    kept = journal.read_bytes()
    assert kept
    assert advice(copied) == []
    assert journal.read_bytes() == kept
    with history.open("r+b") as file:
        file.seek(8 * 4096)
        file.write(os.urandom(8 * 4096))
    (bad,) = advice(copied)
    assert "damaged" in bad, bad


@pytest.mark.parametrize("loss", ["gone", "renamed", "half edited"])
def test_copies_come_back_without_the_file_of_their_job(copied: House, loss: str) -> None:
    file = copied.config / "jobs" / "photos.toml"
    if loss == "gone":
        file.unlink()
    elif loss == "renamed":
        file.rename(file.with_name("pictures.toml"))
    else:
        os.truncate(file, file.stat().st_size - 2)
    ended = copied.call("restore", "run", "photos", "--to", str(copied.folder / "back"))
    assert ended.code == 2, ended
    (hint,) = [line for line in ended.errors.splitlines() if "poolferry restore run --from " in line]
    words = hint.partition(": poolferry ")[2].replace("DIR", str(copied.folder / "back")).split()
    assert copied.call(*words).outcome == "done"
    assert facts(Path(copied.folder / "back")) == facts(copied.source)
    assert "--from" not in copied.call("restore", "run", "no-such-job", "--to", str(copied.folder / "b")).errors


def test_a_job_whose_file_was_renamed_by_hand_is_said_how_to_go_on_by_each_command(copied: House) -> None:
    file = copied.config / "jobs" / "pictures.toml"
    file.with_name("photos.toml").rename(file)
    wants = f'write known-as = "photos" before the first section of {file}'
    (bad,) = advice(copied)
    assert wants in bad
    for words in (("run",), ("verify",), ("ls",), ("drill",)):
        assert wants in str(copied.call(*words, "pictures").value), words
    file.write_text(f'known-as = "photos"\n{file.read_text()}')
    assert (advice(copied), copied.run("pictures").outcome) == ([], "nothing-to-do")


def test_a_place_that_gets_another_path_was_never_there(copied: House) -> None:
    """A larger disk, say: nothing is missed on it, and no file beside the copies was changed there by somebody."""
    copied.target = copied.folder / "larger"
    copied.job()
    assert advice(copied) == []
    assert "mounted" not in copied.call("ls", "photos")["error"]
    ran = copied.run()
    assert (ran.code, [line for line in ran.errors.splitlines() if "as this host wrote" in line]) == (0, []), ran


def test_check_leaves_a_history_of_an_older_format_and_a_locked_one_as_they_are(copied: House) -> None:
    """A newer version's check must not make the installed one refuse each run."""
    path = copied.state / "history.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        assert advice(copied) == []
    path.write_bytes(older_history(copied.folder / "older.sqlite"))
    before = path.read_bytes()
    assert advice(copied) == []
    assert path.read_bytes() == before


def test_status_names_copies_whose_job_has_no_file_until_they_are_said_to_be_over(copied: House) -> None:
    copied.job("papers", target=str(copied.folder / "papers"))
    assert copied.call("rename", "photos", "pictures").code == 0
    assert copied.run("papers").outcome == "done"
    assert copied.call("status").code == 0
    file = copied.config / "jobs" / "pictures.toml"
    text = file.read_text()
    file.unlink()
    other = file.with_name("images.toml")
    other.write_text(text.replace('known-as = "photos"', 'known-as = "pictures"'))
    assert "stray" not in copied.call("status").value, "a file says that it goes on with them"
    other.unlink()
    told = copied.call("status")
    (stray,) = told["stray"]
    assert (told.code, stray["job"], stray["place"]) == (4, "pictures", str(copied.target))
    (words,) = hinted_commands(stray["hint"])
    assert copied.call(*words[1:]).code == 0
    assert (copied.call("status").code, "stray" in copied.call("status").value) == (0, False)
    assert copied.call("end", "pictures", "--undo").code == 0
    assert copied.call("status").code == 4
    assert copied.call("end", "pictures").code == 0
    file.write_text(text)
    assert copied.call("status").code == 0, "it goes on by itself"
    assert copied.run("pictures").outcome is not None
    assert "remove jobs/pictures.toml first" in copied.call("end", "pictures").errors
    assert copied.call("pause", "pictures").code == 0
    file.unlink()
    assert copied.call("status").code == 4, "this loss is another one, and a job that rests is not over"
    for command in ("pause", "resume"):  # as a notice of an earlier version said
        asked = copied.call(command, "pictures")
        (words,) = (each for each in hinted_commands(asked.errors) if each[1] == "end")
        assert (asked.code, words[2]) == (2, "pictures")
    assert copied.call(*words[1:]).code == 0
    assert copied.call("status").code == 0
    assert copied.call("end", "nothing").code == 2
