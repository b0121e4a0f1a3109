"""Large files that are written before rsync copies: cut in the middle, and in a later run, where what is left of a point is linked."""

import os
import shutil

import pytest

from orchestrator.engines.rsync.model import LARGE_FILE, PARTIAL
from orchestrator.engines.rsync.write_ahead import LEAST_LARGE_AHEAD
from tests.whole.house import House, Ran, facts, wait_until
from tests.whole.kills import only_ours, strike
from tests.whole.large_content import content

MANY = LEAST_LARGE_AHEAD // LARGE_FILE


def ahead(ran: Ran) -> int:
    return sum(step["action"].startswith("write large files of") for step in ran["steps"])


@pytest.mark.namespace  # later runs write ahead behind the wall against links alone
@pytest.mark.root
def test_a_cut_goes_on_and_a_later_run_writes_what_changed(house: House) -> None:
    """Of what was written one is half, one whole with a bit that is wrong, and both lie where a kill leaves them."""
    for number in range(MANY):
        house.write(f"in/{number}", content(number))
    house.write("in/small", "small")
    name = house.job(rsync={"parallel": 2})
    programs, work = house.folder / "programs", house.target / ".poolferry/work"
    programs.mkdir()
    (programs / "rsync").write_text(
        f'#!/bin/sh\ncase " $* " in *" --delete "*) touch {programs}/begun; exec sleep 600 ;; esac\n'
        f'exec {shutil.which("rsync")} "$@"\n'
    )
    (programs / "rsync").chmod(0o755)
    path = house.environment["PATH"]
    house.environment["PATH"] = f"{programs}:{path}"
    process = house.start(name)
    wait_until((programs / "begun").exists)
    strike(process, "all")
    house.ended(process)
    assert len(os.listdir(work / "in")) == MANY, "rsync had copied nothing"
    house.environment["PATH"] = path
    (work / "in" / PARTIAL).mkdir(mode=0o700)
    for each in ("0", "1"):
        (work / "in" / each).rename(work / "in" / PARTIAL / each)
    os.truncate(work / "in" / PARTIAL / "0", LARGE_FILE // 2)
    with open(work / "in" / PARTIAL / "1", "r+b") as file:
        file.write(bytes((content(1)[0] ^ 1,)))
    again = house.run()
    assert (again.outcome, again["resumed"], ahead(again)) == ("done", True, 0), again
    assert {"go on with in/0", "go on with in/1"} <= {step["action"] for step in again["steps"]}
    assert again["moved_bytes"] < 2 * LARGE_FILE, "what was written is not copied anew"
    assert facts(house.source) == facts(house.point())
    assert house.call("verify", "photos").outcome == "done"
    only_ours(house)

    for number in range(1, MANY):
        house.write(f"in/{number}", content(number + 100))
    house.write("new/large", content(99)).chmod(0o640)
    (house.source / "in/small").unlink()
    house.write("new/small", "small")
    unchanged = (house.point() / "in/0").stat().st_ino
    later = house.run()
    assert (later.outcome, ahead(later), later["warnings"]) == ("done", 1, []), later
    assert later["moved_bytes"] == MANY * LARGE_FILE + len("small")
    assert facts(house.source) == facts(house.point())
    assert (house.point() / "in/0").stat().st_ino == unchanged
    assert house.call("verify", "photos").outcome == "done"
    assert house.run().outcome == "nothing-to-do"
