"""The owner's executables, called by real runs, and what is kept of them."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.processes import strays
from tests.whole.house import House


def hook(house: House, name: str, body: str) -> Path:
    """An executable of the owner's."""
    path = house.folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def called(house: House, run: Any) -> list[dict[str, Any]]:
    """Return what is kept of the hooks of a run."""
    return list(house.call("show", str(run["run"]))["hooks"])


def test_not_now(house: House) -> None:
    house.write("one", "content")
    flag = house.folder / "quiet"
    flag.touch()
    job = {"before": [str(hook(house, "quiet-hours", f'[ ! -e "{flag}" ] || {{ echo "until six"; exit 75; }}'))]}
    house.job(hooks=job)
    run = house.run()
    assert (run.code, run.outcome) == (75, "waiting"), run
    assert "until six" in run["why"]
    assert not house.target.exists()
    (kept,) = called(house, run)
    assert (kept["event"], kept["exit"], kept["output"].strip()) == ("before", 75, "until six")
    flag.unlink()
    assert house.run().outcome == "done"


def test_a_failing_hook_before_ends_the_run(house: House) -> None:
    house.write("one", "content")
    failing = hook(house, "no", "echo broken >&2; exit 1")
    told = house.folder / "told"
    after = hook(house, "tell", f'echo "$POOLFERRY_OUTCOME: $POOLFERRY_WHY" > "{told}"')
    house.job(hooks={"before": [str(failing)], "failed": [str(after)], "done": [str(failing)]})
    run = house.run()
    assert (run.code, run.outcome) == (1, "failed"), run
    assert "broken" in run["why"]
    assert "ended with 1" in run["why"]
    assert not house.target.exists()
    assert told.read_text().startswith("failed: the hook")
    assert [each["event"] for each in called(house, run)] == ["before", "failed"]


def test_what_a_hook_is_told(house: House) -> None:
    house.write("one", "content")
    seen = house.folder / "seen"
    body = f'cat > "{seen}.json"; env > "{seen}.env"; echo heard; echo "and more" >&2'
    house.environment["A_SECRET"] = "not for hooks"
    house.job(hooks={"done": [str(hook(house, "see", body)), "an argument"]})
    run = house.run()
    assert (run.code, run.outcome) == (0, "done"), run
    told = json.loads((house.folder / "seen.json").read_text())
    variables = dict(line.split("=", 1) for line in (house.folder / "seen.env").read_text().splitlines())
    assert variables["POOLFERRY_CONTRACT"] == "1"
    expected = {
        "EVENT": "done", "JOB": "photos", "RUN": str(run["run"]), "ENGINE": "rsync", "SOURCE": str(house.source),
        "TARGET": str(house.target), "DISK": "", "OUTCOME": "done", "WHY": run["why"],
        "MOVED_BYTES": str(run["moved_bytes"]),
    }  # fmt: skip
    assert {name: variables[f"POOLFERRY_{name}"] for name in expected} == expected
    assert float(variables["POOLFERRY_SECONDS"]) > 0
    assert "A_SECRET" not in variables
    assert (told["event"], told["run"], told["moved_bytes"]) == ("done", run["run"], 7)
    assert told["report"]["points"] == run["points"]
    (kept,) = called(house, run)
    assert (kept["argv"][1:], kept["exit"]) == (["an argument"], 0)
    assert sorted(kept["output"].splitlines()) == ["and more", "heard"]


def test_a_hook_that_hangs_is_ended(house: House) -> None:
    house.write("one", "content")
    hanging = hook(house, "hang", "echo waiting; sleep 600 & sleep 600")
    house.job(hooks={"done": [str(hanging)], "timeout": "1s"})
    began = time.monotonic()
    run = house.run()
    assert (run.code, run.outcome) == (0, "done"), run
    assert time.monotonic() - began < 30
    assert "took longer than 1 s" in run.errors
    (kept,) = called(house, run)
    assert "waiting" in kept["output"]
    assert not [line for line in strays(house.folder) if "hang" in line]

    house.job(hooks={"before": [str(hanging)], "timeout": "1s"})
    stuck = house.run()
    assert (stuck.code, stuck.outcome) == (1, "failed"), stuck
    assert "took longer than 1 s" in stuck["why"]


def test_a_failing_hook_afterwards_changes_nothing(house: House) -> None:
    house.write("one", "content")
    house.job(hooks={"done": [str(hook(house, "bad", "echo no mail today; exit 3"))], "nothing-to-do": ["/no/such"]})
    run = house.run()
    assert (run.code, run.outcome) == (0, "done"), run
    assert "no mail today" in run.errors
    shown = house.call("show", str(run["run"]))
    assert shown["outcome"] == "done"
    assert any("no mail today" in said["text"] for said in shown["said"])
    again = house.run()
    assert (again.code, again.outcome) == (0, "nothing-to-do"), again
    assert called(house, again)[0]["exit"] == 127


def test_only_the_end_of_much_output_is_kept(house: House) -> None:
    house.write("one", "content")
    house.job(hooks={"done": [str(hook(house, "loud", "seq 1 100000; echo the end"))]})
    run = house.run()
    (kept,) = called(house, run)
    assert kept["output"].endswith("the end\n")
    assert 30_000 < len(kept["output"]) <= 64 << 10


@pytest.mark.parametrize("kind", ["missing", "not executable"])
def test_a_hook_that_cannot_run_is_a_mistake(house: House, kind: str) -> None:
    house.write("one", "content")
    broken = house.folder / "broken"
    if kind == "not executable":
        broken.write_text("#!/bin/sh\n")
    house.job(hooks={"done": [str(broken)]})
    checked = house.call("check")
    assert checked.code == 2
    (mistake,) = checked["mistakes"]
    assert mistake["key"] == "hooks.done"
    assert "done" in Path(mistake["file"]).read_text().splitlines()[mistake["line"] - 1]
    assert str(broken) in mistake["what"]
    run = house.run()
    assert run.outcome == "done", run
    (call,) = called(house, run)
    assert call["exit"] in (126, 127)
    assert f"could not be started: {broken}" in json.dumps(house.call("show", str(run["run"])).value)
    broken.write_text("#!/bin/sh\n")
    broken.chmod(0o755)
    assert house.call("check").code == 0
