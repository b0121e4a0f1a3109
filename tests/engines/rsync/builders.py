"""Small builders of jobs, worlds and failures for the rsync engine's tests."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from orchestrator.domain.job import Job
from orchestrator.domain.names import parse_point_name
from orchestrator.domain.place import Host, Location, Place
from orchestrator.domain.plan import Effect, single_command
from orchestrator.domain.point import Changes, RestorePoint
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync.model import PartialFile, RsyncProgram, RsyncSurvey, SourceSurvey, TargetSurvey
from orchestrator.engines.rsync.options import RsyncOptions
from orchestrator.process.pipeline import PipelineFailed, PipelineResult, StopReason, pipeline_failure

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
NAME = "2026-03-04T050607Z"
OLD = "2026-03-03T050607Z"
HOST = Host(name="backup", user="root")
ROOT = Location(path="/backup/photos")
THERE = Location(path="/backup/photos", host=HOST)
NEW = RsyncProgram(
    version=(3, 5, 0), protocol=32, checksums=("xxh128", "xxh3", "md5"), compressions=("zstd", "lz4", "zlibx", "zlib")
)


def program(
    *version: int, checksums: str = "xxh128 xxh3 md5", compressions: str = "zstd lz4 zlibx zlib"
) -> RsyncProgram:
    """An rsync of that version; before 3.2 nothing can be chosen."""
    young = version >= (3, 2)
    return RsyncProgram(
        version=version,
        protocol=31,
        checksums=tuple(checksums.split()) if young else (),
        compressions=tuple(compressions.split()) if young else (),
    )


def job(*, source: Location | None = None, target: Location = ROOT, **options: Any) -> Job:
    """A job named photos."""
    return Job(
        name="photos",
        file="photos.toml",
        engine="rsync",
        source=source or Location(path="/srv/photos"),
        target=Place(name="backup", location=target),
        options=RsyncOptions(**options),
    )


def mirror(**options: Any) -> Job:
    """The same as a mirror."""
    return job(points=False, **options)


ASKED = RunRequest(now=NOW, notes="/notes")
SOURCE = SourceSurvey(exists=True, directory=True, device=1, mounted=False, empty=False)
UNCHANGED = Changes(entries_before=9, files_before=7, entries_now=9, deleted=0, changed=0, created=0, moving=0)
CHANGED = replace(UNCHANGED, changed=1, created=2, deleted=3, moving=2048)
FIRST = Changes(
    entries_before=None, files_before=None, entries_now=9, deleted=0, changed=0, created=9, moving=4096
)  # fmt: skip
EMPTY = TargetSurvey(
    exists=True, parent=True, mounted=True, owner=None, coarse=False, points=(), damaged=(), work=False, half=(),
    litter=(), foreign=(), free_bytes=1 << 40, free_inodes=1 << 20, latest=None,
)  # fmt: skip


def point(name: str = OLD, root: Location = ROOT) -> RestorePoint:
    """A whole point."""
    manifest = root / f"points/{name}.manifest.gz"
    return RestorePoint(name=name, taken=parse_point_name(name), tree=root / f"points/{name}", manifest=manifest)


USED = replace(EMPTY, owner="photos", points=(point(),), latest=OLD)
MIRRORED = replace(EMPTY, owner="photos", mirrored=NOW, foreign=("a",))


def world(target: TargetSurvey = USED, changes: Changes | None = CHANGED, **more: Any) -> RsyncSurvey:
    """Return what was seen; both sides are this machine."""
    return RsyncSurvey(**{"here": None, "there": None, "source": SOURCE, "target": target, "changes": changes, **more})


def half(path: str, have: int, wanted: int | None, *, orphan: bool = False) -> PartialFile:
    """A half-copied file, in a partial directory or as an orphaned temporary."""
    folder, slash, name = path.rpartition("/")
    lies = f"{folder}{slash}.{name}.AbCdEf" if orphan else f"{folder}{slash}.~poolferry-partial~/{name}"
    return PartialFile(path=path.encode(), lies=lies.encode(), orphan=orphan, have=have, wanted=wanted)


def failed(words: str = "", code: int | None = 23, *, stopped: StopReason | None = None) -> PipelineFailed:
    """A copy that ended so."""
    pipeline = single_command("rsync", "--archive", "/a/", "/b/", effect=Effect.WRITES)
    return pipeline_failure(pipeline, PipelineResult(exits=(code,), last_output=(words,), stopped=stopped))


def cut_world(cut: tuple[PartialFile, ...]) -> RsyncSurvey:
    """Return what an interrupted run left."""
    return world(replace(USED, work=True, half=cut))


ACCOUNT = b"""
Number of files: 25 (reg: 16, dir: 4, link: 2, dev: 2, special: 1)
Number of created files: 7 (reg: 4, dir: 1, link: 1, dev: 1)
Number of deleted files: 3 (reg: 2, dir: 1)
Number of regular files transferred: 11
Total file size: 38 bytes
Total transferred file size: 19 bytes
Literal data: 18 bytes
Matched data: 1 bytes
File list size: 0
File list generation time: 0.001 seconds
File list transfer time: 0.000 seconds
Total bytes sent: 614
Total bytes received: 125

sent 614 bytes  received 125 bytes  1478.00 bytes/sec
total size is 38  speedup is 0.05 (DRY RUN)
"""
