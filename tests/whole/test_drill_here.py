"""Drills of copies on this machine: what comes back is compared, damage is loud, and nothing stays behind."""

import os
import re
import shutil
import signal
import stat
from pathlib import Path

import pytest

from tests.processes import strays
from tests.whole.damage import NAMES, fill, rot
from tests.whole.house import House, Ran, facts, hinted_commands, kill, rsyncs, wait_until


def scratch(house: House) -> Path:
    """Return where drills of this house bring back."""
    return house.state / "drill" / "poolferry-drill-photos"


def arrived(house: House) -> bool:
    """Return whether some bytes of the large file have been brought back."""
    return any(path.stat().st_size > 0 for path in scratch(house).rglob("*large*"))


def standing(house: House) -> tuple[str, str]:
    """State and reason of the job."""
    (job,) = house.call("status", "photos")["jobs"]
    return job["state"], job["why"]


def copied(house: House, **toml: object) -> None:
    fill(house.source)
    house.job(**toml)
    assert house.run().outcome == "done"


def test_a_sample_comes_back_as_promised_and_goes_again(house: House) -> None:
    copied(house, drill={"files": 20})
    before = facts(house.target / "points")
    drilled = house.call("drill", "photos")
    assert (drilled.code, drilled.outcome) == (0, "done"), drilled
    told = drilled["drill"]
    assert (told["files"], told["of_files"], told["passed"], told["differences"]) == (20, 2 * len(NAMES) + 1, True, [])
    assert not scratch(house).exists()
    assert facts(house.target / "points") == before
    assert standing(house)[0] == "up"
    shown = house.call("show", "photos")
    assert shown["drill"]["seed"] == told["seed"]
    again = house.call("drill", "photos", "--seed", str(told["seed"]))
    assert (again["drill"]["seed"], again["drill"]["bytes"]) == (told["seed"], told["bytes"])


def test_all_of_it_comes_back(house: House) -> None:
    copied(house)
    drilled = house.call("drill", "photos", "--whole")
    assert (drilled.code, drilled["drill"]["whole"], drilled["drill"]["files"]) == (0, True, 2 * len(NAMES) + 1), (
        drilled
    )
    assert not scratch(house).exists()


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.sample(1)
def test_a_damaged_copy_fails_loudly_until_it_is_mended(house: House, whole: bool) -> None:
    copied(house, drill={"files": 1000})
    rot(house.point() / "1")
    (house.point() / "in" / "plain" / "file").unlink()
    drilled = house.call("drill", "photos", *(["--whole"] if whole else []))
    assert (drilled.code, drilled.outcome) == (1, "failed"), drilled
    assert "the copy is damaged in point" in drilled["why"]
    assert "poolferry run photos" in drilled["hint"]
    named = "\n".join(drilled["drill"]["differences"])
    assert "1: rotten" in named
    assert "in/plain/file: missing" in named
    assert standing(house)[0] == "failing"
    assert house.call("status").code == 4
    (point,) = house.call("points", "photos")["points"]
    assert point["sound"] is False
    assert house.run().outcome == "done"
    assert facts(house.point()) == facts(house.source)
    assert standing(house)[0] == "up", "what the restore test found is over"
    assert house.call("verify", "photos", "--point", point["point"]).code == 0, "the older point is mended, too"
    assert house.call("drill", "photos").outcome == "done"
    assert standing(house)[0] == "up"


def test_a_copy_whose_metadata_changed_is_not_called_sound(house: House) -> None:
    """The disk below the scratch folder and this machine's memory were blamed."""
    copied(house, drill={"files": 1000})
    (house.point() / "1").chmod(0o604)
    drilled = house.call("drill", "photos")
    assert (drilled.outcome, "the copy is damaged in point" in drilled["why"]) == ("failed", True), drilled
    assert "is sound" not in drilled["hint"]
    assert house.run().outcome == "done"
    assert standing(house)[0] == "up"
    assert house.call("drill", "photos").outcome == "done"


def test_damage_on_the_way_is_told_from_damage_of_the_copy(house: House, tmp_path: Path) -> None:
    """An rsync that spoils what it writes, as bad memory would: the copy is read again, and is not accused."""
    copied(house, drill={"files": 1000})
    folder = tmp_path / "bin"
    folder.mkdir()
    spoiling = folder / "rsync"
    spoiling.write_text(
        f'#!/bin/sh\n{shutil.which("rsync")} "$@" || exit\nfor last do :; done\n'
        'case $last in */tree/) touch -r "$last/1" "$last/../t"; printf X >"$last/1"; touch -r "$last/../t" "$last/1";; esac\n'
    )
    spoiling.chmod(0o755)
    house.environment["PATH"] = f"{folder}:{os.environ['PATH']}"
    drilled = house.call("drill", "photos")
    assert (drilled.code, drilled.outcome) == (1, "failed"), drilled
    assert "was not restored correctly" in drilled["why"]
    assert "the copy itself was read again and is sound" in drilled["hint"]
    (point,) = house.call("points", "photos")["points"]
    assert point["sound"] is not False
    assert standing(house)[0] == "failing"
    spoiling.unlink()  # the machine's memory is replaced
    (again,) = re.findall(r"`poolferry ([^`]*)`", drilled["hint"])
    repeated = house.call(*again.split())
    assert (repeated.code, repeated.outcome, repeated["drill"]["seed"]) == (0, "done", drilled["drill"]["seed"])
    assert standing(house)[0] == "up"


def test_a_drill_can_fail(house: House) -> None:
    copied(house)
    before = facts(house.target / "points")
    # With another seed a file with two names may be damaged, and is found twice.
    proved = house.call("drill", "photos", "--self-test", "--seed", "1")
    assert (proved.code, proved.outcome) == (0, "done"), proved
    verdicts = sorted(line.split(": ")[1] for line in proved["drill"]["differences"])
    assert verdicts == ["edited", "missing", "rotten"]
    assert (proved["drill"]["proves"], proved["drill"]["passed"]) == (True, False)
    assert facts(house.target / "points") == before
    assert standing(house)[0] == "up"
    assert house.call("status", "photos")["jobs"][0]["last_drill"] is None


def test_it_is_done_after_a_run_when_it_is_due(house: House) -> None:
    copied(house, drill={"every": "7d"})
    (first,) = [each for each in house.call("history")["runs"] if "drill" in each["asked"]]
    assert (first["outcome"], first["asked"]) == ("done", "sample drill, as [drill] every asks")
    run = house.run()
    assert (run.outcome, "drill" in run.value) == ("nothing-to-do", False)
    house.job(drill={"every": "run"})
    run = house.run()
    assert (run.code, run.outcome, run["drill"]["outcome"]) == (0, "nothing-to-do", "done")
    house.job(drill={"every": "7d", "whole_every": "90d"})
    assert house.run()["drill"]["drill"]["whole"] is True
    assert "drill" not in house.run().value


def test_one_that_fails_after_a_run_makes_the_command_fail(house: House) -> None:
    copied(house)
    rot(house.point() / "1")
    told = house.folder / "told"
    hook = ["sh", "-c", f'echo "$POOLFERRY_OUTCOME: $POOLFERRY_WHY" >>{told}']
    house.job(drill={"every": "7d", "files": 1000}, hooks={"failed": hook})
    run = house.run()
    assert (run.code, run.outcome, run["drill"]["outcome"]) == (1, "nothing-to-do", "failed"), run
    (line,) = told.read_text().splitlines()
    assert line.startswith("failed: the drill failed: the copy is damaged")
    again = house.run()  # mends, and drills again
    assert (again.code, again.outcome, again["drill"]["outcome"]) == (0, "done", "done"), again


def test_the_owners_check_decides_too(house: House) -> None:
    house.write("in/words", "expected words")
    house.job(drill={"check_command": ["grep", "-q", "expected", "in/words"]})
    assert house.run().outcome == "done"
    well = house.call("drill", "photos")
    assert (well.code, well["drill"]["check"]["exit"]) == (0, 0), well
    house.job(drill={"check_command": ["sh", "-c", "echo seen $POOLFERRY_JOB; ls in; exit 3"]})
    bad = house.call("drill", "photos")
    assert (bad.code, bad.outcome, bad["drill"]["check"]["exit"]) == (1, "failed", 3), bad
    assert bad["drill"]["check"]["output"] == "seen photos\nwords\n"
    assert "ended with 3" in bad["why"]
    house.job(drill={"check_command": ["sleep", "60"], "check_within": "1s"})
    late = house.call("drill", "photos")
    assert (late.code, late["drill"]["check"]["exit"]) == (1, None), late
    assert "took longer than 1.0 s" in late["why"]
    assert strays(house.folder) == []
    assert standing(house)[0] == "failing"


def test_without_room_or_a_place_it_is_refused(house: House) -> None:
    copied(house)
    house.job(drill={"scratch": str(house.source)})
    inside = house.call("drill", "photos")
    assert (inside.code, inside.outcome) == (3, "refused"), inside
    assert "lies within the source" in inside["why"]
    assert not (house.source / "poolferry-drill-photos").exists()
    foreign = house.folder / "place" / "poolferry-drill-photos"
    foreign.mkdir(parents=True)
    (foreign / "dear").write_text("to somebody")
    house.job(drill={"scratch": str(foreign.parent)})
    refused = house.call("drill", "photos")
    assert refused.code == 1
    assert "was not made by a drill" in refused["why"]
    assert (foreign / "dear").read_text() == "to somebody"
    house.job(drill={"scratch": "tank/drill"})
    dataset = house.call("drill", "photos")
    assert (dataset.code, "copies files" in dataset["why"]) == (3, True), dataset
    house.job(drill={"scratch": "/proc/nowhere"})
    unwritable = house.call("drill", "photos")
    assert (unwritable.code, unwritable.outcome) == (1, "failed"), unwritable
    assert "/proc/nowhere" in unwritable["hint"]
    house.job(drill={"scratch": str(house.folder)})  # another scratch, as the hint says
    assert standing(house)[0] == "failing", "nothing was tested yet"
    assert house.follow(unwritable["hint"]).outcome == "done"
    assert standing(house)[0] == "up"
    house.job("empty", source=str(house.folder / "place"), target=str(house.folder / "other"))
    assert house.call("drill", "empty").code == 3


def test_what_a_killed_drill_left_goes_with_the_next_run(house: House) -> None:
    house.write("large", os.urandom(30 << 20))
    house.job(pipe={"rate_limit": "50M"})
    assert house.run().outcome == "done"
    house.job(drill={"every": "7d"})
    assert house.call("drill", "photos").outcome == "done"
    house.job(drill={"every": "7d"}, pipe={"rate_limit": "3M"})
    process = house.start_call("drill", "photos")
    wait_until(lambda: arrived(house))
    for pid in [process.pid, *rsyncs(process)]:
        kill(pid)
    process.communicate(timeout=20)
    assert scratch(house).exists()
    wait_until(lambda: not strays(house.folder))  # nobody sweeps under the feet of one that is still dying
    house.job(drill={"every": "7d"})
    run = house.run()
    assert (run.outcome, "drill" in run.value) == ("nothing-to-do", False)
    assert not scratch(house).exists()
    newest = house.call("history")["runs"][1]
    assert (newest["requested"], newest["outcome"]) == ("drill", "interrupted")
    assert standing(house)[0] == "up"
    assert strays(house.folder) == []


def test_a_stopped_drill_leaves_nothing(house: House) -> None:
    house.write("large", os.urandom(30 << 20))
    house.job()
    assert house.run().outcome == "done"
    house.job(pipe={"rate_limit": "3M"})
    process = house.start_call("drill", "photos")
    wait_until(lambda: arrived(house))
    kill(process.pid, signal.SIGTERM)
    ended = house.ended(process)
    assert ended.outcome == "interrupted", ended
    assert not scratch(house).exists()
    assert stat.S_ISDIR(os.stat(house.state / "drill").st_mode)


def test_a_copy_that_was_never_made_cannot_be_drilled(house: House) -> None:
    house.write("note", "content")
    house.job()
    drilled: Ran = house.call("drill", "photos")
    assert (drilled.code, drilled.outcome) == (3, "refused"), drilled
    assert drilled["hint"] == "poolferry run photos; then poolferry drill photos"
    for command in hinted_commands(drilled["hint"]):
        assert house.call(*command[1:]).code == 0
    (job,) = house.call("status").value["jobs"]
    assert job["state"] == "up"
    early = house.call("verify", house.job("early", source=str(house.source), target=str(house.folder / "early")))
    assert (early.code, early.outcome) == (3, "refused"), early
    states = {job["job"]: job["state"] for job in house.call("status").value["jobs"]}
    assert states == {"photos": "up", "early": "new"}, "who verifies too early makes no job fail"


def test_a_name_that_no_point_has_says_nothing_against_the_copies(house: House) -> None:
    copied(house)
    for point in ("no-such-point", house.points()[0]):
        told = house.call("verify", "photos", "--point", point)
        assert (told.code, told["run"] == 0) == ((0, False) if point in house.points() else (3, True)), told
        assert standing(house)[0] == "up"
    assert len(house.call("history", "photos")["runs"]) == 2
    house.target.rename(house.folder / "away")
    assert house.call("verify", "photos", "--point", "no-such-point").code == 3
    assert standing(house)[0] == "failing"


def test_the_name_of_a_point_that_is_gone_is_no_mistyped_one(house: House) -> None:
    house.write("note", "content")
    house.run(house.job())
    house.write("note", "more content")
    assert house.run().outcome == "done"
    gone = house.points()[0]
    shutil.rmtree(house.target / "points" / gone)
    assert house.call("verify", "photos", "--point", gone).code == 3
    (job,) = house.call("status").value["jobs"]
    assert (job["state"], "vanished" in str(job)) == ("failing", True), job
