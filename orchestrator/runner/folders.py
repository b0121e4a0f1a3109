"""How much each top folder held before, from the newest point's manifest: only a limit per folder needs to know.

Reads.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from orchestrator.domain.changes import Changes
from orchestrator.domain.command import Pipeline
from orchestrator.domain.errors import OrchestratorError
from orchestrator.domain.job import Guard, Job
from orchestrator.domain.place import Location
from orchestrator.domain.quick import replace
from orchestrator.engines.contract import Engine
from orchestrator.process.executor import Reader, broken
from orchestrator.runner.tools import of_trees

_LARGEST = 1 << 30  # bytes of a manifest that is fetched from elsewhere


def count_folders(job: Job, engine: Engine, world: Any, reader: Reader) -> Mapping[bytes, int]:
    """Entries below each top folder of the newest point; nothing where no limit asks, nothing changed or it cannot be told."""
    changes, newest = engine.changes(world), engine.newest(world)
    if changes is None or not changes.folders or not _asked(job.guard) or newest is None or newest.manifest is None:
        return {}
    try:
        return _count(newest.manifest, engine, reader)
    except (OrchestratorError, OSError):
        return {}  # the guard then judges by the least there can have been


def with_folders(changes: Changes, before: Mapping[bytes, int]) -> Changes:
    """The changes with what each folder held."""
    if not before:
        return changes
    folders = {top: replace(found, before=before.get(top, 0)) for top, found in changes.folders.items()}
    return replace(changes, folders=folders)


def _asked(guard: Guard) -> bool:
    limits = (guard.max_deleted_per_folder, guard.max_changed_per_folder)
    return any(limit is not None and limit.percent for limit in limits)


def _count(manifest: Location, engine: Engine, reader: Reader) -> Mapping[bytes, int]:
    if manifest.host is None:
        return _count_here(manifest.path)
    pipeline = Pipeline(stages=of_trees(engine).fetch(manifest, "").stages)
    result = reader.read(pipeline, limit=_LARGEST)
    if not result.well:
        raise engine.explain(broken(pipeline, result, reader.ssh_options))
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(result.stdout)
        file.flush()
        return _count_here(file.name)


def _count_here(path: str) -> Mapping[bytes, int]:
    from orchestrator.verify.manifest import read_manifest

    tops = (entry.path.partition(b"/") for entry in read_manifest(path)[1])
    return Counter(top for top, slash, _ in tops if slash)
