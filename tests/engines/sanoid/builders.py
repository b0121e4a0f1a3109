"""Small builders of jobs and worlds for the sanoid engine's tests."""

from datetime import UTC, datetime
from typing import Any

from orchestrator.domain.job import Job, KeepRules, SnapshotRules
from orchestrator.domain.place import Host, Location, Place
from orchestrator.domain.plan import Effect, single_command
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.sanoid.model import SanoidSnapshot, SanoidSurvey
from orchestrator.engines.sanoid.options import SanoidOptions
from orchestrator.process.pipeline import PipelineFailed, PipelineResult, StopReason, pipeline_failure

NOW = datetime(2026, 11, 20, 15, 10, 58, tzinfo=UTC)  # a Friday
HOST = Host(name="master", user="root")
ROOT = Location(path="tank/photos")
FAR = Location(path="tank/photos", host=HOST)
COPY = Location(path="vault/replicas/photos")
GUID = 41
FOLDER = "/state/sanoid/photos"
ASKED = RunRequest(now=NOW, notes="/notes")


def job(
    snapshots: SnapshotRules | None = None, *, source: Location = ROOT, copy: Location = COPY, keep: KeepRules | None = None,
    **options: Any,
) -> Job:  # fmt: skip
    """A job named photos."""
    return Job(
        name="photos", file="photos.toml", engine="sanoid", source=source, target=Place(name="backup", location=copy),
        options=SanoidOptions(**options), keep=keep or KeepRules(), snapshots=snapshots,
    )  # fmt: skip


def taken(kind: str, *told: int) -> SanoidSnapshot:
    """A snapshot of that kind, taken then (UTC)."""
    at = datetime(*told, tzinfo=UTC)  # type: ignore[misc, arg-type]
    return SanoidSnapshot(name=f"autosnap_{at:%Y-%m-%d_%H:%M:%S}_{kind}", kind=kind, at=at)


def world(
    *snapshots: SanoidSnapshot, below: tuple[str, ...] = (), root: Location = ROOT, at: datetime = NOW
) -> SanoidSurvey:
    """The source with these snapshots, and these datasets below its root."""
    names = (root.path, *(f"{root.path}/{name}" for name in below))
    return SanoidSurvey(
        root=root, at=at, guid=GUID, datasets=names, snapshots=tuple(sorted(snapshots, key=lambda each: each.at))
    )


def failed(words: str = "", code: int | None = 70, *, stopped: StopReason | None = None) -> PipelineFailed:
    """A call of sanoid that ended so."""
    pipeline = single_command("sh", "-c", "sanoid --take-snapshots", effect=Effect.WRITES)
    return pipeline_failure(pipeline, PipelineResult(exits=(code,), last_output=(words,), stopped=stopped))
