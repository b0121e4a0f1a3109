"""Gates and senders of older versions, as the repository has them: both sides agree on what both know, or say which to upgrade."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.domain.gate import is_unknown_request
from orchestrator.process.handover import HAND_OVER
from orchestrator.views.gate import refusal_line
from tests.hostile.adding_gate import other_program, write_line
from tests.whole.house import House
from tests.whole.sshd import Sshd, sshd

pytestmark = [pytest.mark.slow, pytest.mark.namespace]
__all__ = ["sshd"]
CHECKOUT = Path(__file__).parents[2]
# The first gate, which only read; the first for datasets; the first that adds points; the first that says its versions as today;
# the first with a script that hands requests over.
FIRST, DATASETS, ADDS, SAYS, HANDS_OVER = "7c327cbc", "d10baa27", "1357dc4f", "ae8b0423", "4fbd2310"
# Prints the requests of runs over datasets, or what a gate says to those that it is given, in its own version.
_REQUESTS = """
import json
from orchestrator.domain.command_line import ssh_argv
from tests.gate.zfs_requests import pulled, pushed, receive_commands
copy = "vault/in/laptop/photos"
asked = {"receives": (*pushed(copy), *receive_commands(copy)), "sends": pulled("tank/photos")}
print(json.dumps({right: [ssh_argv(each)[-1] for each in commands] for right, commands in asked.items()}))
"""
_ANSWERS = """
import json, sys
from orchestrator.domain.gate import Gate, GateRefusal
from orchestrator.gate.admit import admit
from orchestrator.gate.request import parse_request
def answer(right, line):
    try:
        return admit(parse_request(line), gates[right]) and ""
    except GateRefusal as refusal:
        return refusal.why
gates = {"receives": Gate(receives="vault/in/laptop"), "sends": Gate(sends="tank")}
print(json.dumps([answer(right, line) for right, lines in json.load(sys.stdin).items() for line in lines]))
"""


@pytest.fixture
def older(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The program of an older revision, with its tests."""
    folder = tmp_path / "older"
    folder.mkdir()
    words = ["git", "-C", str(CHECKOUT), "archive", request.param, "orchestrator", "tests", "jobs", "hooks", "systemd"]
    packed = subprocess.run(words, capture_output=True, check=False)
    if packed.returncode:
        pytest.skip(f"the history of this checkout does not reach back to {request.param}")
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed.stdout, check=True)
    return folder


def gated(house: House, sshd: Sshd, right: str) -> None:
    """A job through a gate that has this right."""
    house.write("file", "content")
    house.write("deep/other", "more")
    key, keys = (sshd.folder / "user_key.pub").read_text(), sshd.folder / "authorized_keys"
    keys.unlink()
    folder = house.source if right == "reads" else house.folder / "far"
    house.target = house.target if right == "reads" else folder
    done = house.call("setup", "gate", "laptop", f"--{right}", str(folder), "--key", key, "--into", str(keys))
    assert done.code == 0, done
    house.job(**{"source" if right == "reads" else "target": sshd.url(folder)}, pipe=sshd.pipe)


@pytest.mark.parametrize(("older", "right"), [(FIRST, "reads"), (ADDS, "adds")], indirect=["older"])
@pytest.mark.sample(1)
def test_an_older_sender_goes_through_a_gate_of_today(house: House, sshd: Sshd, older: Path, right: str) -> None:
    gated(house, sshd, right)
    before = ("env", f"PYTHONPATH={older}")
    assert (first := house.call("run", "photos", before=before)).outcome == "done", first
    house.write("file", "changed")
    assert (second := house.call("run", "photos", before=before)).outcome == "done", second
    assert (house.point() / "file").read_text() == "changed"
    assert (today := house.run()).outcome == "nothing-to-do", today


@pytest.mark.parametrize(
    ("older", "right", "agree"),
    [(ADDS, "adds", False), (SAYS, "adds", True), (FIRST, "reads", False)],
    indirect=["older"],
)
@pytest.mark.sample(2)
def test_a_sender_of_today_goes_through_an_older_gate_or_says_so(
    house: House, sshd: Sshd, older: Path, right: str, agree: bool
) -> None:
    gated(house, sshd, right)
    other_program(sshd, program_of(older))
    ended = house.run()
    if agree:
        assert ended.outcome == "done", ended
    else:
        assert (ended.outcome, "is older than this one, upgrade it" in ended["hint"]) == ("failed", True), ended
        assert "the gate of our key does not let it do this" in ended["why"], ended
        assert house.points() == []


def program_of(tree: Path) -> str:
    return f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(tree))} exec {sys.executable} -m orchestrator "$@"\n'


@pytest.mark.parametrize("older", [SAYS, HANDS_OVER], indirect=True)
@pytest.mark.sample(1)
def test_the_line_of_a_key_holds_after_a_downgrade(house: House, sshd: Sshd, older: Path) -> None:
    """The older version lies where this one lay: without the script that the line names, or with another one."""
    gated(house, sshd, "adds")
    assert (first := house.run()).outcome == "done", first
    keys = sshd.folder / "authorized_keys"
    front, _, words = keys.read_text().partition(f"{HAND_OVER} ")
    other_program(sshd, program_of(older))
    program = sshd.folder / "other-version"
    script = older / os.path.relpath(HAND_OVER, CHECKOUT)
    write_line(sshd, f"{front}{script} {program} gate {words.partition(' gate ')[2]}")
    house.write("file", "changed")
    assert (second := house.run()).outcome == "done", second
    assert (house.point() / "file").read_text() == "changed"
    assert house.run().outcome == "nothing-to-do"


@pytest.mark.parametrize("older", [DATASETS], indirect=True)
def test_requests_for_datasets_pass_whichever_side_is_older(older: Path) -> None:
    for sender, gate in ((older, CHECKOUT), (CHECKOUT, older)):
        answers = json.loads(run(gate, _ANSWERS, given=run(sender, _REQUESTS)))
        refused = [why for why in answers if why]
        assert len(answers) > 60
        # What today's asks besides: one look, three for a reading there, and by guid for what is not where it should be.
        by_guid = [why for why in refused if "find-datasets.sh" in why]
        assert len(refused) - len(by_guid) <= (0 if sender == older else 4), refused
        assert not (by_guid and sender == older), by_guid
        assert all(is_unknown_request(refusal_line("laptop", why)) for why in refused), refused


def run(tree: Path, script: str, *, given: str = "") -> str:
    variables = {**os.environ, "PYTHONPATH": str(tree)}
    words = [sys.executable, "-c", script]
    done = subprocess.run(words, input=given, cwd=tree, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    return done.stdout
