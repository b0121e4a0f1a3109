"""The bases of the next copy into a pool that is not connected, as recorded by the source's bookmarks."""

from orchestrator.domain.answers import text_lines, understand
from orchestrator.domain.job import Job
from orchestrator.domain.plan import Effect, Pipeline, single_command
from orchestrator.domain.rotation import IncrementBase
from orchestrator.domain.units import Bytes
from orchestrator.engines.zfs.errors.explain import explain
from orchestrator.engines.zfs.holds.report import copies_dataset
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.plan.hold_names import ReplicationTargetId, parse_cursor_bookmark, replication_target_id
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import pipeline_failure


def source_pipeline(job: Job) -> Pipeline:
    """Build the pipeline that lists all datasets and bookmarks of a job's source."""
    depth = ("-r",) if options_of(job).recursive else ("-d", "1")
    return single_command(
        "zfs", "list", "-Hp", *depth, "-t", "filesystem,volume,bookmark", "-o", "name,used", job.source.path,
        effect=Effect.READS, host=job.source.host,
    )  # fmt: skip


def survey_bases(job: Job, pool_guid: int, reader: Reader) -> tuple[IncrementBase, ...]:
    """Return for each source dataset whether a bookmark records the pool's newest snapshot. Raises: OrchestratorError."""
    pipeline = source_pipeline(job)
    listed = reader.read(pipeline)
    if not listed.well:
        raise explain(pipeline_failure(pipeline, listed, reader.ssh_options))
    return understand("zfs", pipeline.stages[0], listed.stdout, lambda text: parse_bases(text, job, pool_guid))


def parse_bases(text: bytes, job: Job, pool_guid: int) -> tuple[IncrementBase, ...]:
    """Parse the bases from the listing of `source_pipeline`."""
    rows = [line.split("\t") for line in text_lines(text)]
    wanted = replication_target_id(pool_guid, job.target.location)
    marks = (name.partition("#") for name, _ in rows if "#" in name)
    kept = {
        name
        for name, _, mark in marks
        if (told := parse_cursor_bookmark(mark)) and told in (wanted, ReplicationTargetId(pool=pool_guid))
    }
    return tuple(
        IncrementBase(
            dataset=name, snapshot=False, bookmark=name in kept, kept=None,
            whole=Bytes(int(used)) if used.isdigit() else None,
        )
        for name, used in rows
        if "#" not in name and copies_dataset(job, name, job.source)
    )  # fmt: skip
