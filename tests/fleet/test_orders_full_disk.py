"""Orders to a host whose state directory is on a full disk: nothing is done twice, nothing is lost, and who ordered is told."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.config.this_machine import machine_id_hash
from orchestrator.domain.order import OrderState
from tests.daemon.daemon_world import until
from tests.fleet.centres import Centre
from tests.fleet.hosts import FleetHost
from tests.fleet.order_host import Ordering, fetch, listening

pytestmark = pytest.mark.root
FILLER = "dd if=/dev/zero of={filler} bs=4k 2>/dev/null; dd if=/dev/zero of={filler}.rest bs=1 count=4k 2>/dev/null"


class SmallState:
    """A host whose state directory is a filesystem of 4 MiB."""

    def __init__(self, ordering: Ordering) -> None:
        self.ordering = ordering
        self.filler = ordering.host.ferry.state / "filler"

    def fill(self) -> None:
        """Leave no room at all."""
        subprocess.run(["sh", "-c", FILLER.format(filler=self.filler)], check=False)

    def leave(self, size: int) -> None:
        """Leave so many bytes free."""
        seen = os.statvfs(self.filler.parent)
        self.filler.with_name("before").write_bytes(bytes(max(0, seen.f_bavail * seen.f_frsize - size)))

    def free(self) -> None:
        """Make room again."""
        for name in ("filler", "filler.rest"):
            (self.ordering.host.ferry.state / name).unlink(missing_ok=True)

    def runs(self, job: str = "photos") -> list[str]:
        """Return the outcomes of the runs that an order asked for."""
        with self.ordering.host.settings.views() as views:
            return [str(each.outcome) for each in views.runs(job, 9) if each.begun_why.startswith("ordered by")]


@pytest.fixture
def small(tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallState]:
    """A host with the job photos, that has joined."""
    state = tmp_path / "web-1" / "state"
    state.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", str(state)], check=True)
    try:
        host = FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch, machine=machine_id_hash())
        host.ferry.job()
        yield SmallState(Ordering(host, centre))
    finally:
        subprocess.run(["umount", "--lazy", str(state)], check=True)


@pytest.mark.parametrize("verb", ["run", "pause"])
def test_an_order_waits_until_the_host_can_write_it_down(small: SmallState, verb: str) -> None:
    """Seen: it was refused, and the job took no other one until the daemon was started again."""
    ordering = small.ordering
    with listening(ordering) as clock:
        first = ordering.carried_on(ordering.order("plan"))
        assert first.state is OrderState.DONE, first
        small.fill()
        number = ordering.order(verb)
        for _ in range(3):
            fetch(ordering.host)
        waits = ordering.record(number)
        assert waits.state is OrderState.TAKEN, (waits, clock.log)
        assert "full" in waits.said, waits
        small.free()
        done = ordering.carried_on(number)
    assert (done.state, done.attempt) == (OrderState.DONE, 1), done
    assert small.runs() == (["done"] if verb == "run" else [])
    with ordering.host.settings.views() as views:
        assert ("photos" in views.due_runs.pauses()) == (verb == "pause")


def test_the_end_of_an_order_is_told_once_there_is_room_and_nothing_is_done_twice(small: SmallState) -> None:
    """Seen: what became of it was never told, and the next daemon did it once more."""
    small.leave(1800 << 10)  # too little to keep some for the end of a run
    ordering = small.ordering
    fills = ordering.host.ferry.root / "fills"
    fills.write_text(f"#!/bin/sh\n{FILLER.format(filler=small.filler)}\ntouch {fills}.done\n")
    fills.chmod(0o755)
    ordering.host.ferry.job("mail", f'[hooks]\nbefore = ["{fills}"]\n')
    with listening(ordering) as clock:
        number = ordering.order("run", "mail")
        fetch(ordering.host)
        until(Path(f"{fills}.done").exists, "the disk is full", lambda: clock.log)
        until(lambda: "is recorded once that is possible" in clock.log, "it ends", lambda: clock.log)
        for _ in range(2):
            fetch(ordering.host)
        assert ordering.record(number).state is OrderState.BEGUN
        small.free()
        ended = ordering.carried_on(number)
    assert (ended.state, ended.attempt) == (OrderState.FAILED, 1), ended
    assert "full" in ended.said, ended
    with listening(ordering):
        for _ in range(2):
            fetch(ordering.host)
    assert ordering.record(number).attempt == 1
    assert len(small.runs("mail")) == 1, small.runs("mail")
