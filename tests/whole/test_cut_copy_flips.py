"""A finished file in the tree of a cut copy: one bit of it flips before the next run, and it is never published."""

import shutil

import pytest

from tests.whole.damage import rot
from tests.whole.house import House, facts, wait_until
from tests.whole.kills import MIB, half_copied, strike


@pytest.mark.slow
@pytest.mark.parametrize("state", ["kept", "lost"])
def test_a_finished_file_of_a_cut_copy_rots(house: House, state: str) -> None:
    for number in range(50):
        house.write(f"a{number}", b"x" * 1000)
    house.write("big", bytes(20 * MIB))
    process = house.start(house.job(pipe={"rate_limit": "1M"}))
    wait_until(lambda: half_copied(house) > MIB)
    strike(process, "all")
    house.ended(process)
    rot(house.target / ".poolferry/work/a7", at=500)
    if state == "lost":
        shutil.rmtree(house.state)
    house.job(retry={"attempts": 2})
    ran = house.run()
    assert (ran.outcome, ran["resumed"]) == ("done", True), ran
    assert facts(house.source) == facts(house.point())
    assert (house.point() / "a7").read_bytes() == b"x" * 1000
    assert house.call("verify", "photos").code == 0
