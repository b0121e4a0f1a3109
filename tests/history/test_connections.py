"""A history is made, renewed, read by others, and refused when it is none of ours."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.domain.errors import HistoryError, RetryClass
from orchestrator.domain.run import Outcome
from orchestrator.history import schema
from orchestrator.history.store import open_history
from orchestrator.history.views import open_reader
from tests.history.records import NOON, ODD, begin, finish

ROOT = Path(__file__).resolve().parents[2]
READ_AS_NOBODY = """
import os, sys
from orchestrator.history import database, schema
from orchestrator.history.views import open_reader
from orchestrator.domain.errors import HistoryError
schema.newest(), database.load_queries()
os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    with open_reader(sys.argv[1]) as views:
        print([run.job for run in views.runs(None, 10)])
except HistoryError as error:
    print(error.why, "|", error.hint)
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "history.sqlite")


@pytest.fixture
def open_to_all() -> Iterator[str]:
    """A directory that any user reaches; tmp_path is for its owner alone."""
    folder = tempfile.mkdtemp(dir="/tmp")
    os.chmod(folder, 0o755)
    yield folder
    shutil.rmtree(folder)


def refusal(path: str, *, reader: bool = False) -> HistoryError:
    """The error with which opening is refused."""
    with pytest.raises(HistoryError) as caught, open_reader(path) if reader else open_history(path):
        pass
    assert path in caught.value.why
    assert caught.value.hint
    assert caught.value.retry is RetryClass.ASK_A_HUMAN
    return caught.value


def half_written(source: str, folder: str) -> str:
    """A history as a crash leaves it in the middle of a write: pages changed, the journal still hot.

    How: a transaction larger than the cache writes pages before it commits; the files are copied in that moment.
    """
    crashed = os.path.join(folder, "crashed.sqlite")
    with open_history(source) as history:
        run = begin(history)
        for number in range(30):
            history.said(run, NOON, "info", f"{number} " + "a" * 4000)
        history._database._connection.execute("PRAGMA cache_size = 3")
        with history.together():
            for letters in ("'a', 'b'", "'b', 'c'"):
                history._database._connection.execute(f"UPDATE events SET text = replace(text, {letters})")  # noqa: S608
            for ending in ("", "-journal"):
                shutil.copy(source + ending, crashed + ending)
    assert os.path.getsize(crashed + "-journal") > 0
    assert b"ccccc" in Path(crashed).read_bytes() or b"bbbbb" in Path(crashed).read_bytes()
    return crashed


def one_more(patch: pytest.MonkeyPatch, text: str) -> None:
    """Gives the schema one script more, as a newer version has it."""
    names, script = schema._names(), schema.script
    patch.setattr(schema, "_names", lambda: (*names, "more.sql"))
    patch.setattr(schema, "script", lambda number: text if number > len(names) else script(number))


def test_a_new_history_is_made_with_its_directory_and_opens_again(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "state" / ("h ?#%41" + ODD.replace("\n", "")))
    with open_history(path) as history:
        finish(history, Outcome.DONE)
    with open_history(path) as history:
        finish(history, Outcome.DONE)
        pragmas = ("foreign_keys", "synchronous", "journal_mode", "user_version", "application_id")
        found = [history._database._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas]
    assert found == [1, 2, "truncate", schema.newest(), schema.MARK]
    assert os.path.exists(path)
    with open_reader(path) as views:
        assert len(views.runs(None, 10)) == 2


def test_all_tables_are_strict_and_the_database_is_sound(path: str) -> None:
    open_history(path).close()
    connection = sqlite3.connect(path)
    try:
        tables = connection.execute("PRAGMA table_list").fetchall()
        own = {row[1]: row[5] for row in tables if not row[1].startswith("sqlite_")}
        told = "runs attempts steps events hooks points readings findings memory told messages digests owed anchors beats pauses"
        told += " disks visits whereabouts kits drills rebuilds snoozes problems acts act_processes fleet outbox incarnations"
        assert set(own) == set(told.split())
        assert set(own.values()) == {1}
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    finally:
        connection.close()


def test_an_older_history_is_renewed_step_by_step(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_history(path) as history:
        finish(history, Outcome.DONE)
    one_more(monkeypatch, "ALTER TABLE runs ADD COLUMN mood TEXT;\nUPDATE runs SET mood = 'calm; really';\n")
    before = Path(path).read_bytes()
    with open_reader(path) as views:
        told = views._database._connection.execute("SELECT mood FROM runs").fetchall()
        assert told == [("calm; really",)], "people look first after an upgrade"
        with pytest.raises(sqlite3.OperationalError):
            views._database._connection.execute("DELETE FROM runs")
    assert Path(path).read_bytes() == before, "a reader changes nothing"
    open_history(path).close()
    connection = sqlite3.connect(path)
    try:
        assert connection.execute("SELECT mood FROM runs").fetchall() == [("calm; really",)]
        assert connection.execute("PRAGMA user_version").fetchone() == (schema.newest(),)
    finally:
        connection.close()


def test_a_renewed_copy_is_kept_until_the_history_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look after an upgrade would copy all of it; where this user may not keep it, or its disk is full, it does."""
    path, notes, copied = str(tmp_path / "history.sqlite"), tmp_path / "notes", list[int]()
    notes.mkdir(mode=0o700)
    with open_history(path) as history:
        finish(history, Outcome.DONE)
    one_more(monkeypatch, "CREATE TABLE mood (a TEXT) STRICT;\n")
    migrate = schema.migrate

    def counted(connection: sqlite3.Connection) -> None:
        copied.append(1)
        migrate(connection)

    monkeypatch.setattr(schema, "migrate", counted)

    def look() -> str | None:
        with open_reader(path) as views:
            with pytest.raises(sqlite3.OperationalError):
                views._database._connection.execute("DELETE FROM runs")
            return views.runs(None, 10)[0].why

    before = look()
    assert (look(), len(copied)) == (before, 1)
    (kept,) = notes.iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(path)) as older, older:  # a run of the older version goes on meanwhile
        older.execute("UPDATE runs SET why = 'later'")
    assert (look(), look(), len(copied)) == ("later", "later", 2)
    (renewed,) = notes.iterdir()
    assert renewed != kept
    renewed.write_bytes(b"torn by a crash")
    assert (look(), len(copied)) == ("later", 3)
    notes.chmod(0o777)  # others may write here
    assert (look(), look(), len(copied)) == ("later", "later", 5)
    notes.chmod(0o700)
    open_history(path).close()
    assert list(notes.iterdir()) == []


def test_two_readers_at_once_leave_each_other_their_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of one process: the second one begins and ends while the first one migrates its copy."""
    path, notes, begun = str(tmp_path / "history.sqlite"), tmp_path / "notes", list[int]()
    notes.mkdir(mode=0o700)
    open_history(path).close()
    one_more(monkeypatch, "CREATE TABLE mood (a TEXT) STRICT;\n")
    migrate, files = schema.migrate, list[str]()

    def look() -> None:
        with open_reader(path) as views:
            files.append(views._database._connection.execute("PRAGMA database_list").fetchone()[2])

    def slow(connection: sqlite3.Connection) -> None:
        begun.append(1)
        if len(begun) == 1:
            look()
        migrate(connection)

    monkeypatch.setattr(schema, "migrate", slow)
    left = notes / "renewed-history-x.sqlite.1.part"
    left.touch()
    os.utime(left, (0, 0))
    look()
    assert [str(each) for each in notes.iterdir()] == files[:1] == files[1:]


def test_what_a_run_left_that_died_after_it_renewed_the_history_goes(tmp_path: Path, path: str) -> None:
    open_history(path).close()
    notes = tmp_path / "notes"
    notes.mkdir()
    for name in ("renewed-history-x.sqlite", "renewed-history-x.sqlite.1.part", "other"):
        (notes / name).touch()
    open_history(path).close()
    assert [each.name for each in notes.iterdir()] == ["other"]


def test_a_migration_that_breaks_off_changes_nothing(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_history(path) as history:
        finish(history, Outcome.DONE)
    before = Path(path).read_bytes()
    with monkeypatch.context() as patched:
        one_more(patched, "DELETE FROM runs;\nCREATE TABLE half (a) STRICT;\n")
        refusal(path)
    assert Path(path).read_bytes() == before
    open_history(path).close()


def test_a_step_that_another_process_took_first_is_not_taken_again(path: str) -> None:
    with open_history(path) as history:
        finish(history, Outcome.DONE)
    late = sqlite3.connect(path, isolation_level=None)
    try:
        schema.migrate(late)
        assert late.execute("SELECT count(*) FROM runs").fetchone() == (1,)
    finally:
        late.close()


def test_two_who_open_first_at_once_both_succeed(path: str) -> None:
    recorder = [sys.executable, "-m", "tests.history.recorder", path]
    both = [
        subprocess.Popen([*recorder, job, "3"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for job in "ab"
    ]
    assert [(process.communicate()[1], process.returncode) for process in both] == [(b"", 0), (b"", 0)]


def test_before_the_first_run_nothing_has_happened(tmp_path: Path, path: str) -> None:
    Path(tmp_path / "empty").touch()
    for missing in (path, str(tmp_path / "no" / "such"), str(tmp_path / "empty")):
        with open_reader(missing) as views:
            assert views.runs(None, 10) == ()
            assert views.points(None) == ()
            assert views.health_facts("photos").newest_copy is None
    assert os.listdir(tmp_path) == ["empty"]


def test_a_newer_history_is_left_alone(path: str) -> None:
    with open_history(path) as history:
        history._database._connection.execute("PRAGMA user_version = 99")
    before = Path(path).read_bytes()
    assert "99" in refusal(path).why
    assert "newer" in refusal(path, reader=True).why
    assert Path(path).read_bytes() == before


@pytest.mark.parametrize("content", [b"hello", b"no database\n" * 1000])
def test_a_file_that_is_no_database_is_left_alone(path: str, content: bytes) -> None:
    Path(path).write_bytes(content)
    assert "not an SQLite database" in refusal(path).why
    assert f"mv {path}" in refusal(path, reader=True).hint
    assert Path(path).read_bytes() == content


def test_a_database_of_another_program_is_left_alone(path: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE notes (text)")
    connection.commit()
    connection.close()
    before = Path(path).read_bytes()
    assert "another program" in refusal(path).why
    assert "another program" in refusal(path, reader=True).why
    assert Path(path).read_bytes() == before


def test_a_damaged_history_says_how_to_set_it_aside(path: str) -> None:
    with open_history(path) as history:
        for _ in range(50):
            finish(history, Outcome.DONE)
    with open(path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (os.path.getsize(path) - 4096))
    with pytest.raises(HistoryError, match="damaged") as caught, open_history(path) as history:
        finish(history, Outcome.DONE)
    assert f"mv {path} {path}.broken" in caught.value.hint
    assert "past is lost" in caught.value.hint


def test_a_directory_in_its_place_and_a_file_in_its_way_are_refused(tmp_path: Path) -> None:
    refusal(str(tmp_path))
    Path(tmp_path / "file").touch()
    refusal(str(tmp_path / "file" / "history.sqlite"))
    refusal(str(tmp_path / "file" / "history.sqlite"), reader=True)


def test_what_a_crash_left_half_written_is_rolled_back_by_a_writer(path: str, tmp_path: Path) -> None:
    crashed = half_written(path, str(tmp_path))
    with open_history(crashed) as history:
        (run,) = history.views.runs(None, 10)
        story = history.views.run(run.id)
        assert story is not None
        assert {event.text.lstrip("0123456789 ") for event in story.events} == {"a" * 4000}
        assert run.job == "photos"


def test_a_reader_who_may_write_puts_a_crashed_history_right(path: str, tmp_path: Path) -> None:
    with open_reader(half_written(path, str(tmp_path))) as views:
        assert [run.job for run in views.runs(None, 10)] == ["photos"]


@pytest.mark.root
def test_an_unprivileged_reader_reads_when_no_writer_is_there(open_to_all: str) -> None:
    path = os.path.join(open_to_all, "history.sqlite")
    with open_history(path) as history:
        finish(history, Outcome.DONE)
        opened_by_its_owner(path)
        assert read_as_nobody(path) == "['photos']"
    assert read_as_nobody(path) == "['photos']"


@pytest.mark.root
def test_an_unprivileged_reader_of_a_crashed_history_is_told_what_to_do(open_to_all: str, path: str) -> None:
    crashed = half_written(path, open_to_all)
    opened_by_its_owner(crashed)
    opened_by_its_owner(crashed + "-journal")
    assert "in the middle of a write" in read_as_nobody(crashed)
    assert "owner" in read_as_nobody(crashed)
    open_history(crashed).close()
    opened_by_its_owner(crashed)
    assert read_as_nobody(crashed) == "['photos']"


@pytest.mark.root
def test_a_history_that_may_not_be_read_is_no_empty_one(open_to_all: str) -> None:
    os.chmod(open_to_all, 0o700)
    assert "Permission denied" in read_as_nobody(os.path.join(open_to_all, "history.sqlite"))


def opened_by_its_owner(path: str) -> None:
    """Lets others read it; we make it for its owner alone."""
    os.chmod(os.path.dirname(path), 0o755)
    os.chmod(path, 0o644)


def read_as_nobody(path: str) -> str:
    """Return what a process without any rights sees."""
    done = subprocess.run([sys.executable, "-c", READ_AS_NOBODY, path], cwd=ROOT, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.strip()


def test_a_reader_sees_no_version_between(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The status that somebody asks for while the first run begins."""
    seen, run = [], schema._run

    def looked_at(connection: sqlite3.Connection, text: str) -> None:
        run(connection, text)
        with closing(sqlite3.connect(path, timeout=30)) as reader:
            seen.append(reader.execute("PRAGMA user_version").fetchone()[0])

    monkeypatch.setattr(schema, "_run", looked_at)
    one_more(monkeypatch, "CREATE TABLE mood (a TEXT) STRICT;\n")
    open_history(path).close()
    assert seen == [0, 0], "the whole schema, and one script more"
