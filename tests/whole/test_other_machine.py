"""Two machines copy to one place: the first one's next run is refused, says why, and goes on when the owner says so."""

from copy import copy

from tests.hostile.forgery import TAG, manifest_of, rewrite, text_of
from tests.whole.house import House


def other(house: House) -> House:
    """The same job on another machine: another state directory, so another history and another key."""
    second = copy(house)
    second.state = house.state.with_name("other-state")
    return second


def test_points_of_another_machine_stop_the_next_run(house: House) -> None:
    for number in range(3):
        house.write(f"file{number}", str(number))
    job = house.job()
    assert house.run(job).outcome == "done"
    house.write("file0", "changed")
    second = other(house).run(job)
    assert second.outcome == "done", second
    assert "give one of the two jobs a target of its own" in second["warnings"][0]
    for words in (("plan", "photos"), ("run", "photos")):
        refused = house.call(*words)
        assert refused.code == 3, refused
        assert "another machine copied to" in str(refused)
        assert house.points()[-1] in str(refused)
    read = house.call("verify", "photos")
    assert (read.code, read.outcome) == (1, "failed")
    assert "give its job a target of its own" in read["hint"]
    assert not list((house.target / "points").glob("*.damaged")), "to the other machine its point is sound"
    allowed = house.call("run", "photos", "--allow", "other-machine")
    assert (allowed.code, allowed.outcome) == (0, "nothing-to-do"), allowed
    house.write("file1", "changed, too")
    ran = house.run()
    assert (ran.code, ran.outcome) == (0, "done"), ran
    assert (house.point(-1) / "file1").read_text() == "changed, too"
    assert house.call("verify", "photos").outcome == "done"


def test_a_machine_that_lost_its_state_goes_on(house: House) -> None:
    house.write("file", "1")
    job = house.job()
    assert house.run(job).outcome == "done"
    house.write("file", "2")
    anew = other(house)
    assert anew.run(job).outcome == "done"
    assert anew.run().outcome == "nothing-to-do"
    house.write("file", "3")
    assert anew.run().outcome == "done"


def test_a_point_of_ours_with_a_tag_of_another_key_is_a_forgery(house: House) -> None:
    """And the run after it copies everything again."""
    house.write("file", "1")
    assert house.run(house.job()).outcome == "done"
    manifest = manifest_of(house)
    text = text_of(manifest)
    rewrite(manifest, TAG.sub(lambda found: found[0].replace(found[0].split()[3], b"0123abcd"), text))
    assert house.call("verify", "photos").code == 1
    assert list((house.target / "points").glob("*.damaged"))
    house.write("file", "2")
    assert house.run().outcome == "done"
    assert house.call("verify", "photos").outcome == "done"
