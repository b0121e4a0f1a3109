"""The public shapes of `plan --json` and `run --json`: every key is there, and all is plain JSON."""

import json
from dataclasses import replace

from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.run import Outcome, RunReport, StepReport
from orchestrator.domain.run_values import decision_value, report_value, step_commands, step_value
from orchestrator.engines.rsync.plan import plan
from tests.engines.rsync.builders import (
    ASKED,
    EMPTY,
    FIRST,
    MIRRORED,
    NAME,
    NEW,
    OLD,
    UNCHANGED,
    USED,
    job,
    mirror,
    world,
)


def test_a_plan_word_for_word() -> None:
    value = decision_value(plan(job(), world(EMPTY, FIRST), ASKED))
    assert json.loads(json.dumps(value)) == value
    assert set(value) == {"decision", "summary", "resumes", "stages", "warnings", "refusals"}
    assert (value["decision"], value["resumes"], value["warnings"]) == ("plan", None, [])
    copy = value["stages"][2][0]
    assert set(copy) == {"action", "why", "worker", "effect", "commands", "expected_bytes", "confirmation"}
    assert (copy["action"], copy["worker"], copy["effect"], copy["expected_bytes"]) == (
        "copy /srv/photos",
        "main",
        "writes",
        4096,
    )
    assert copy["confirmation"] is None
    assert copy["commands"][0].startswith("rsync ")
    assert copy["commands"][0].endswith("-- /srv/photos/ /backup/photos/.poolferry/work/ >> /notes/moved-0")
    last = value["stages"][-1][0]
    assert last["confirmation"] == f"/backup/photos/points/{NAME} is there and latest"
    assert value["stages"][-2][0]["commands"] == [
        "(poolferry) list /backup/photos/.poolferry/work, sweep it where remainders lie in it, write /backup/photos/.poolferry/manifest.gz"
    ]


def test_effects_and_commands_on_a_host() -> None:
    far = Location(path="/b", host=Host(name="backup"))
    seen = world(replace(MIRRORED, foreign=()), here=NEW, there=NEW)
    value = decision_value(plan(mirror(target=far, delete=True), seen, ASKED))
    effects = [step["effect"] for stage in value["stages"] for step in stage]
    assert effects.count("destroys") == 1
    assert value["stages"][0][0]["commands"][0].startswith("ssh ")


def test_nothing_to_do() -> None:
    value = decision_value(plan(job(), world(replace(USED, latest=None), UNCHANGED), ASKED))
    assert set(value) == {"decision", "why", "current", "stages", "warnings"}
    assert (value["decision"], value["current"], value["warnings"]) == ("nothing-to-do", OLD, [])
    assert [step["action"] for stage in value["stages"] for step in stage] == [f"make `latest` name {OLD}"]


def test_a_refusal() -> None:
    refusal = Refusal(why="no", evidence=("a", "b"), hint="do", guard="max-deleted")
    assert decision_value(refusal) == {
        "decision": "refused", "why": "no", "evidence": ["a", "b"], "hint": "do", "guard": "max-deleted",
    }  # fmt: skip


def test_names_that_a_terminal_would_swallow_are_shown() -> None:
    raw = job(source=Location(path="/srv/\udcff\x1b"), target=Location(path="/b\n"))
    decision = plan(raw, world(EMPTY, FIRST), ASKED)
    steps = [step for stage in getattr(decision, "stages", ()) for step in stage]
    lines = [line for step in steps for line in step_commands(step)]
    assert all(line.isprintable() for line in lines)
    assert any("\\xff" in line for line in lines)
    assert all(json.dumps(step_value(step)).isascii() for step in steps)


def test_a_report_word_for_word() -> None:
    step = StepReport(action="copy", why="first", moved_bytes=None, took_s=0.12345, confirmed=True)
    report = RunReport(
        run=7, job="photos", outcome=Outcome.NOTHING, why="equal", hint="", moved_bytes=0, took_s=1.98765, resumed=False,
        attempts=2, steps=(step,), points=(NAME,), warnings=("w",), evidence=("e",),
    )  # fmt: skip
    value = report_value(report)
    assert json.loads(json.dumps(value)) == value
    assert value == {
        "run": 7, "job": "photos", "outcome": "nothing-to-do", "why": "equal", "hint": "", "moved_bytes": 0, "took_s": 1.988,
        "resumed": False, "attempts": 2,
        "steps": [{"action": "copy", "why": "first", "moved_bytes": None, "took_s": 0.123, "confirmed": True}],
        "points": [NAME], "warnings": ["w"], "evidence": ["e"],
    }  # fmt: skip
