"""The names of the files that a run would copy or remove now, from the same dry run that its survey counts."""

from collections.abc import Iterator

from orchestrator.domain.answers import NOT_READ, unreadable
from orchestrator.domain.job import Job
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Pipeline
from orchestrator.domain.point_contents import PlannedFile
from orchestrator.engines.contract.engine import RunRequest
from orchestrator.engines.rsync import commands
from orchestrator.engines.rsync.options import options_of
from orchestrator.engines.rsync.parse import parse_name
from orchestrator.engines.rsync.survey import (
    PROGRAM,
    command_runner,
    look_at_both,
    newest_copy,
    read_target,
    survey_programs,
)
from orchestrator.process.executor import Reader
from orchestrator.process.pipeline import PipelineFailed


def forecast_files(job: Job, request: RunRequest, reader: Reader) -> Iterator[PlannedFile]:
    """Yield each entry that a run would add, change or remove, as it comes. Raises: OrchestratorError.

    Without a copy all is compared with an empty folder: everything is new.
    """
    run = command_runner(reader)
    _, there = survey_programs(job, run)
    target = read_target(job, run, look_at_both(job, reader)[1])
    newest = newest_copy(job, target, mirror=not options_of(job).points)
    compared = newest or Location(path=f"{request.notes}/empty")
    command = commands.dry_run_command(job, compared, there=there, coarse=newest is not None and target.coarse)
    line = b""
    try:
        with reader.records(Pipeline(stages=(command,)), separator=b"\n") as lines:
            for line in lines:
                if (found := _parse_planned(line)) is not None:
                    yield found
    except NOT_READ as error:
        raise unreadable(PROGRAM, command, line, error) from error
    except PipelineFailed as failed:
        _require_partial(failed)  # what cannot be read is named by the run itself


def list_selected(job: Job, empty: str, reader: Reader) -> Iterator[bytes]:
    """Yield the path of each entry of a source on this machine that the job's patterns let pass. Raises: OrchestratorError.

    `empty`: an empty folder; only rsync knows what a pattern leaves out, and compared with nothing it names all the rest.
    """
    command, line = commands.list_selected_command(job, empty), b""
    try:
        with reader.records(Pipeline(stages=(command,)), separator=b"\n") as lines:
            for line in lines:
                if line.startswith(b"pf:"):
                    path = parse_name(line[3:].partition(b"|")[2].removesuffix(b"/"))
                    yield b"" if path == b"." else path
    except NOT_READ as error:
        raise unreadable(PROGRAM, command, line, error) from error
    except PipelineFailed as failed:
        _require_partial(failed)  # what cannot be read, or is gone, the copy itself has told of


def _require_partial(failed: PipelineFailed) -> None:
    """Require that rsync read all but some entries. Raises: OrchestratorError."""
    from orchestrator.engines.rsync.errors import explain, is_partial  # 5 ms that a run without an error saves

    if not is_partial(failed):
        raise explain(failed) from failed


def _parse_planned(line: bytes) -> PlannedFile | None:
    """Parse one line of a dry run; None where it names no entry that would be added, changed or removed.

    The time of a folder alone is no change, as in the counts of the survey.
    """
    if not line.startswith(b"pf:"):
        return None
    item, size, written = line[3:].split(b"|", 2)
    name, folder = parse_name(written), written.endswith(b"/")
    if name == b"./":
        return None
    path, file = name.rstrip(b"/"), item[1:2] == b"f"
    if item.startswith(b"*deleting"):
        return PlannedFile(path=path, change="removed", folder=folder, bytes=None)
    if item[2:3] == b"+":
        return PlannedFile(path=path, change="added", folder=folder, bytes=int(size) if file else None)
    if item[0:1] in (b">", b"<") and file:
        return PlannedFile(path=path, change="changed", folder=False, bytes=int(size))
    if item[1:2] != b"d" or item[2:].strip(b".") != b"t":
        return PlannedFile(path=path, change="metadata", folder=folder, bytes=None)
    return None
