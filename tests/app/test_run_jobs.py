"""plan, run, status, history, show, points: one life of a job, told by the real command."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.ferry import Ferry
from tests.whole.house import STEP_KEYS

RUN = set("format run job outcome why cure moved_bytes took_s resumed attempts steps points warnings evidence".split())


def test_a_plan_changes_nothing(ferry: Ferry) -> None:
    source = ferry.job()
    told = ferry.run("plan", "photos")
    assert told.code == 0
    assert told.out.startswith("photos: ")
    assert "runs: rsync " in told.out
    assert "why:" in told.out
    assert not ferry.target().exists()
    assert not ferry.state.exists()
    value = ferry.run("plan", "photos", "--json").value
    assert (value["job"], value["decision"]) == ("photos", "plan")
    commands = [line for stage in value["stages"] for step in stage for line in step["commands"]]
    assert any(str(source) in line for line in commands)


def test_a_run_and_what_is_told_of_it(ferry: Ferry) -> None:
    ferry.job()
    value = ferry.run("run", "photos", "--json").value
    assert set(value) >= RUN
    assert (value["run"], value["job"], value["outcome"]) == (1, "photos", "done")
    assert all(set(step) == STEP_KEYS for step in value["steps"])
    [point] = value["points"]
    again = ferry.run("run", "photos")
    assert again.code == 0
    assert again.out.startswith("photos: nothing-to-do: ")
    assert len(again.out.splitlines()) == 1

    assert [run["outcome"] for run in ferry.run("history", "--json").value["runs"]] == ["nothing-to-do", "done"]
    assert [run["run"] for run in ferry.run("history", "photos", "--limit", "1", "--json").value["runs"]] == [2]
    lines = ferry.run("history").out.splitlines()
    assert lines[0].split() == "RUN JOB KIND BEGUN OUTCOME TOOK MOVED WHY".split()
    assert re.match(r" +2  photos  run +today \d\d:\d\d +nothing-to-do ", lines[1])

    shown = ferry.run("show", "1")
    assert "runs: rsync " in shown.out
    assert f"made point {point}" in shown.out
    story = ferry.run("show", "1", "--json").value
    assert story["attempt"][0]["decision"]["decision"] == "plan"
    assert any(step["confirmed"] for step in story["attempt"][0]["steps"])
    assert ferry.run("show", "photos").out.startswith("run 2: photos")
    assert ferry.run("show", "last").out.startswith("run 2: photos")

    [row] = ferry.run("points", "--json").value["points"]
    assert (row["point"], row["job"], row["location"]) == (point, "photos", str(ferry.target()))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row["as_of"])
    assert point in ferry.run("points", "photos").out
    assert ferry.run("points", "list", "photos", "--json").value["points"] == [row]


def test_progress_goes_to_stderr_and_results_to_stdout(ferry: Ferry) -> None:
    ferry.job()
    told = ferry.run("run", "photos")
    assert len(told.out.splitlines()) == 1
    assert "photos: copy " in told.err
    assert "+ " not in told.err
    assert "\x1b" not in told.out + told.err


def test_verbose_shows_every_command(ferry: Ferry) -> None:
    ferry.job()
    told = ferry.run("-v", "run", "photos")
    assert [line for line in told.err.splitlines() if line.startswith("+ rsync ")]
    assert not [line for line in told.out.splitlines() if line.startswith("+ ")]
    assert [line for line in ferry.run("plan", "photos", "-v").err.splitlines() if line.startswith("+ ")]


def test_quiet_says_nothing_when_all_is_well(ferry: Ferry) -> None:
    source = ferry.job()
    told = ferry.run("-q", "run", "photos")
    assert (told.code, told.out, told.err) == (0, "", "")
    shutil.rmtree(source)
    told = ferry.run("-q", "run", "photos")
    assert told.code != 0
    assert "photos: " in told.out


def test_history_is_empty_before_the_first_run(ferry: Ferry) -> None:
    ferry.job()
    assert ferry.run("history").out == "no run yet\n"
    assert ferry.run("history", "--json").value["runs"] == []
    assert "--look" in ferry.run("points").out
    told = ferry.run("status")
    assert (told.code, told.out.splitlines()[1].split()[:2]) == (0, ["photos", "new"])


def test_points_are_found_again_on_the_target(ferry: Ferry) -> None:
    ferry.job()
    [point] = ferry.run("run", "photos", "--json").value["points"]
    shutil.rmtree(ferry.state)
    assert ferry.run("points", "--json").value["points"] == []
    assert [row["point"] for row in ferry.run("points", "--look", "--json").value["points"]] == [point]


def test_a_refusal_says_why_and_the_cure(ferry: Ferry) -> None:
    source = ferry.job()
    for number in range(20):
        (source / f"file {number}").write_text("x\n")
    assert ferry.run("run", "photos").code == 0
    for number in range(19):
        (source / f"file {number}").unlink()
    planned, told = ferry.run("plan", "photos"), ferry.run("run", "photos")
    assert planned.code == told.code == 3
    lines = told.out.splitlines()
    assert lines[0].startswith("photos: refused: ")
    hint = next(number for number, line in enumerate(lines) if line.startswith("  what to do: "))
    assert "--allow" in lines[hint]
    assert "  deleted: file 1" in lines[1:hint]
    value = ferry.run("plan", "photos", "--json").value
    assert value["guard"] in lines[hint]
    allowed = ferry.run("run", "photos", "--allow", value["guard"])
    assert allowed.code == 0
    assert ferry.run("status").code == 0


def test_several_jobs_the_worst_counts(ferry: Ferry) -> None:
    gone = ferry.job("gone")
    ferry.job("photos")
    shutil.rmtree(gone)
    told = ferry.run("run", "photos", "gone", "photos", "--json")
    assert told.code in (1, 3)
    assert [run["job"] for run in told.value["runs"]] == ["photos", "gone"]
    assert {run["outcome"] for run in told.value["runs"]} <= {"done", "failed", "refused"}


def test_status_tells_what_is_wrong(ferry: Ferry) -> None:
    source = ferry.job()
    ferry.job("music")
    ferry.run("run", "photos", "music")
    fine = ferry.run("status")
    assert fine.code == 0
    assert [line.split()[1] for line in fine.out.splitlines()[1:]] == ["up", "up"]
    shutil.rmtree(source)
    ferry.run("run", "photos")
    told, value = ferry.run("status"), ferry.run("status", "--json").value
    assert told.code == 4
    states = {job["job"]: job["state"] for job in value["jobs"]}
    assert states == {"photos": "failing", "music": "up"}
    assert "what to do: " in told.out
    assert ferry.run("status", "music").code == 0
    assert value["jobs"][1]["newest_verified"]["age_s"] < 300


def test_status_tells_the_next_run_and_fits_a_hundred_columns(ferry: Ferry) -> None:
    ferry.job("photos", 'schedule = "30 2 * * *"\nlate-after = "26h"\n')
    ferry.job("mail-store", 'after = ["photos"]\n')
    ferry.job("music")
    assert ferry.run("run", "photos", "music").code == 0
    told = ferry.run("status", TZ="Europe/Berlin").out.splitlines()
    assert told[0].split() == "JOB STATE VERIFIED COPY LIMIT LAST RUN POINTS NEXT RUN".split()
    at = told[0].index("NEXT RUN")
    rows = {line.split()[0]: line[at:] for line in told[1:] if line[:1].strip()}
    assert (rows["music"], rows["mail-store"]) == ("manual", "after photos")
    assert rows["photos"].endswith(" 02:30")
    assert told[-1].startswith("no daemon has ever run here: ")
    assert max(len(line) for line in told[:4]) <= 100
    assert "no daemon" not in ferry.run("status", "music").out
    found = {each["job"]: each["next_run"] for each in ferry.run("status", "--json").value["jobs"]}
    assert found["music"] == {"at": None, "due_since": None, "owed_since": None, "words": "manual"}
    assert found["photos"]["at"].endswith(":30:00Z")


def test_status_is_late_when_the_newest_proved_copy_is_old(ferry: Ferry) -> None:
    ferry.job(more='late-after = "1s"\n')
    ferry.run("run", "photos")
    import time

    time.sleep(1.1)  # the limit itself is what passes
    told = ferry.run("status", "--json")
    assert told.code == 4
    assert told.value["jobs"][0]["state"] == "late"


def test_a_refused_restore_makes_no_job_fail(ferry: Ferry) -> None:
    source = ferry.job()
    ferry.run("run", "photos")
    assert ferry.run("restore", "run", "photos", "--to", str(source)).code == 3
    assert ferry.run("status").code == 0


def test_a_run_that_only_waits_hides_no_failure(ferry: Ferry) -> None:
    ferry.job(more='[hooks]\nbefore = "ready"\n')
    (ferry.config / "hooks").mkdir()
    hook, states = ferry.config / "hooks" / "ready", []
    for code in (0, 1, 75, 0, 75):
        hook.write_text(f'#!/bin/sh\n[ $POOLFERRY_EVENT != before ] || {{ echo "it says {code}"; exit {code}; }}\n')
        hook.chmod(0o755)
        ferry.run("run", "photos")
        told = ferry.run("status")
        states.append((told.code, told.out.splitlines()[1].split()[1]))
        if code == 75 and len(states) == 3:
            assert "    a run failed: the hook " in told.out
            assert "; the one since is waiting: " in told.out
            assert "waiting today" in told.out
    assert states == [(0, "up"), (4, "failing"), (4, "failing"), (0, "up"), (0, "waiting")]


def test_hooks_are_found_beside_the_configuration(ferry: Ferry) -> None:
    ferry.job(more='[hooks]\nbefore = "not-now"\n')
    (ferry.config / "hooks").mkdir()
    hook = ferry.config / "hooks" / "not-now"
    hook.write_text('#!/bin/sh\necho "the cat sleeps, $POOLFERRY_CONFIG"\nexit 75\n')
    hook.chmod(0o755)
    told = ferry.run("run", "photos")
    assert told.code == 75
    assert f"the cat sleeps, {ferry.config}" in told.out
    assert ferry.run("run", "photos", "-q").out == ""


def test_no_text_reaches_a_terminal_raw(ferry: Ferry) -> None:
    ferry.job()
    ferry.run("run", "photos", "--why", "\x1b[31mred\x07")
    shown = ferry.run("show", "1")
    assert ", \\x1b[31mred\\x07; on " in shown.out
    assert "\x1b" not in ferry.run("\x1b[31m").err
    assert ferry.run("show", "1", "--json").value["requested"] == "\x1b[31mred\x07"


def test_why_is_kept_in_history(ferry: Ferry) -> None:
    ferry.job()
    ferry.run("run", "photos", "--why", "timer")
    ferry.run("run", "photos")
    assert [run["requested"] for run in ferry.run("history", "--json").value["runs"]] == ["by a command", "timer"]


@pytest.mark.parametrize("name", [b"caf\xe9", b"\x1b[31mred", b"two\nlines", "Ümläut".encode()])
@pytest.mark.sample(2)
def test_no_name_reaches_a_terminal_raw(ferry: Ferry, name: bytes) -> None:
    source = ferry.job()
    (source / "b.bin").unlink()
    for number in range(30):
        Path(os.fsdecode(os.fsencode(source) + b"/" + name + b"%d" % number)).write_bytes(b"x")
    assert ferry.run("run", "photos").code == 0
    for number in range(29):
        os.unlink(os.fsencode(source) + b"/" + name + b"%d" % number)
    told = ferry.run("run", "photos")
    assert told.code == 3
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\udc80-\udcff]", told.out + told.err)
    shown = ferry.run("run", "photos", "--json")
    assert json.loads(shown.out)["evidence"]
    assert "\\udc" not in shown.out
