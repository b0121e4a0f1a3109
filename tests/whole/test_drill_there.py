"""Drills of copies on a host: what comes back is compared here, and damage there is read again there.

Changes things.
"""

from tests.whole.damage import NAMES, fill, rot
from tests.whole.house import House, facts
from tests.whole.sshd import Sshd, sshd

__all__ = ["sshd"]


def test_samples_and_all_of_it_come_back_from_a_host(house: House, sshd: Sshd) -> None:
    fill(house.source)
    house.job(target=sshd.url(house.target), pipe=sshd.pipe, drill={"files": 1000})
    assert house.run().outcome == "done"
    before = facts(house.target / "points")
    for more in ((), ("--whole",)):
        drilled = house.call("drill", "photos", *more)
        assert (drilled.code, drilled.outcome) == (0, "done"), drilled
        assert drilled["drill"]["files"] == 2 * len(NAMES) + 1
    assert facts(house.target / "points") == before
    rot(house.point() / "1")
    bad = house.call("drill", "photos")
    assert (bad.code, bad.outcome) == (1, "failed"), bad
    assert "the copy is damaged in point" in bad["why"]
    assert house.run().outcome == "done"
    assert facts(house.point()) == facts(house.source)
    assert house.call("drill", "photos").outcome == "done"
    assert not (house.state / "drill" / "poolferry-drill-photos").exists()
