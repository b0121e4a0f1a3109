"""A host of a fleet for tests: its own configuration, state, history and machine; it runs nothing, and records as runs do."""

import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.app.fleet_sender import SentRows, send_once
from orchestrator.app.settings import Settings
from orchestrator.domain.fleet import FleetIdentity
from orchestrator.domain.heartbeat import HostBeat, JobBeat
from orchestrator.domain.run import Outcome
from orchestrator.fleet.beats import store_beat
from orchestrator.fleet.credentials import keep_identity
from orchestrator.history.store import History, open_history
from tests.ferry import Ferry
from tests.fleet.centres import Centre
from tests.history.records import NOON, finish

HOUR = timedelta(hours=1)
MACHINE = "orchestrator.config.this_machine.machine_id_hash"


class FleetHost:
    """One host that has joined a centre."""

    def __init__(self, root: Path, centre: Centre, name: str, patch: pytest.MonkeyPatch, *, machine: str = "") -> None:
        root.mkdir(exist_ok=True)
        self.ferry = Ferry(root)
        self.centre = centre
        self.name = name
        self.machine = machine or secrets.token_hex(16)
        self._patch = patch
        self.identity: FleetIdentity = centre.join(name, machine=self.machine)
        self.ferry.state.mkdir(mode=0o700, exist_ok=True)
        keep_identity(str(self.ferry.state), self.identity)
        self.declare(centre.address)

    def declare(self, address: str) -> None:
        """Name another way to the centre."""
        (self.ferry.config / "poolferry.toml").write_text(f'[fleet]\ncentre = "{address}"\n')

    @property
    def history_file(self) -> Path:
        """The file of its history."""
        return self.ferry.state / "history.sqlite"

    @property
    def settings(self) -> Settings:
        """Its directories."""
        return Settings(config=str(self.ferry.config), state=str(self.ferry.state))

    def history(self) -> History:
        """Its history, to record in."""
        return open_history(str(self.history_file))

    def record(
        self, job: str = "photos", outcome: Outcome = Outcome.DONE, *, now: datetime = NOON, count: int = 1
    ) -> None:
        """Record runs that have ended."""
        with self.history() as history, history.together():
            for _ in range(count):
                finish(history, outcome, job, now=now)

    def send(self) -> SentRows:
        """Tell the centre, as this machine."""
        self._patch.setattr(MACHINE, lambda: self.machine)
        return send_once(self.settings, every_s=60)


def told(name: str, *, copied: datetime | None, late_after: float | None = 7200, state: str = "up") -> JobBeat:
    """A job as its host judges it."""
    return JobBeat(
        job=name, engine="rsync", source="/srv", target="backup", state=state, why="copied", hint="", late_after_s=late_after,
        copied_at=copied, due_at=None, next_at=None, running_at=None, last_outcome="done", last_ended_at=copied, failures=0,
    )  # fmt: skip


class BeatingHost:
    """A host that has joined and gives signs of life; `beat` as often as wanted."""

    def __init__(self, centre: Centre, name: str) -> None:
        self.centre = centre
        self.identity = centre.join(name)

    def beat(self, *jobs: JobBeat, clock: timedelta = timedelta(0), mistakes: int = 0) -> None:
        """A sign of life of a host whose clock is ahead by so much."""
        with self.centre.session(self.identity) as session:
            row = session.first("SELECT poolferry.this_host() AS host")
            assert row is not None
            now = datetime.now(UTC) + clock
            heard = HostBeat(host_at=now, every_s=300, version="1", waiting=0, mistakes=mistakes, jobs=jobs)
            store_beat(session, row["host"], heard)


def beat(centre: Centre, name: str, *jobs: JobBeat, clock: timedelta = timedelta(0), mistakes: int = 0) -> None:
    """A sign of life of a new host whose clock is ahead by so much."""
    BeatingHost(centre, name).beat(*jobs, clock=clock, mistakes=mistakes)
