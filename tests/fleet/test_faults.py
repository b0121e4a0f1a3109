"""A centre that crashes, is killed, has no room or falls silent, and senders that are killed: nothing is lost, nothing is twice."""

import itertools
import os
import random
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from orchestrator import compose
from orchestrator.app import fleet_sender
from orchestrator.app.fleet_line import CentreLine
from orchestrator.app.fleet_sender import LedgerSender, SentRows
from orchestrator.app.permits import CentrePermits
from orchestrator.app.settings import Settings
from orchestrator.config.this_machine import machine_id_hash
from orchestrator.domain.errors import CentreUnreachable, HistoryError, NotNow, OrchestratorError
from orchestrator.domain.permit import PermitRequest
from orchestrator.fleet import ledger
from orchestrator.process.stop import StopRequest
from tests.daemon.daemon_world import until
from tests.ferry import COMMAND
from tests.fleet.askers import Heard
from tests.fleet.centres import Centre, make_centre
from tests.fleet.hosts import FleetHost
from tests.fleet.lines import SilentLine
from tests.fleet.postgres import PostgresServer


@pytest.fixture
def fragile() -> Iterator[Centre]:
    """A centre on a server of its own, whose commits survive its crash."""
    server = PostgresServer(synchronous_commit="on", full_page_writes="on")
    try:
        server.start()
        yield make_centre(server)
    finally:
        server.remove()


def told(centre: Centre) -> list[int]:
    """The numbers of all runs at the centre, however often each is there."""
    with centre.administrator() as session:
        return [row["id"] for row in session.rows("SELECT id FROM poolferry.runs ORDER BY id, incarnation")]


def test_a_centre_that_crashes_and_senders_that_are_killed_in_the_middle(
    tmp_path: Path, fragile: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FleetHost(tmp_path / "web-1", fragile, "web-1", monkeypatch, machine=machine_id_hash())
    chance, over = random.Random(7), threading.Event()
    host.record(count=4000)

    said: list[str] = []

    def send_and_kill() -> None:
        while not over.is_set():
            host.record(count=500)
            sender = subprocess.Popen(
                [*COMMAND, "fleet", "send", "--every", "1s"],
                env=host.ferry.variables(),
                stderr=subprocess.PIPE,
                text=True,
            )
            time.sleep(chance.uniform(0.5, 1.2))
            sender.kill()
            said.append(sender.communicate()[1])

    senders = threading.Thread(target=send_and_kill)
    senders.start()
    for _ in range(4):  # in this thread: a server ends with the thread that started it
        time.sleep(chance.uniform(0.3, 0.9))
        fragile.server.stop("immediate")
        time.sleep(0.1)
        fragile.server.start()
    over.set()
    senders.join()
    assert len(said) >= 3
    assert "Traceback" not in "".join(said)
    host.send()
    with host.history() as history:
        assert history.outbox.count() == 0
    assert told(fragile) == list(range(1, 4001 + 500 * len(said)))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.sample(1)
def test_a_session_that_is_killed_in_its_transaction(
    tmp_path: Path, fragile: Centre, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """Of a server process that is killed -9 all others end, too, and the server recovers."""
    host = FleetHost(tmp_path / "web-1", fragile, "web-1", monkeypatch)
    host.record(count=10)

    def kill() -> None:
        waits = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename <> 'postgres'"
        with fragile.administrator() as other:
            until(lambda: other.rows(waits), "it waits", str)
            for row in other.rows(waits):
                os.kill(row["pid"], number)

    with suppress(CentreUnreachable), fragile.administrator() as session, session.transaction():
        session.change("LOCK TABLE poolferry.runs IN ACCESS EXCLUSIVE MODE")
        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(CentreUnreachable):
            host.send()
        killer.join()
    until(fragile.server.answers, "it has recovered", str)
    assert told(fragile) == []
    assert host.send().rows == 10
    assert told(fragile) == list(range(1, 11))


def test_a_line_that_falls_silent_in_a_batch(
    tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch, line: SilentLine
) -> None:
    host = FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch)
    host.record(count=3000)
    host.declare(f"postgresql://127.0.0.1:{line.port}/{centre.database}")
    line.silence_after(700_000)
    with monkeypatch.context() as hasty:
        hasty.setattr(ledger, "BATCH_S", 5.0)
        with pytest.raises(CentreUnreachable, match="silent for 5 s"):
            host.send()
    assert line.silent
    host.declare(centre.address)
    host.send()
    assert told(centre) == list(range(1, 3001))


def test_a_sender_that_goes_on_outlives_a_centre_that_is_away(
    tmp_path: Path, fragile: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FleetHost(tmp_path / "web-1", fragile, "web-1", monkeypatch, machine=machine_id_hash())
    host.record(count=3)
    fragile.server.stop("fast")
    said = tmp_path / "said"
    with said.open("w") as heard:
        sender = subprocess.Popen(
            [*COMMAND, "fleet", "send", "--every", "0.2s"], env=host.ferry.variables(), stderr=heard
        )
    try:
        until(lambda: "gives no answer" in said.read_text(), "its absence is said", said.read_text)
        time.sleep(1)  # some more tries
        host.record(count=2)
        fragile.server.start()
        until(lambda: told(fragile) == [1, 2, 3, 4, 5], "all is told", said.read_text)
        host.record()
        until(lambda: told(fragile)[-1] == 6, "a new run is told", said.read_text)
        until(lambda: "again\n" in said.read_text(), "its return is said", said.read_text)
    finally:
        sender.terminate()
        sender.wait()
    lines = [line for line in said.read_text().splitlines() if line]
    assert ("gives no answer" in lines[0], lines[1:]) == (True, ["the centre is told again"]), lines


@pytest.mark.parametrize("away_s", [75, 3600])
@pytest.mark.sample(1)
def test_a_centre_that_is_away_for_an_hour_is_told_all_once_it_is_back(
    tmp_path: Path, fragile: Centre, monkeypatch: pytest.MonkeyPatch, away_s: int
) -> None:
    """By a clock of the test's own: the sender's sleeps let it go on, and each of them is a chance for a run to be recorded."""
    host = FleetHost(tmp_path / "web-1", fragile, "web-1", monkeypatch, machine=machine_id_hash())
    host.record(count=2)
    said, tries, begun = list[str](), list[float](), compose.monotonic()
    clock = begun
    known = fleet_sender._try_to_send

    def send(settings: Settings, line: CentreLine, every_s: float) -> SentRows | OrchestratorError:
        tries.append(clock - begun)
        return known(settings, line, every_s)

    def sleep(seconds: float) -> None:
        nonlocal clock
        before, clock = clock, clock + seconds
        runs = [(away_s * part / 100, "record") for part in (30, 40, 50)]
        for at, what in ((10, "stop"), *runs, (10 + away_s, "start")):
            if before - begun < at <= clock - begun:
                {
                    "stop": lambda: fragile.server.stop("fast"),
                    "record": host.record,
                    "start": fragile.server.start,
                }[what]()
        if clock - begun > away_s + 400:
            raise SystemExit

    monkeypatch.setattr(compose, "monotonic", lambda: clock)
    monkeypatch.setattr(compose, "sleep", sleep)
    monkeypatch.setattr(fleet_sender, "_try_to_send", send)
    monkeypatch.setattr(Settings, "say", lambda _, text: said.append(text))
    with pytest.raises(SystemExit):
        fleet_sender.send_again_and_again(host.settings, every_s=300)
    assert told(fragile) == [1, 2, 3, 4, 5]
    assert ["gives no answer" in line for line in said] == [True, False], said
    assert said[1] == "the centre is told again"
    missed = [each for each in tries if 10 < each < 10 + away_s]
    assert all(later - earlier >= 45 for earlier, later in itertools.pairwise(missed)), "runs make it ask no more often"
    assert away_s < 3600 or len(missed) < 3600 / 220, "it asks more and more rarely, at last about each five minutes"


def test_a_run_that_ends_while_the_centre_is_told_of_others_is_told_soon(
    tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch, machine=machine_id_hash())
    host.record(count=2)
    clock, visits = 0.0, 0
    send_all = LedgerSender.send_all

    def and_another(self: LedgerSender) -> SentRows:
        nonlocal visits
        sent, visits = send_all(self), visits + 1
        if visits == 1:
            host.record()
        return sent

    def sleep(seconds: float) -> None:
        nonlocal clock
        clock += seconds
        if clock > 250:
            raise SystemExit

    monkeypatch.setattr(compose, "monotonic", lambda: clock)
    monkeypatch.setattr(compose, "sleep", sleep)
    monkeypatch.setattr(LedgerSender, "send_all", and_another)
    with pytest.raises(SystemExit):
        fleet_sender.send_again_and_again(host.settings, every_s=300)
    assert told(centre) == [1, 2, 3]
    assert visits == 2, "and where nothing is new nobody asks"


@pytest.mark.parametrize("error", [NotNow("another process is at it"), HistoryError("it is locked")])
def test_what_says_nothing_about_the_centre_does_not_make_it_be_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OrchestratorError
) -> None:
    tries, clock, mark = list[float](), 0.0, 0

    def send(*_: object) -> OrchestratorError:
        tries.append(clock)
        return error

    def sleep(seconds: float) -> None:
        nonlocal clock, mark
        clock, mark = clock + seconds, mark + (clock < 20 <= clock + seconds)
        if clock > 400:
            raise SystemExit

    monkeypatch.setattr(compose, "monotonic", lambda: clock)
    monkeypatch.setattr(compose, "sleep", sleep)
    monkeypatch.setattr("orchestrator.history.database.history_mark", lambda _: (mark,))
    monkeypatch.setattr(fleet_sender, "_try_to_send", send)
    monkeypatch.setattr(Settings, "say", lambda *_: None)
    with pytest.raises(SystemExit):
        fleet_sender.send_again_and_again(Settings(config=str(tmp_path), state=str(tmp_path)), every_s=3600)
    assert tries[1] <= 22, "a run that was recorded is told soon"
    assert max(later - earlier for earlier, later in itertools.pairwise(tries)) <= 62, tries


@pytest.mark.parametrize("part", [0.0, 0.999])
def test_a_centre_that_is_back_is_told_within_ten_minutes(monkeypatch: pytest.MonkeyPatch, part: float) -> None:
    monkeypatch.setattr(compose, "random_fraction", lambda: part)
    assert fleet_sender._pause_after(9, 86400) <= 600
    assert fleet_sender._pause_after(9, 300) <= 300
    assert fleet_sender._pause_after(1, 300) >= 45


def test_a_row_that_no_centre_takes_is_named_and_holds_no_other_up(
    tmp_path: Path, centre: Centre, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FleetHost(tmp_path / "web-1", centre, "web-1", monkeypatch)
    with centre.administrator() as session:
        session.change("ALTER TABLE poolferry.runs ADD CHECK (job <> 'odd')")
    host.record(count=5)
    host.record("odd")
    host.record(count=4)
    sent = host.send()
    assert (sent.rows, sent.waiting, len(sent.unfit)) == (9, 0, 1)
    assert sent.unfit[0].startswith("run 6: the centre")
    assert told(centre) == [1, 2, 3, 4, 5, 7, 8, 9, 10]
    assert host.send().rows == 0


@pytest.mark.root
@pytest.mark.namespace
def test_a_disk_that_is_full(tmp_path: Path, fragile: Centre, monkeypatch: pytest.MonkeyPatch) -> None:
    host = FleetHost(tmp_path / "web-1", fragile, "web-1", monkeypatch)
    host.record(count=3000)
    small = fragile.server.folder / "small"
    small.mkdir()
    owner = fragile.server.data.stat()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size=400k,mode=0700,uid={owner.st_uid},gid={owner.st_gid}", "pf", small],
        check=True,
    )
    try:
        with fragile.administrator() as session:
            session.change(f"CREATE TABLESPACE small LOCATION '{small}'")
            session.change("ALTER TABLE poolferry.runs SET TABLESPACE small")
            session.change("ALTER TABLE poolferry.permits SET TABLESPACE small")
        with pytest.raises(CentreUnreachable, match="has no room"):
            host.send()
        with host.history() as history:
            waits = history.outbox.count()
        assert len(told(fragile)) == 3000 - waits
        voice, where = Heard(), host.settings.where
        with CentrePermits(where).hold("photos", PermitRequest(limits=("wan",)), voice, StopRequest()):
            assert "goes on without the permit wan: the centre" in voice.lines[0]
            assert "has no room" in voice.lines[0]
        subprocess.run(["mount", "-o", "remount,size=64m", small], check=True)
        host.send()
        assert told(fragile) == list(range(1, 3001))
    finally:
        fragile.server.stop()
        subprocess.run(["umount", small], check=True)
