"""A removable disk whose jobs need permits: it is left alone until they are lent, and who plugged it in is told."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.domain.permit import DeclaredLimit, PermitRequest, join_requests
from orchestrator.domain.units import Seconds
from orchestrator.fleet.credentials import keep_identity
from orchestrator.fleet.permits import ask_permit, declare_limit, list_permits, release_permit
from tests.daemon.daemon_world import until
from tests.ferry import COMMAND
from tests.fleet.centres import Centre
from tests.whole.loop_disks import LoopDisks, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "none")


@pytest.fixture
def drawer(tmp_path: Path, centre: Centre) -> Iterator[LoopDisks]:
    """A drawer with one disk, of a host that has joined: its jobs photos and mail need a link and a lab of one slot each."""
    made = LoopDisks(tmp_path)
    try:
        (made.ferry.config / "poolferry.toml").write_text(f'[fleet]\ncentre = "{centre.address}"\n')
        made.ferry.state.mkdir(mode=0o700, exist_ok=True)
        keep_identity(str(made.ferry.state), centre.join("web-1"))
        for name, limit in (("photos", "link"), ("mail", "lab")):  # a centre that is slow is waited for
            made.job(name, f'permits = ["{limit}"]\npermit-away = "wait 10m"\n')
        made.job("books")
        made.enrolled("red")
        with centre.administrator() as session:
            for name in ("link", "lab"):
                declare_limit(session, DeclaredLimit(name=name, slots=1))
        yield made
    finally:
        made.close()


@contextmanager
def lent(centre: Centre, *limits: str) -> Iterator[Callable[[], None]]:
    """Let another host have the limits; yield what gives them back."""
    with centre.session(centre.join("other")) as line:
        answer = ask_permit(line, "job", PermitRequest(limits=limits), taken=False)
        assert answer.permit is not None
        number = answer.permit
        yield lambda: release_permit(line, number, within=5)


@contextmanager
def begun(drawer: LoopDisks, *words: str) -> Iterator[tuple["subprocess.Popen[str]", Path]]:
    """Begin a command; yield it and the file of what it says."""
    said = drawer.root / "said"
    with said.open("w") as file:
        command = subprocess.Popen(
            [*COMMAND, *words], env=drawer.ferry.variables(), stdout=file, stderr=file, text=True
        )
    try:
        yield command, said
    finally:
        command.kill()
        command.wait()


@pytest.mark.parametrize("words", [("disks", "scan"), ("run", "mail", "photos")], ids=["scan", "run"])
def test_a_disk_is_attached_once_the_permits_of_all_its_jobs_are_lent(
    drawer: LoopDisks, centre: Centre, words: tuple[str, ...]
) -> None:
    with lent(centre, "link", "lab") as give_back, begun(drawer, *words) as (command, said):
        until(lambda: "waits for the permit" in said.read_text(), "it says what it waits for", said.read_text)
        assert "is attached once the permits" in said.read_text()
        running = drawer.run("status", "--json").value
        assert "waits for the permit" in json.dumps(running), "status says so, too"
        assert not drawer.mounted("red")
        give_back()
        assert command.wait(60) == 0, said.read_text()
    with centre.administrator() as session:
        assert list_permits(session) == ()
    runs = drawer.run("history", "--json").value["runs"]
    assert {(run["job"], run["outcome"]) for run in runs} >= {("photos", "done"), ("mail", "done")}
    assert said.read_text().count("SAFE TO REMOVE") == 1, said.read_text()


def test_a_wait_that_is_stopped_leaves_the_disk_untouched(drawer: LoopDisks, centre: Centre) -> None:
    drawer.run("disks", "scan")  # all is copied
    before = drawer.digest("red")
    drawer.pull("red")
    drawer.plug("red")
    with lent(centre, "lab"), begun(drawer, "disks", "scan") as (command, said):
        until(lambda: "waits for the permit" in said.read_text(), "it waits", said.read_text)
        command.send_signal(signal.SIGTERM)
        command.wait(60)
    assert (drawer.digest("red"), drawer.mounted("red")) == (before, False)


def test_a_disk_that_is_unplugged_during_the_wait_is_not_missed_for_long(drawer: LoopDisks, centre: Centre) -> None:
    with lent(centre, "lab") as give_back, begun(drawer, "disks", "scan") as (command, said):
        until(lambda: "waits for the permit" in said.read_text(), "it waits", said.read_text)
        drawer.pull("red")
        give_back()
        command.wait(60)
    assert "was unplugged, or taken by another visit" in said.read_text()
    drawer.plug("red")
    assert drawer.scan()["visits"]["red"]["ending"] == "done"


def test_requests_that_come_one_after_the_other_are_one() -> None:
    one, two = PermitRequest(limits=("a", "b"), weight=3), PermitRequest(limits=("b", "c"), patience=Seconds(60))
    assert join_requests([one, two]) == PermitRequest(limits=("a", "b", "c"), weight=3, patience=Seconds(60))
    assert join_requests([one]) == one
