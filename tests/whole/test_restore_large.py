"""A restore of large files: most are written before rsync does the rest, and all is as it was, also after a cut in the middle of one."""

import os

import pytest

from orchestrator.engines.rsync.model import LARGE_FILE, PARTIAL
from orchestrator.engines.rsync.write_ahead import LEAST_LARGE_AHEAD
from tests.whole.house import House, Ran, facts, wait_until
from tests.whole.kills import strike
from tests.whole.large_content import content

MANY = LEAST_LARGE_AHEAD // LARGE_FILE + 1


def ahead(ran: Ran) -> int:
    return sum(step["action"].startswith("write large files of") for step in ran["steps"])


def fill(house: House) -> None:
    """Fill the source with large files, of which one has two names, one a hole, and one an attribute; then make two points of them."""
    for number in range(MANY):
        house.write(f"in {number % 2}/{number}", content(number))
    (house.source / "in 1/1").chmod(0o6711)
    os.setxattr(house.source / "in 0/2", "user.own", b"1")
    house.write("in 0/twice", content(50))
    os.link(house.source / "in 0/twice", house.source / "in 1/second name")
    with open(house.source / "in 1/holes", "wb") as file:
        file.write(content(51)[: 1 << 20])
        file.truncate(LARGE_FILE * 2)
    assert house.run(house.job(rsync={"parallel": 1})).outcome == "done"
    house.write("small", "so that each file has a name in two points")
    assert house.run().outcome == "done"


@pytest.mark.root
def test_large_files_are_written_ahead_and_all_is_as_it_was(house: House) -> None:
    fill(house)
    for lanes in (1, 2):
        house.job(rsync={"parallel": lanes})
        back = house.folder / f"back {lanes}"
        ran = house.call("restore", "run", "photos", "--to", str(back))
        assert (ran.outcome, ahead(ran)) == ("done", 1), ran
        assert ran["moved_bytes"] < (MANY + 4) * LARGE_FILE
        assert facts(house.source) == facts(back)
        assert (back / "in 1/holes").stat().st_blocks * 512 < LARGE_FILE
    part = house.call("restore", "run", "photos", "--path", "in 0", "--to", str(house.folder / "part"))
    assert (part.outcome, ahead(part)) == ("done", 0), part
    assert facts(house.source / "in 0").keys() == facts(house.folder / "part").keys()


@pytest.mark.root
def test_a_cut_in_the_middle_of_one_goes_on(house: House) -> None:
    """A part in its own folder is completed, and a bit that is wrong in it is found."""
    fill(house)
    back = house.folder / "back"
    process = house.start_call("restore", "run", "photos", "--to", str(back))
    wait_until(lambda: any(back.glob(f"in */{PARTIAL}/*")) or (back / "in 0/4").exists())
    strike(process, "all")
    house.ended(process)
    for each in back.glob(f"in */{PARTIAL}/*"):
        each.unlink()
    half = back / "in 0" / PARTIAL
    half.mkdir(mode=0o700, parents=True, exist_ok=True)
    (back / "in 0/6").unlink(missing_ok=True)
    (half / "6").write_bytes(bytes((content(6)[0] ^ 1,)) + content(6)[1 : LARGE_FILE // 2])
    again = house.call("restore", "run", "photos", "--to", str(back))
    assert (again.outcome, again["resumed"], ahead(again)) == ("done", True, 0), again
    assert "go on with in 0/6" in {step["action"] for step in again["steps"]}
    assert facts(house.source) == facts(back)
