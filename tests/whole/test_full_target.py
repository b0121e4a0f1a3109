"""A target without room: what [keep] lets go is removed first, so that one that is full does not stay so for ever."""

import random
from collections.abc import Iterator

import pytest

from tests.whole.house import House, mounted


@pytest.fixture
def full(house: House) -> Iterator[House]:
    """A house with three points of 4 MiB each on a target of 14 MiB, and 4 MiB more to be copied."""
    with mounted(house.target, "size=14m,mode=700"):
        house.job()
        for _ in range(3):
            change(house)
            assert house.run().outcome == "done"
        change(house)
        yield house


def change(house: House, size: int = 4 << 20) -> None:
    house.write("one", random.randbytes(size))


def test_points_that_keep_lets_go_are_removed_before_the_copy(full: House) -> None:
    """Before, a run ended as the target was full and removed none, the next one too; and the hint named [keep]."""
    before = full.points()
    ended = full.run()
    assert (ended.outcome, ended["attempts"], full.points()) == ("failed", 1, before)
    assert "let [keep] keep fewer points: the next run removes those first" in ended["hint"]
    full.job(keep={"daily": 1})
    again = full.run()
    assert (again.outcome, again["attempts"], len(full.points())) == ("done", 2, 1), again
    assert "what [keep] lets go is removed now" in "".join(again["warnings"])
    assert (full.point() / "one").read_bytes() == (full.source / "one").read_bytes()


def test_a_forecast_is_enough(full: House) -> None:
    """Nothing is copied before there is room for it, as far as one can tell; and `plan` says that order."""
    full.job(keep={"daily": 1})
    planned = full.call("plan", "photos")
    assert "are free on the target: it fits only if" in planned["short"], planned
    assert len(planned["removes"]) == len(full.points()) - 1, planned
    ended = full.run()
    assert (ended.outcome, ended["attempts"], len(full.points())) == ("done", 2, 1), ended
    assert "what [keep] lets go is removed first" in "".join(ended["warnings"])


def test_the_newest_point_stays_where_even_that_makes_too_little_room(full: House) -> None:
    full.job(keep={"daily": 1})
    change(full, 12 << 20)
    newest = full.points()[-1]
    for _ in range(2):
        ended = full.run()
        assert (ended.outcome, full.points()) == ("failed", [newest]), ended
    assert "the target has no space left" in ended["why"]
    change(full)
    assert full.run().outcome == "done"
