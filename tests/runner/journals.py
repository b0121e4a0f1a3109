"""A run that has begun, and small steps for it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from orchestrator.domain.events import RunEvent
from orchestrator.domain.plan import Command, Effect, Pipeline, Plan, Step
from orchestrator.domain.units import Bytes
from orchestrator.engines.zfs import ZfsEngine
from orchestrator.history.store import History
from orchestrator.process.executor import Reader, Writer
from orchestrator.process.stop import StopRequest
from orchestrator.runner.context import ProcessIdentity, RunContext
from orchestrator.runner.run_recorder import RunRecorder, begin_run
from tests.engines.zfs.sides import NOW, job


class Weighing(ZfsEngine):
    """Tells a thousand bytes of every copy."""

    def weigh(self, plan: Plan, reader: Reader) -> Plan:
        stages = tuple(tuple(replace(step, expected=Bytes(1000)) for step in stage) for stage in plan.stages)
        return replace(plan, stages=stages)


def journal(history: History, tmp_path: Path, events: list[RunEvent] | None = None) -> RunRecorder:
    """Of a run of the job photos that has begun."""
    tools = RunContext(
        engine=Weighing(), snapshotter=None, history=history, writer=lambda _: Writer(), clock=lambda: NOW,
        monotonic=lambda: 0.0, chance=lambda: 0.5, notify=(events if events is not None else []).append, stop=StopRequest(),
        state=str(tmp_path), config="", hook_folders=(), hook_environment=(),
        identity=ProcessIdentity(pid=1, started=1, boot="a", host="here"), alive=lambda *_: True, watched=True,
    )  # fmt: skip
    made = begin_run(job(), tools, "asked by hand")
    made.attempt_begun()
    return made


def small(script: str = "true", **more: Any) -> Step:
    command = Command(argv=("sh", "-c", script), effect=Effect.WRITES)
    return Step(action=script, why="", worker="main", work=Pipeline(stages=(command,)), expected=None, **more)
