"""Contenders for permits: real processes that hold one again and again, and write down when; one interpreter forks them all.

Run as `python -m tests.fleet.contenders FOLDER`, with their list as JSON on stdin; each line of FOLDER/log is one event.
"""

import json
import os
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from orchestrator.app.permits import CentrePermits
from orchestrator.compose import Directories
from orchestrator.domain.fleet import FleetIdentity
from orchestrator.domain.permit import PermitRequest
from orchestrator.domain.units import Seconds
from orchestrator.fleet.connection import open_centre
from orchestrator.fleet.credentials import keep_identity
from orchestrator.process.stop import StopRequest

__all__ = ["open_centre"]  # imported before the forks


@dataclass(frozen=True, kw_only=True)
class Voice:
    """A run's record, which becomes events in the log."""

    log: "Log"

    def say(self, text: str) -> None:
        """A line."""
        self.log.add("says", text)

    def warn(self, text: str) -> None:
        """A warning."""
        self.log.add("warns", text)

    def waits(self, text: str) -> None:
        """Its wait, which is left out."""


class Log:
    """Events of all contenders, each one write: time, process, name, what, more."""

    def __init__(self, path: Path, name: str) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._name = name

    def add(self, what: str, more: str = "") -> None:
        """Write one event."""
        os.write(self._fd, f"{time.monotonic():.4f}\t{os.getpid()}\t{self._name}\t{what}\t{more}\n".encode())


def declare_host(folder: Path, centre: str, identity: FleetIdentity) -> Directories:
    """A host's configuration and state."""
    (folder / "etc").mkdir(parents=True, exist_ok=True)
    (folder / "etc" / "poolferry.toml").write_text(f'[fleet]\ncentre = "{centre}"\n')
    (folder / "etc" / "poolferry.toml").chmod(0o600)
    keep_identity(str(folder / "state"), identity)
    return Directories(config=str(folder / "etc"), state=str(folder / "state"))


def contend(folder: Path, told: dict[str, object], rounds: int, hold_s: float, lease_s: int) -> None:
    """Hold the permit so many times."""
    name = str(told["name"])
    log = Log(folder / "log", name)
    identity = FleetIdentity(host=str(told["host"]), role=str(told["role"]), password=str(told["password"]))
    where = declare_host(folder / name, str(told["centre"]), identity)
    patience = told.get("patience")
    request = PermitRequest(
        limits=tuple(told["limits"]), weight=int(str(told["weight"])), patience=None if patience is None else Seconds(float(str(patience))),  # type: ignore[arg-type]
    )  # fmt: skip
    permits = CentrePermits(where, lease_s=lease_s)
    if told.get("early"):
        assert permits.lends_at_once(name, request)
        log.add("lent")
        wait_for(folder / "begin")
    for _ in range(rounds):
        with permits.hold(name, request, Voice(log=log), StopRequest()):
            log.add("+", json.dumps([told["limits"], told["weight"]]))
            if told.get("long"):
                wait_for(folder / "end")
            time.sleep(hold_s)
            log.add("-")
    log.add("over")


def wait_for(path: Path) -> None:
    """Wait until the file is there."""
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until, path
        time.sleep(0.02)


def main(folder: Path) -> None:
    """Fork all, and wait for them."""
    told = json.load(sys.stdin)
    children = []
    for each in told["contenders"]:
        child = os.fork()
        if child == 0:
            try:
                contend(folder, each, told["rounds"], told["hold_s"], told["lease_s"])
            except BaseException:  # noqa: BLE001 - the log is where it is looked for
                Log(folder / "log", each["name"]).add("broken", traceback.format_exc().replace("\n", " | "))
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
