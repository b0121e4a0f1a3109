"""Small builders of jobs, devices and pools for the pool engine's tests."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from orchestrator.domain.job import Job
from orchestrator.domain.place import Host, Location, Place
from orchestrator.domain.plan import Effect, alone
from orchestrator.engines.contract import Asked
from orchestrator.engines.pool.model import Device, Memory, Scan, Status, Usage, World
from orchestrator.engines.pool.options import PoolOptions
from orchestrator.process.pipeline import Broken, Result, StopReason, broken

RECORDED = Path(__file__).parent / "recorded"
NOW = datetime(2026, 11, 20, 15, 10, 58, tzinfo=UTC)
ROOT = Location(path="tank")
FAR = Location(path="tank", host=Host(name="master", user="root"))
ASKED = Asked(now=NOW, notes="/notes")
GIB = 1 << 30
DAY = 86400.0


def job(source: Location = ROOT, **options: Any) -> Job:
    """A job named watch."""
    return Job(
        name="watch", file="watch.toml", engine="pool", source=source, target=Place(name="watch", location=source),
        options=PoolOptions(**options),
    )  # fmt: skip


def disk(name: str, state: str = "ONLINE", *, role: str = "data", **counts: Any) -> Device:
    """A device; `name` below by-id where it is no path."""
    path = name if name.startswith("/") else f"/dev/disk/by-id/{name}"
    return Device(name=path, kind="disk", role=role, state=state, **counts)


def group(name: str, *below: Device, state: str = "ONLINE", role: str = "data", **counts: Any) -> Device:
    """A mirror, a raidz …"""
    return Device(name=name, kind=name.rpartition("-")[0], role=role, state=state, below=below, **counts)


MIRROR = group("mirror-0", disk("red"), disk("blue"))


def scan(state: str = "finished", *, kind: str = "scrub", ago: float = DAY, **more: Any) -> Scan:
    """A scan that ended, or began, so long ago."""
    then = NOW - timedelta(seconds=ago)
    ended = then if state in ("finished", "canceled") else None
    return Scan(kind=kind, state=state, began=then, ended=ended, **more)


def status(*devices: Device, **more: Any) -> Status:
    """What `zpool status` tells of tank; a sound mirror where no devices are told."""
    sound = Status(
        name="tank", state="ONLINE", says="", action="", scan=scan(), devices=devices or (MIRROR,), errors=0
    )  # fmt: skip
    return replace(sound, **more)


def world(told: Status | None = None, *, used: float = 0.4, root: Location = ROOT, **more: Any) -> World:
    """tank as a look found it, so full."""
    size = 100 * GIB
    taken = round(size * used)
    whole = Usage(name="tank", size=size, used=taken, free=size - taken)
    memory = Memory(total=16 * GIB, arc_most=8 * GIB)
    seen = World(
        root=root, at=NOW, version=(2, 3, 2), guid="7", status=told or status(), whole=whole,
        vdevs=(replace(whole, name="mirror-0"),), settings=(), memory=memory, at_work=(),
    )  # fmt: skip
    return replace(seen, **more)


def usage(name: str, used: float) -> Usage:
    """A vdev that is so full."""
    taken = round(100 * GIB * used)
    return Usage(name=name, size=100 * GIB, used=taken, free=100 * GIB - taken)


def failed(words: str = "", code: int | None = 1, *, stopped: StopReason | None = None) -> Broken:
    """A call of zpool that ended so."""
    pipeline = alone("zpool", "scrub", "tank", effect=Effect.WRITES)
    return broken(pipeline, Result(exits=(code,), last_words=(words,), stopped=stopped))


def sample(name: str) -> bytes:
    """What the look command printed on a real pool: "sound-2.3" on OpenZFS 2.3.9, "sound-2.1" on 2.1.11."""
    return (RECORDED / f"{name}.txt").read_bytes()
