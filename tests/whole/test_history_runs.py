"""Test what is remembered of runs: through kills, on the target, and without it."""

import os
import shutil
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta

from tests.whole.house import House, facts, kill, trees_equal, wait_until

MIB = 1 << 20


def test_a_killed_run_is_told_as_interrupted(house: House) -> None:
    for number in range(60):
        house.write(f"file {number}", os.urandom(2 * MIB))
    house.job(pipe={"rate-limit": "12M"})
    work = house.target / ".poolferry" / "work"
    run = house.start()
    wait_until(lambda: work.exists() and len(os.listdir(work)) > 3)
    during = house.call("status")
    assert during.code == 0, during
    kill(run.pid)
    house.ended(run)
    (begun,) = house.call("history", "photos")["runs"]
    assert begun["outcome"] in (None, "interrupted")
    house.job()
    ended = house.run()
    assert (ended.outcome, ended["resumed"]) == ("done", True), ended
    newest, died = house.call("history", "photos")["runs"]
    assert (newest["run"], newest["outcome"]) == (ended["run"], "done")
    assert (died["run"], died["outcome"]) == (begun["run"], "interrupted")
    assert died["ended"]
    assert trees_equal(house.source, house.point())
    status = house.call("status")
    assert (status.code, status["jobs"][0]["state"]) == (0, "up"), status
    shown = house.call("show", str(died["run"]))
    assert (shown["outcome"], shown["attempt"][0]["decision"]["decision"]) == ("interrupted", "plan"), shown
    begun_step = shown["attempt"][0]["steps"][-1]
    assert (begun_step["action"].split()[0], begun_step["ended"], begun_step["confirmed"]) == ("copy", None, None), (
        begun_step
    )


def test_show_tells_everything(house: House) -> None:
    house.write("one", b"x" * 1000)
    house.job()
    run = house.run()
    shown = house.call("show", str(run["run"]))
    assert shown.code == 0
    assert (shown["outcome"], shown["moved_bytes"], shown["attempts"]) == ("done", 1000, 1)
    (attempt,) = shown["attempt"]
    assert attempt["ended"]
    copy = next(step for step in attempt["steps"] if step["action"].startswith("copy"))
    (line,) = copy["commands"]
    assert line.startswith("rsync ")
    assert str(house.source) in line
    assert (copy["moved_bytes"], copy["proved"], copy["exits"]) == (1000, True, [0])
    assert [step["action"] for step in attempt["steps"]] == [step["action"] for step in run["steps"]]
    assert house.call("show", "photos")["run"] == run["run"]
    assert house.call("show", "999").code == 2


def test_show_tells_what_failed(house: House) -> None:
    house.write("one", "content")
    house.job(target="ssh://root@127.0.0.1:1/backup", retry={"attempts": 2, "wait": "0.1s"})
    run = house.run()
    assert (run.code, run["attempts"]) == (1, 2), run
    shown = house.call("show", str(run["run"]))
    assert len(shown["attempt"]) == 2
    assert all("did not answer" in attempt["why"] for attempt in shown["attempt"])
    assert any("Connection refused" in line for line in shown["evidence"])
    assert any(line.startswith("ssh ") for line in shown["evidence"]), shown["evidence"]
    assert shown["hint"]


def test_the_history_travels_with_the_data(house: House) -> None:
    house.write("one", "content")
    house.job()
    first = house.run()
    house.write("two", "more")
    second = house.run()
    with closing(sqlite3.connect(f"file:{house.target}/.poolferry/history.sqlite?mode=ro", uri=True)) as travelled:
        assert travelled.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert travelled.execute("SELECT id FROM runs ORDER BY id").fetchall() == [(first["run"],), (second["run"],)]
    shutil.rmtree(house.state)
    house.state.mkdir()
    shutil.copy(house.target / ".poolferry" / "history.sqlite", house.state / "history.sqlite")
    runs = house.call("history", "photos")["runs"]
    assert [run["run"] for run in runs] == [second["run"], first["run"]]
    assert runs[1]["outcome"] == "done"
    points = house.call("points", "photos")["points"]
    assert [point["point"] for point in points] == house.points()
    assert house.run().outcome == "nothing-to-do"


def test_without_history_it_goes_on_from_what_the_target_holds(house: House) -> None:
    house.write("large", os.urandom(MIB))
    house.write("small", "content")
    house.job()
    assert house.run().outcome == "done"
    shutil.rmtree(house.state)
    assert house.run().outcome == "nothing-to-do"
    (told,) = house.call("status")["jobs"]
    assert (told["state"], told["why"]) == ("failing", "no verified copy yet"), told
    house.follow(told["hint"])
    assert house.call("status")["jobs"][0]["state"] == "up", "no hint was given: nobody knew what ends it"
    shutil.rmtree(house.state)
    house.write("small", "changed")
    run = house.run()
    assert (run.outcome, run["moved_bytes"]) == ("done", len("changed")), run
    assert (house.point(0) / "large").stat().st_ino == (house.point(1) / "large").stat().st_ino
    assert facts(house.point()) == facts(house.source)
    read = house.call("verify", "photos")
    assert (read.code, read["reading"]["counts"]) == (0, {}), read


def test_state_lost_in_the_middle_of_a_copy(house: House) -> None:
    """The notes of what was moved are gone too: those files are read, and the point is verified all the same."""
    for number in range(60):
        house.write(f"file {number}", os.urandom(2 * MIB))
    house.job(pipe={"rate-limit": "12M"})
    work = house.target / ".poolferry" / "work"
    run = house.start()
    wait_until(lambda: work.exists() and len(os.listdir(work)) > 10)
    kill(run.pid)
    house.ended(run)
    wait_until(lambda: not any(path.name.startswith(".file") for path in work.iterdir()))
    there = len([path for path in work.iterdir() if path.is_file()])
    shutil.rmtree(house.state)
    house.job()
    ended = house.run()
    assert (ended.outcome, ended["resumed"]) == ("done", True), ended
    assert ended["moved_bytes"] <= (60 - there + 1) * 2 * MIB
    assert trees_equal(house.source, house.point())
    assert house.call("verify", "photos").code == 0


def test_the_history_is_copied_when_something_changed_or_no_copy_is_there(house: House) -> None:
    house.write("one", "content")
    house.job()
    copy = house.target / ".poolferry" / "history.sqlite"
    assert house.run().outcome == "done"
    first = copy.stat().st_ino
    assert house.run().outcome == "nothing-to-do"
    assert copy.stat().st_ino == first
    house.write("one", "other content")
    assert house.run().outcome == "done"
    second = copy.stat().st_ino
    assert second != first
    copy.unlink()
    assert house.run().outcome == "nothing-to-do"
    assert copy.is_file()


def test_a_history_that_could_not_be_copied_is_copied_by_the_next_run(house: House) -> None:
    house.write("one", "content")
    house.job()
    copy = house.target / ".poolferry" / "history.sqlite"
    assert house.run().outcome == "done"
    copy.unlink()
    copy.mkdir()
    house.write("one", "other content")
    run = house.run()
    assert run.outcome == "done"
    copy.rmdir()
    copy.write_text("something else")
    assert house.run().outcome == "nothing-to-do"
    assert copy.read_bytes().startswith(b"SQLite format 3")


def test_details_of_old_runs_are_removed_as_declared(house: House) -> None:
    house.write("one", "content")
    house.job()
    (house.config / "poolferry.toml").write_text('[history]\nkeep = "1s"\n')
    first = house.run()
    assert house.call("show", str(first["run"]))["attempt"]
    ended = datetime.now(UTC)
    while datetime.now(UTC) < ended + timedelta(seconds=1.1):
        time.sleep(0.1)
    house.write("one", "other content")
    second = house.run()
    assert house.call("show", str(first["run"]))["attempt"] == []
    assert house.call("show", str(second["run"]))["attempt"]
    assert [run["run"] for run in house.call("history")["runs"]] == [second["run"], first["run"]]
