"""Full reads of a copy without a mount and without its key: each dataset with its snapshots, sent to /dev/null.

Why not a scrub: if it has not ended when the pool is exported, it starts again from the beginning (openzfs #9393).
"""

from orchestrator.domain.answers import text_lines, understand
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Command, Effect, Pipeline, single_command
from orchestrator.domain.units import Bytes
from orchestrator.engines.contract.comparison import ReadableDataset
from orchestrator.engines.zfs.errors.explain import explain
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import pipeline_failure


def listing_pipeline(job: Job) -> Pipeline:
    """Build the pipeline that lists a copy's datasets with their sizes, and all their snapshots, older ones first."""
    place = job.target.location
    return single_command(
        "zfs", "list", "-Hp", "-r", "-t", "filesystem,volume,snapshot", "-s", "createtxg", "-o",
        "name,usedbydataset,usedbysnapshots", place.path, effect=Effect.READS, host=place.host,
    )  # fmt: skip


def survey_readable_datasets(job: Job, reader: Reader) -> tuple[ReadableDataset, ...]:
    """Return the datasets of a copy that have a snapshot. Raises: OrchestratorError."""
    pipeline = listing_pipeline(job)
    listed = reader.read(pipeline)
    if not listed.well:
        raise explain(pipeline_failure(pipeline, listed, reader.ssh_options))
    return understand("zfs", pipeline.stages[0], listed.stdout, lambda text: parse_readable_datasets(text, job))


def parse_readable_datasets(text: bytes, job: Job) -> tuple[ReadableDataset, ...]:
    """Parse the datasets that have a snapshot from the listing of `listing_pipeline`."""
    rows = [line.split("\t") for line in text_lines(text)]
    sizes = {name: sum(int(size) for size in told if size.isdigit()) for name, *told in rows if "@" not in name}
    snapshots: dict[str, list[str]] = {name: [] for name in sizes}
    for name, *_ in rows:
        if "@" in name:
            snapshots[name.partition("@")[0]].append(name)
    return tuple(
        ReadableDataset(name=name, size=Bytes(sizes[name]), reads=tuple(_reading(each, job) for each in _streams(own)))
        for name, own in snapshots.items()
        if own
    )


def _streams(own: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return the streams that read each block once: the oldest snapshot in full, then the changes up to the newest."""
    first, last = own[0], own[-1]
    return ((first,),) if first == last else ((first,), ("-I", first, last))


def _reading(what: tuple[str, ...], job: Job) -> Pipeline:
    """Build the pipeline that reads a stream. -w: as stored on disk, without a key and without decompression."""
    host = job.target.location.host
    send = Command(argv=("zfs", "send", "-w", *what), effect=Effect.READS, host=host)
    nobody = Command(argv=("dd", "of=/dev/null", "bs=1M", "status=none"), effect=Effect.READS, host=host)
    return Pipeline(stages=(send, nobody))
