"""Small programs in the middle of something larger, each run to its end. Changes things."""

import os

from orchestrator.domain.command import Pipeline
from orchestrator.domain.place import Location
from orchestrator.process.executor import Writer, broken
from orchestrator.runner.journal import Journal


def run(pipeline: Pipeline, journal: Journal, writer: Writer) -> None:
    """Runs a small pipeline to its end. Raises: OrchestratorError."""
    result = writer.stream(pipeline, stop=journal.tools.stop)
    if not result.well:
        raise journal.tools.engine.explain(broken(pipeline, result, writer.ssh_options))


def fetched(file: Location, journal: Journal, writer: Writer, notes: str) -> str:
    """The local path of a small file of the target, brought here when it lies elsewhere."""
    if file.host is None:
        return file.path
    os.makedirs(notes, exist_ok=True)
    local = f"{notes}/fetched.gz"
    if os.path.exists(local):
        os.unlink(local)
    run(journal.tools.trees.fetch(file, local), journal, writer)
    return local
