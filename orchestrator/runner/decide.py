"""Guard, then the engine's plan, then what shall stay: one decision for one look. Pure."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from orchestrator.domain.job import Job
from orchestrator.domain.plan import Decision, Refusal
from orchestrator.domain.point import Point
from orchestrator.domain.quick import replace
from orchestrator.engines.contract import Asked, Engine
from orchestrator.planners.guarding import decide_guard
from orchestrator.planners.retention import Decision as Staying
from orchestrator.planners.retention import decide_retention
from orchestrator.runner.folders import with_folders

GROUND = "source-ground"
USED = "target-used"


def decide(job: Job, engine: Engine, world: Any, asked: Asked, folders: Mapping[bytes, int]) -> Decision:
    """What this run does, or why not. Nothing has been written yet. `folders`: what `count_folders` told."""
    return _guard(job, engine, world, asked, folders) or engine.plan(job, world, asked)


def _guard(job: Job, engine: Engine, world: Any, asked: Asked, folders: Mapping[bytes, int]) -> Refusal | None:
    changes = engine.changes(world)
    if changes is None:
        return None
    changes = with_folders(changes, folders)
    device, own = engine.ground(world)
    before = asked.remembered.get(GROUND)
    # Device numbers change with a reboot; what tells an unmounted source is that it was a filesystem of its own.
    moved = before is not None and before.endswith(" mounted") and not own
    if moved:
        changes = replace(changes, device_before=before, device_now=ground(device, own))
    return decide_guard(changes, job.guard, job=job.name, allowed=asked.allowed)


def ground(device: str, own: bool) -> str:
    """What is remembered of the filesystem a source lies on."""
    return f"device {device}" + (" mounted" if own else "")


def staying(points: Sequence[Point], job: Job, *, now: datetime, protected: Mapping[str, str]) -> tuple[Staying, ...]:
    """What becomes of each point under [keep], with the reason."""
    return decide_retention(points, job.keep, now=now, protected=protected)


def going(decisions: Sequence[Staying]) -> tuple[Staying, ...]:
    """Those that are removed."""
    return tuple(decision for decision in decisions if not decision.keep)


def protect(sound: Sequence[str], busy: Sequence[str]) -> dict[str, str]:
    """Points that stay whatever [keep] says, each with the reason: the newest sound one, and those being read."""
    newest = {max(sound): "the newest point that a reading found sound"} if sound else {}
    return newest | dict.fromkeys(busy, "a restore or a reading is using it")


def retaining(job: Job, now: datetime) -> Callable[[tuple[tuple[str, datetime], ...]], frozenset[str]] | None:
    """Which names [keep] would keep on the target, for those that catch up; None: it keeps all."""
    if job.keep.everything:
        return None

    def retain(dated: tuple[tuple[str, datetime], ...]) -> frozenset[str]:
        root = job.target.location
        points = [Point(name=name, taken=taken, tree=root, manifest=None) for name, taken in dated]
        return frozenset(each.point.name for each in staying(points, job, now=now, protected={}) if each.keep)

    return retain
