"""Small builders of jobs and answers for the prune engine's tests."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from orchestrator.domain.arrival import ArrivalRules, PointRemoval, ReceivedPoint
from orchestrator.domain.job import Job, KeepRules
from orchestrator.domain.place import Location, Place
from orchestrator.domain.plan import Refusal
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.process.scripted import ScriptedExecutor, scripted_result

ROOT = Location(path="vault/in/laptop")
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
GUID = 18446744073709551615  # half of all have their first bit set
LOOK = (
    b"1795187460\n18446744073709551615\nvault/in/laptop/a@one\t11\t100\t1795000000\t5\t50\t0\t-\n"
    b"vault/in/laptop/a@two\t12\t101\t1795000001\t6\t60\t2\t\nvault/in/laptop/b@one\t13\t102\t1795000002\t7\t70\t0\tvault/clone,vault/x\n"
)


def job(**keys: Any) -> Job:
    place = Place(name="in", location=ROOT)
    made = Job(
        name="in",
        file="in.toml",
        engine="prune",
        source=ROOT,
        target=place,
        options=ArrivalRules(),
        keep=KeepRules(daily=2),
    )
    return replace(made, **keys)


def looks(said: bytes = LOOK, **more: Any) -> ScriptedExecutor:
    return ScriptedExecutor([(lambda _: True, scripted_result(said, **more))])


def request(
    judge: Callable[[tuple[ReceivedPoint, ...]], tuple[PointRemoval, ...] | Refusal] | None = None,
) -> RunRequest:
    return RunRequest(now=NOW, notes="/notes", judge=judge)
