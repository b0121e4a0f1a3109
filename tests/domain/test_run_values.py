"""The public shapes of decisions and failures."""

from orchestrator.domain.errors import Evidence
from orchestrator.domain.plan import Effect, NothingToDo, Plan, Refusal, Step, single_command
from orchestrator.domain.run import Outcome, unrecorded_report
from orchestrator.domain.run_values import (
    brief_commands,
    decision_value,
    evidence_lines,
    report_value,
    step_commands,
    with_readable_bytes,
)

STEP = Step(
    action="copy",
    why="it is new",
    worker="",
    work=single_command("cp", "a b", "c", effect=Effect.WRITES),
    expected=None,
)
REFUSAL = Refusal(why="diverged", evidence=("tank@x",), hint="poolferry plan", guard="aside")
REFUSED = {"decision": "refused", "why": "diverged", "evidence": ["tank@x"], "hint": "poolferry plan", "guard": "aside"}
STEP_VALUE = {
    "action": "copy", "why": "it is new", "worker": "", "effect": "writes", "commands": ["cp 'a b' c"], "expected_bytes": None,
    "confirmation": None,
}  # fmt: skip


def test_each_kind_of_decision_has_its_shape() -> None:
    plan = Plan(summary="copy 1", stages=((STEP,),), resumes="a cut copy", warnings=("slow",), refusals=(REFUSAL,))
    assert decision_value(plan) == {
        "decision": "plan", "summary": "copy 1", "resumes": "a cut copy", "stages": [[STEP_VALUE]], "warnings": ["slow"],
        "refusals": [REFUSED],
    }  # fmt: skip
    assert decision_value(NothingToDo(why="same", current="p1", stages=((STEP,),))) == {
        "decision": "nothing-to-do", "why": "same", "current": "p1", "stages": [[STEP_VALUE]], "warnings": [],
    }  # fmt: skip
    assert decision_value(REFUSAL) == REFUSED


def test_a_command_is_shown_whole_and_in_brief() -> None:
    assert (step_commands(STEP), brief_commands(STEP)) == (("cp 'a b' c",), ("cp 'a b' c",))


def test_a_run_that_did_not_begin_is_a_report_too() -> None:
    told = report_value(unrecorded_report("photos", Outcome.WAITING, "no disk", hint="plug one in"))
    assert (told["run"], told["outcome"], told["why"], told["steps"], told["points"]) == (
        0,
        "waiting",
        "no disk",
        [],
        [],
    )


def test_evidence_ends_with_the_last_words_of_each_program() -> None:
    assert evidence_lines(None) == ()
    evidence = Evidence(lines=("a | b",), exits=(1, None), last_output=("1\n2\n3\n4\n5\n6", "x"), host=None)
    assert evidence_lines(evidence) == ("a | b", "exit 1, ?", "2", "3", "4", "5", "6", "x")


def test_bytes_that_are_no_text_are_readable_in_json_at_any_depth() -> None:
    value = {"a\udcff": ["b\udc80", ("c", 1, None)], "d": True}
    assert with_readable_bytes(value) == {"a\\xff": ["b\\x80", ["c", 1, None]], "d": True}
