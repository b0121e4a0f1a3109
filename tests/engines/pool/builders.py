"""Small builders of jobs, devices and pools for the pool engine's tests."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from orchestrator.domain.job import Job
from orchestrator.domain.place import Host, Location, Place
from orchestrator.domain.plan import Effect, single_command
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.pool.model import MemoryUsage, PoolScan, PoolStatus, PoolSurvey, SpaceUsage, Vdev
from orchestrator.engines.pool.options import PoolOptions
from orchestrator.process.pipeline import PipelineFailed, PipelineResult, StopReason, pipeline_failure

RECORDED = Path(__file__).parent / "recorded"
NOW = datetime(2026, 11, 20, 15, 10, 58, tzinfo=UTC)
ROOT = Location(path="tank")
FAR = Location(path="tank", host=Host(name="master", user="root"))
ASKED = RunRequest(now=NOW, notes="/notes")
GIB = 1 << 30
DAY = 86400.0


def job(source: Location = ROOT, **options: Any) -> Job:
    """A job named watch."""
    return Job(
        name="watch", file="watch.toml", engine="pool", source=source, target=Place(name="watch", location=source),
        options=PoolOptions(**options),
    )  # fmt: skip


def disk(name: str, state: str = "ONLINE", *, role: str = "data", **counts: Any) -> Vdev:
    """A device; `name` below by-id where it is no path."""
    path = name if name.startswith("/") else f"/dev/disk/by-id/{name}"
    return Vdev(name=path, kind="disk", role=role, state=state, **counts)


def group(name: str, *below: Vdev, state: str = "ONLINE", role: str = "data", **counts: Any) -> Vdev:
    """A mirror, a raidz …"""
    return Vdev(name=name, kind=name.rpartition("-")[0], role=role, state=state, below=below, **counts)


MIRROR = group("mirror-0", disk("red"), disk("blue"))


def scan(state: str = "finished", *, kind: str = "scrub", ago: float = DAY, **more: Any) -> PoolScan:
    """A scan that ended, or began, so long ago."""
    then = NOW - timedelta(seconds=ago)
    ended = then if state in ("finished", "canceled") else None
    return PoolScan(kind=kind, state=state, began=then, ended=ended, **more)


def status(*devices: Vdev, **more: Any) -> PoolStatus:
    """Return what `zpool status` tells of tank; a sound mirror where no devices are told."""
    sound = PoolStatus(
        name="tank", state="ONLINE", says="", action="", scan=scan(), devices=devices or (MIRROR,), errors=0
    )  # fmt: skip
    return replace(sound, **more)


def world(told: PoolStatus | None = None, *, used: float = 0.4, root: Location = ROOT, **more: Any) -> PoolSurvey:
    """tank as a look found it, so full."""
    size = 100 * GIB
    taken = round(size * used)
    whole = SpaceUsage(name="tank", size=size, used=taken, free=size - taken)
    memory = MemoryUsage(total=16 * GIB, arc_most=8 * GIB)
    seen = PoolSurvey(
        root=root, at=NOW, version=(2, 3, 2), guid="7", status=told or status(), whole=whole,
        vdevs=(replace(whole, name="mirror-0"),), settings=(), memory=memory, at_work=(),
    )  # fmt: skip
    return replace(seen, **more)


def usage(name: str, used: float) -> SpaceUsage:
    """A vdev that is so full."""
    taken = round(100 * GIB * used)
    return SpaceUsage(name=name, size=100 * GIB, used=taken, free=100 * GIB - taken)


def failed(words: str = "", code: int | None = 1, *, stopped: StopReason | None = None) -> PipelineFailed:
    """A call of zpool that ended so."""
    pipeline = single_command("zpool", "scrub", "tank", effect=Effect.WRITES)
    return pipeline_failure(pipeline, PipelineResult(exits=(code,), last_output=(words,), stopped=stopped))


def sample(name: str) -> bytes:
    """Return what the look command printed on a real pool: "sound-2.3" on OpenZFS 2.3.9, "sound-2.1" on 2.1.11."""
    return (RECORDED / f"{name}.txt").read_bytes()
