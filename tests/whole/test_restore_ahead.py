"""A restore of many small files: most are written before rsync does the rest, and all is as it was, also after a cut between the two."""

import os
import random
import shutil

from tests.whole.house import House, Ran, facts, wait_until
from tests.whole.kills import strike
from tests.whole.names import hostile_tree

AHEAD = "write small files of"
MANY = 3_200  # more than `write_ahead.LEAST_AHEAD`, with a manifest that shows it


def many_files(house: House) -> None:
    """Fill the source with small files, and with what is not written ahead."""
    hostile_tree(house)
    for number in range(MANY):
        house.write(f"many {number // 100}/{number}", random.randbytes(40))
    for number in range(30):
        os.utime(house.source / f"many {number}", ns=(0, 1_000_000_007 * (number + 1)))
    odd = house.source / "odd"
    house.write("odd/set", "set").chmod(0o6711)
    house.write("odd/nobody's", "x").chmod(0)
    house.write("odd/large", random.randbytes(200_000))
    house.write("odd/attributes", "x")
    os.setxattr(odd / "attributes", "user.own", b"1")
    os.link(odd / "set", house.source / "many 1/second name")
    os.mkfifo(odd / "pipe")
    with open(odd / "holes", "wb") as file:
        file.truncate(3 << 20)
    if os.geteuid() == 0:
        os.chown(odd / "nobody's", 1234, 4321)
    odd.chmod(0o2555)


def ahead(ran: Ran) -> int:
    return sum(step["action"].startswith(AHEAD) for step in ran["steps"])


def test_small_files_are_written_ahead_and_all_is_as_it_was(house: House) -> None:
    many_files(house)
    assert house.run(house.job()).outcome == "done"
    house.write("many 0/new", "new")
    second = house.run()  # whose files have a name in each point
    assert second.outcome == "done", second
    sizes = sum(
        {each.stat().st_ino: each.stat().st_size for each in house.source.rglob("*") if each.is_file()}.values()
    )
    for lanes in (1, 2, None):  # None: one rsync, and mostly two programs before it
        house.job(rsync={"parallel": lanes} if lanes else {})
        back = house.folder / f"back {lanes}"
        ran = house.call("restore", "run", "photos", "--to", str(back))
        counts = {lanes} if lanes else {1, 2}
        assert (ran.outcome, ahead(ran) in (counts if os.geteuid() == 0 else {0})) == ("done", True), ran
        assert facts(house.source) == facts(back)
        assert (back / "odd/holes").stat().st_blocks < 1024
        assert ran["moved_bytes"] <= sizes + len("set")  # a second name may be written before it is linked


def test_a_cut_after_small_files_were_written_goes_on(house: House) -> None:
    """rsync stands before its first file, and one small file is half of itself, as a kill leaves it."""
    many_files(house)
    assert house.run(house.job(rsync={"parallel": 1})).outcome == "done"
    programs, back = house.folder / "programs", house.folder / "back"
    programs.mkdir()
    (programs / "rsync").write_text(
        f'#!/bin/sh\ncase " $* " in *" --files-from=- "*) touch {programs}/begun; exec sleep 600 ;; esac\n'
        f'exec {shutil.which("rsync")} "$@"\n'
    )
    (programs / "rsync").chmod(0o755)
    house.environment["PATH"] = f"{programs}:{house.environment['PATH']}"
    process = house.start_call("restore", "run", "photos", "--to", str(back))
    wait_until((programs / "begun").exists)
    written = (back / "many 3/300").exists()
    strike(process, "all")
    house.ended(process)
    (programs / "rsync").unlink()
    assert written == (os.geteuid() == 0)
    if written:
        with open(back / "many 3/300", "wb") as file:
            file.write(b"half")
        with open(back / "many 3/301", "wb") as file:  # whole, and not with its time yet
            file.write((house.source / "many 3/301").read_bytes())
    again = house.call("restore", "run", "photos", "--to", str(back))
    assert (again.outcome, again["resumed"], ahead(again)) == ("done", True, 0), again
    assert facts(house.source) == facts(back)
