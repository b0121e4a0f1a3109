"""A first copy of many small files: most are written before rsync does the rest, and all is as it was, also after a cut between the two."""

import os
import shutil

import pytest

from orchestrator.engines.rsync.write_ahead import LEAST_AHEAD_OF_COPY
from tests.whole.house import House, Ran, facts, wait_until
from tests.whole.kills import only_ours, strike
from tests.whole.names import hostile_tree

AHEAD = "write small files of"


def many_files(house: House) -> None:
    """Fill the source with small files, and with what is not written ahead."""
    for number in range(LEAST_AHEAD_OF_COPY):
        if not number % 500:
            (house.source / f"many {number // 500}").mkdir(parents=True)
        (house.source / f"many {number // 500}/{number}").write_bytes(b"%d" % number * 9)
    hostile_tree(house)
    house.write("odd/set", "set").chmod(0o6711)
    house.write("odd/attributes", "x")
    os.setxattr(house.source / "odd/attributes", "user.own", b"1")
    os.link(house.source / "odd/set", house.source / "many 1/second name")
    with open(house.source / "odd/holes", "wb") as file:
        file.truncate(3 << 20)


def ahead(ran: Ran) -> int:
    return sum(step["action"].startswith(AHEAD) for step in ran["steps"])


@pytest.mark.root
def test_a_cut_after_small_files_were_written_goes_on(house: House) -> None:
    """Both rsyncs stand before their first file; of the small files one is half of itself, and one is whole without its time, as a kill leaves them."""
    many_files(house)
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
    written = sum(len(names) for _, _, names in os.walk(work))
    assert written > LEAST_AHEAD_OF_COPY // 2
    house.environment["PATH"] = path
    (work / "many 3/1500").write_bytes(b"half")
    (work / "many 3/1501").write_bytes((house.source / "many 3/1501").read_bytes())
    again = house.run()
    assert (again.outcome, again["resumed"], ahead(again)) == ("done", True, 0), again
    assert facts(house.source) == facts(house.point())
    assert house.call("verify", "photos").outcome == "done"
    only_ours(house)


@pytest.mark.root
def test_small_files_are_written_ahead_and_all_is_as_it_was(house: House) -> None:
    many_files(house)
    ran = house.run(house.job(rsync={"parallel": 2}))
    assert (ran.outcome, ahead(ran), ran["warnings"]) == ("done", 2, []), ran
    assert facts(house.source) == facts(house.point())
    sizes = {each.stat().st_ino: each.stat().st_size for each in house.source.rglob("*") if each.is_file()}
    assert ran["moved_bytes"] <= sum(sizes.values()) + len("set")
    assert house.call("verify", "photos").outcome == "done"
    assert house.run().outcome == "nothing-to-do"
