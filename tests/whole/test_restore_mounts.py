"""Files return to a folder in which other filesystems are mounted: those stay as they are, or are filled where they are empty."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator import compose
from orchestrator.app.settings import Settings
from orchestrator.domain.fast_dataclass import replace
from orchestrator.domain.place import Location
from orchestrator.domain.run import Outcome
from orchestrator.process.stop import StopRequest
from orchestrator.runner.restore.request import RestoreOptions
from orchestrator.runner.restore.restore import run_restore
from tests.whole.house import House, Ran, facts
from tests.whole.sshd import Sshd, sshd

pytestmark = [pytest.mark.slow, pytest.mark.root]
__all__ = ["sshd"]
MARKER = ".poolferry-restoring.json"


class Mounts:
    """Small filesystems of their own."""

    def __init__(self) -> None:
        self._places: list[Path] = []

    def at(self, place: Path) -> Path:
        """Mounts one."""
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "poolferry-test", place], check=True)
        self._places.append(place)
        return place

    def away(self) -> None:
        """Unmounts all, the last one first."""
        while self._places:
            subprocess.run(["umount", self._places.pop()], check=True)


@pytest.fixture
def mounts() -> Iterator[Mounts]:
    made = Mounts()
    yield made
    made.away()


def copied(house: House, mounts: Mounts, **toml: object) -> str:
    """A source in which two filesystems are mounted, one of them two folders down; then it is lost. The point's name."""
    house.write("one", "the first")
    house.write("in/two", "the second")
    for place in ("sub dir[1]", "in/deep/er"):
        (mounts.at(house.source / place) / "own").write_text(f"of {place}")
    house.job(**toml)
    run = house.run()
    assert run.outcome == "done", run
    return str(run["points"][0])


def anew(house: House, mounts: Mounts, *, full: bool) -> None:
    """The source is gone; its filesystems are there again, with newer files or without any."""
    mounts.away()
    subprocess.run(["rm", "-rf", house.source], check=True)
    for place in ("sub dir[1]", "in/deep/er"):
        made = mounts.at(house.source / place)
        os.chmod(made, 0o751)
        if full:
            (made / "newer").write_text("came back by itself")


def back(house: House, *more: str) -> Ran:
    return house.call("restore", "run", "photos", "--to", str(house.source), *more)


def files(house: House) -> dict[str, str]:
    return {str(path.relative_to(house.source)): path.read_text() for path in house.source.rglob("*") if path.is_file()}


OWN = {"one": "the first", "in/two": "the second"}
NEWER = {f"{place}/newer": "came back by itself" for place in ("sub dir[1]", "in/deep/er")}


def test_what_is_mounted_stays_as_it_is(house: House, mounts: Mounts) -> None:
    copied(house, mounts)
    anew(house, mounts, full=True)
    (mounts.at(house.source / "of" / "later") / "own").write_text("no copy has it")
    before = {place: facts(house.source / place) for place in ("sub dir[1]", "in/deep/er")}
    planned = house.call("restore", "plan", "photos", "--to", str(house.source))
    assert "what is mounted there stays as it is: in/deep/er, of/later, sub dir[1]" in str(planned.value), planned
    done = back(house)
    assert (done.code, done.outcome, done["warnings"]) == (0, "done", []), done
    assert files(house) == OWN | NEWER | {"of/later/own": "no copy has it"}
    assert {place: facts(house.source / place) for place in before} == before, "not even their own folders were touched"
    assert back(house).outcome == "refused", "what is back is not overwritten"


def test_one_that_goes_on_removes_nothing_there(house: House, mounts: Mounts) -> None:
    point = copied(house, mounts)
    anew(house, mounts, full=True)
    (house.source / "stray").write_text("of the restore that was cut")
    foreign, own = (house.source / place / ".~poolferry-partial~" for place in ("sub dir[1]", "in"))
    for folder in (foreign, own):
        folder.mkdir()
    (house.source / MARKER).write_text(json.dumps({"format": 1, "job": "photos", "point": point, "path": ""}))
    done = back(house)
    assert (done.outcome, done["resumed"]) == ("done", True), done
    assert files(house) == OWN | NEWER
    assert (foreign.exists(), own.exists()) == (True, False)


@pytest.mark.parametrize("name", ["stray", "in/stray", "in/empty/"])
def test_what_lies_beside_a_mount_is_in_the_way(house: House, mounts: Mounts, name: str) -> None:
    copied(house, mounts)
    anew(house, mounts, full=True)
    if name.endswith("/"):
        (house.source / name).mkdir()
    else:
        (house.source / name).write_text("mine")
    refused = back(house)
    assert (refused.code, refused.outcome) == (3, "refused"), refused
    assert not (house.source / "one").exists()


def test_what_was_copied_with_what_is_mounted_in_it_fills_that(house: House, mounts: Mounts) -> None:
    point = copied(house, mounts, rsync={"one_file_system": False})
    before = facts(house.source)
    anew(house, mounts, full=False)
    done = back(house)
    assert (done.code, done.outcome) == (0, "done"), done
    assert facts(house.source) == before
    assert os.path.ismount(house.source / "sub dir[1]")

    anew(house, mounts, full=True)
    refused = back(house)
    assert (refused.code, refused.outcome) == (3, "refused"), refused
    assert refused["evidence"] == [str(house.source / "in/deep/er"), str(house.source / "sub dir[1]")]
    told = {"format": 1, "job": "photos", "point": point, "path": "", "filling": ["in/deep/er", "sub dir[1]"]}
    (house.source / MARKER).write_text(json.dumps(told))
    done = back(house)
    assert (done.outcome, done["resumed"]) == ("done", True), "what an earlier one has begun to fill is gone on with"
    assert facts(house.source) == before


def test_what_came_back_by_itself_stays_though_the_point_has_it_too(house: House, mounts: Mounts) -> None:
    """As `restore pool` asks for it: datasets came back as such, and a copy of files holds them a second time."""
    copied(house, mounts, rsync={"one_file_system": False})
    anew(house, mounts, full=True)
    settings = Settings(config=str(house.config), state=str(house.state))
    job = settings.configuration().job("photos")
    stays = tuple(str(house.source / place) for place in ("sub dir[1]", "in/deep/er"))
    with compose.open_history(settings.where) as history:
        tools = compose.make_run_context(
            job, settings.where, history, notify=lambda _: None, log=lambda _: None, stop=StopRequest(), ssh_options=()
        )
        request = RestoreOptions(to=Location(path=str(house.source)))
        assert run_restore(job, tools, replace(request, stays=stays[:1])).outcome is Outcome.REFUSED
        report = run_restore(job, tools, replace(request, stays=stays))
    assert report.outcome is Outcome.DONE, report
    assert files(house) == OWN | NEWER


def test_on_a_host_too(house: House, sshd: Sshd, mounts: Mounts) -> None:
    copied(house, mounts, pipe=sshd.pipe)
    anew(house, mounts, full=True)
    done = house.call("restore", "run", "photos", "--to", sshd.url(house.source))
    assert (done.code, done.outcome) == (0, "done"), done
    assert files(house) == OWN | NEWER
