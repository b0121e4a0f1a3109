"""A run that a file of this machine ends, outside of its steps, is recorded and told like any other failure."""

import pytest

from tests.whole.house import House


@pytest.mark.parametrize("where", ["notes", "locks"])
def test_it_is_recorded_and_its_hook_is_called(house: House, where: str) -> None:
    """A file lies where a folder of the state directory belongs, as a restore of only a part of it leaves."""
    house.write("file", "content")
    hook, called = house.folder / "hook", house.folder / "called"
    hook.write_text(f'#!/bin/sh\necho "$POOLFERRY_EVENT" >> {called}\n')
    hook.chmod(0o755)
    house.job(hooks={"failed": [str(hook)]})
    assert house.run().outcome == "done"
    house.write("file", "changed")
    taken = house.state / where / "photos" if where == "notes" else house.state / where
    if taken.exists():
        taken.rename(house.folder / "aside")
    taken.write_text("in the way")
    ran = house.run()
    assert (ran.code, ran.outcome, str(taken) in ran["why"]) == (1, "failed", True), ran
    assert "move it away" in ran["hint"]
    last = house.call("history", "photos")["runs"][0]
    assert (last["outcome"], last["ended"] is not None) == ("failed", True), last
    assert called.read_text().split() == ["failed"]
    taken.unlink()
    assert house.run().outcome == "done", "the next run continues from here"
