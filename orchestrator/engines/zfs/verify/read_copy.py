"""Full reads of a copy without a mount and without its key: each dataset with its snapshots, sent to /dev/null.

Why not a scrub: if it has not ended when the pool is exported, it starts again from the beginning (openzfs #9393).
"""

from orchestrator.domain.answers import text_lines
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.domain.units import Bytes
from orchestrator.engines.contract.comparison import ReadableDataset
from orchestrator.engines.zfs.commands import commands
from orchestrator.engines.zfs.commands.commands import CommandHost
from orchestrator.engines.zfs.options import options_of
from orchestrator.engines.zfs.survey.survey import parse_result, run_read_command
from orchestrator.process.executor import LONGEST_LISTING, Reader


def listing_command(place: Location, where: CommandHost) -> Command:
    """Build the command that lists a copy's datasets with their sizes, and all their snapshots, older ones first."""
    return commands.zfs_command(
        "list", "-Hp", "-r", "-t", "filesystem,volume,snapshot", "-s", "createtxg", "-o",
        "name,usedbydataset,usedbysnapshots", place.path, effect=Effect.READS, where=where,
    )  # fmt: skip


def read_command(words: tuple[str, ...], where: CommandHost) -> Command:
    """Build the command that reads a stream there. `words`: of the send, which asks for it as it lies, without a key and without decompression (-w)."""
    return commands.script_command("read-copy.sh", *words, effect=Effect.READS, where=where)


def survey_readable_datasets(job: Job, reader: Reader) -> tuple[ReadableDataset, ...]:
    """Return the datasets of a copy that have a snapshot. Raises: OrchestratorError."""
    command = listing_command(job.target.location, CommandHost(host=job.target.location.host))
    listed = run_read_command(reader, command, patience=LONGEST_LISTING)
    return parse_result(command, listed, lambda: parse_readable_datasets(listed.stdout, job))


def parse_readable_datasets(text: bytes, job: Job) -> tuple[ReadableDataset, ...]:
    """Parse the datasets that have a snapshot from the listing of `listing_pipeline`."""
    rows = [line.split("\t") for line in text_lines(text)]
    sizes = {name: sum(int(size) for size in told if size.isdigit()) for name, *told in rows if "@" not in name}
    snapshots: dict[str, list[str]] = {name: [] for name in sizes}
    for name, *_ in rows:
        if "@" in name:
            snapshots[name.partition("@")[0]].append(name)
    return tuple(
        ReadableDataset(name=name, size=Bytes(sizes[name]), reads=tuple(_read(each, job) for each in _streams(own)))
        for name, own in snapshots.items()
        if own
    )


def _streams(own: list[str]) -> tuple[tuple[str, ...], ...]:
    """Return the streams that read each block once: the oldest snapshot in full, then the changes up to the newest."""
    first, last = own[0], own[-1]
    return ((first,),) if first == last else ((first,), ("-I", first, last))


def _read(what: tuple[str, ...], job: Job) -> Pipeline:
    """Build the pipeline that reads a stream."""
    where = CommandHost(host=job.target.location.host, sudo=options_of(job).sudo)
    return Pipeline(stages=(read_command(("send", "-w", *what), where),))
