"""A disk that says that it fails, and one that is too slow, are told of by their names: visits of real ext4 on loop devices.

What smartctl says stands in a file: no disk fails at a test's wish.
"""

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator import compose
from orchestrator.app.disk_visits import PluggedInDisks, make_visit_context
from orchestrator.planners.identify_disk import VisitOutcome
from orchestrator.process.stop import StopRequest
from orchestrator.runner.disk.visit import AttachedDisk
from orchestrator.runner.run import run_job
from orchestrator.views.visits import visit_lines
from tests.disks.smart import FAILED, sata
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")


def scanned(drawer: LoopDisks, verdict: bytes | None) -> tuple[dict[str, Any], str, list[str]]:
    """A visit where smartctl says this, None: where there is none; what was said, and how smartctl was called."""
    folder, calls = drawer.root / "bin", drawer.root / "calls"
    folder.mkdir(exist_ok=True)
    calls.write_text("")
    (folder / "verdict").write_bytes(verdict or b"")
    (folder / "smartctl").write_text(f'#!/bin/sh\necho "$*" >>{calls}; cat {folder}/verdict; exit 8\n')
    (folder / "smartctl").chmod(0o755 if verdict else 0o644)
    ended = drawer.ferry.run("disks", "scan", "--json", PATH=f"{folder}:{os.environ['PATH']}")
    (visit,) = json.loads(ended.out)["visits"]
    return visit, ended.err, calls.read_text().splitlines()


def test_what_a_disk_says_of_its_health(drawer: LoopDisks) -> None:
    device, red = drawer.enrolled("red"), drawer.full("red")
    visit, said, calls = scanned(drawer, sata(5, smart_status={"passed": False}))
    assert (visit["ending"], visit["safe"], visit["health"], calls) == ("done", True, FAILED, [f"-j -H -A {device}"])
    assert f"warning: disk {red}: {FAILED}" in said
    assert f"offsite: disk {red}: {FAILED}" in drawer.run("disks").out
    assert f"its own word (SMART): {FAILED}, " in drawer.run("disks", "show", red).out
    assert drawer.run("status").code == 4
    assert scanned(drawer, None)[0]["health"] is None
    shown = drawer.run("disks", "show", red, "--json").value
    assert ([each["health"] for each in shown["history"]], shown["ails"]) == ([None, FAILED], {"health": FAILED})
    visit, said, calls = scanned(drawer, sata())
    assert (visit["health"], len(calls), "warning" in said) == ("", 1, False)
    assert "its own word (SMART): it is well, " in drawer.run("disks", "show", red).out
    assert drawer.run("disks", "--json").value["sets"][0]["ailing"] == {}


def test_a_copy_that_would_take_too_long(drawer: LoopDisks, tmp_path: Path) -> None:
    """Each second here is five minutes by the clock of the run."""
    drawer.declare('visit-within = "5m"\n')
    drawer.job("photos", '[pipe]\nrate-limit = "4M"\n')
    (drawer.source / "large").write_bytes(os.urandom(16 << 20))
    drawer.enrolled("red")
    where, said = compose.Directories(config=str(drawer.ferry.config), state=str(drawer.ferry.state)), list[str]()
    known = compose.read_configuration(where)
    (rotation,), (job,) = known.sets, known.jobs
    with compose.open_history(where) as history:
        arrivals = PluggedInDisks(known, make_visit_context(where, history, say=said.append, log=lambda _: None))
        attached_disk = arrivals.begin(arrivals.usable(rotation)[0], rotation)
        assert isinstance(attached_disk, AttachedDisk)
        tools = compose.make_run_context(
            job, where, history, notify=lambda _: None, log=lambda _: None, stop=StopRequest(), ssh_options=()
        )
        quick = replace(tools, monotonic=lambda: time.monotonic() * 300)
        report = attached_disk.run(job, lambda placed: run_job(placed, quick, why="a test"))
        during = history.views.disks.last_visits().popitem()[1]
        ended = attached_disk.end(power_off=False)
        assert (ended.ending, ended.safe) == (VisitOutcome.DONE, True), visit_lines(ended, arrivals.standing(rotation))
    assert report is not None
    (told,) = report.warnings
    assert told == f"disk {drawer.full('red')}: {during.slow}"
    assert during.slow.startswith("photos goes at ")
    assert " KiB/s, and " in during.slow
    assert during.slow.endswith(" at this pace (limit 5 min)")
    assert (during.outcome, drawer.run("disks", "--json").value["sets"][0]["ailing"]) == ("open", {})
