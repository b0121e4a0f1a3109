"""Hosts that ask for permits, contenders for them as real processes, and what they held at once."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from orchestrator.domain.fleet import FleetIdentity
from orchestrator.domain.permit import PermitAnswer, PermitRequest
from orchestrator.fleet.connection import CentreSession
from orchestrator.fleet.permits import ask_permit, release_permit
from tests.ferry import ROOT
from tests.fleet.centres import Centre

# Each grant is counted again by the database itself: a limit that is exceeded ends the statement that exceeds it.
COUNT = """
CREATE FUNCTION public.count_grants() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF EXISTS (SELECT FROM poolferry.limits l JOIN poolferry.permit_parts d ON d.in_limit = l.id JOIN poolferry.permits p ON p.id = d.permit
        WHERE p.granted_at IS NOT NULL AND NOT NEW.taken AND l.id IN (SELECT in_limit FROM poolferry.permit_parts WHERE permit = NEW.id)
        GROUP BY l.id HAVING sum(d.weight) > l.slots) THEN
        RAISE EXCEPTION 'more is lent than there is';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER counted AFTER UPDATE OF granted_at ON poolferry.permits DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (OLD.granted_at IS NULL AND NEW.granted_at IS NOT NULL) EXECUTE FUNCTION public.count_grants();
CREATE CONSTRAINT TRIGGER made AFTER INSERT ON poolferry.permits DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.granted_at IS NOT NULL) EXECUTE FUNCTION public.count_grants();
"""


class PermitHost:
    """A host that asks; each of its jobs on a session of its own, as runs do."""

    def __init__(self, centre: Centre, identity: FleetIdentity, sessions: ExitStack) -> None:
        self._centre, self._identity, self._sessions = centre, identity, sessions
        self.lines: dict[str, CentreSession] = {}

    def ask(
        self, job: str, *limits: str, weight: int = 1, taken: bool = False, lease_s: int = 1, anew: bool = False
    ) -> PermitAnswer:
        """Ask once."""
        if anew or job not in self.lines:
            self.lines[job] = self._sessions.enter_context(self._centre.session(self._identity))
        return ask_permit(
            self.lines[job], job, PermitRequest(limits=limits, weight=weight), taken=taken, lease_s=lease_s
        )

    def give_back(self, job: str, answer: PermitAnswer) -> None:
        """End the hold of a job's permit."""
        assert answer.permit is not None
        release_permit(self.lines[job], answer.permit, within=5)


class Heard:
    """A run's record, as a list of lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warn = self.say = self.lines.append

    def waits(self, text: str) -> None:
        """Its wait, which is left out."""


def until_granted(host: PermitHost, job: str, *, lease_s: int = 1) -> None:
    """Ask for a slot of the link until it is lent."""
    until = time.monotonic() + 10
    while not (answer := host.ask(job, "link", lease_s=lease_s)).granted:
        assert time.monotonic() < until, answer
        time.sleep(0.05)


class Contest:
    """Contenders that run, and what they wrote."""

    def __init__(self, folder: Path, contenders: Sequence[dict[str, object]], *, rounds: int, hold_s: float) -> None:
        self.log = folder / "log"
        told = {"contenders": contenders, "rounds": rounds, "hold_s": hold_s, "lease_s": 2}
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.fleet.contenders", str(folder)], stdin=subprocess.PIPE, env=environment
        )
        assert self.process.stdin
        self.process.stdin.write(json.dumps(told).encode())
        self.process.stdin.close()

    def events(self) -> list[tuple[float, int, str, str, str]]:
        """All events so far: time, process, name, what, more."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        parts = [line.split("\t") for line in lines]
        return [(float(at), int(pid), name, what, more) for at, pid, name, what, more in parts]

    def wait_for(self, what: str, number: int, *, within: float = 60) -> None:
        """Wait until so many such events were written."""
        until = time.monotonic() + within
        while sum(event[3] == what for event in self.events()) < number:
            assert time.monotonic() < until, self.events()[-20:]
            time.sleep(0.02)

    def end(self, *, within: float = 60) -> None:
        """Wait for the end of all."""
        self.process.wait(within)
        assert [event for event in self.events() if event[3] == "broken"] == []


def most_at_once(events: Sequence[tuple[float, int, str, str, str]], killed: dict[int, float]) -> dict[str, int]:
    """The largest sum of weights that held each limit at one instant. `killed`: the processes that were, and when."""
    changes: list[tuple[float, int, str]] = []
    for index, (at, pid, _, what, more) in enumerate(events):
        if what != "+":
            continue
        limits, weight = json.loads(more)
        end = next((later[0] for later in events[index + 1 :] if later[1] == pid and later[3] == "-"), killed.get(pid, float("inf")))  # fmt: skip
        for limit in limits:
            changes += [(at, weight, limit), (end, -weight, limit)]
    most, now = dict[str, int](), dict[str, int]()
    for _, change, limit in sorted(changes, key=lambda each: (each[0], each[1])):
        now[limit] = now.get(limit, 0) + change
        most[limit] = max(most.get(limit, 0), now[limit])
    return most


def contenders(centre: Centre, count: int, **more: object) -> list[dict[str, object]]:
    hosts = [centre.join(f"host-{number}") for number in range(3)]
    mixed = (["link"], ["lab"], ["link", "lab"], ["lab", "link"])
    return [
        {
            "name": f"job-{number}", "host": identity.host, "role": identity.role, "password": identity.password,
            "centre": centre.address, "limits": mixed[number % 4], "weight": 1 + (number % 8 == 3), **more,
        }
        for number in range(count)
        for identity in (hosts[number % 3],)
    ]  # fmt: skip
