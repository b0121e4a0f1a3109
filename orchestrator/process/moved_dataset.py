"""A dataset that is not where it was: its name now, by its guid, in the pools that are imported on that machine."""

import json
from collections.abc import Iterable

from orchestrator.domain.answers import split_lines, text_lines
from orchestrator.domain.errors import OrchestratorError, SourceMissing, SourceRenamed, Stopped
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job
from orchestrator.domain.names import check_zfs_names, is_set_aside, printable_word, shorten
from orchestrator.domain.place import Host, Location
from orchestrator.domain.plan import Command, Effect, Pipeline
from orchestrator.domain.renamed_dataset import RenamedDataset, give_name_back, ways_on
from orchestrator.domain.source_identity import parse_identity
from orchestrator.domain.units import Seconds
from orchestrator.process import scripts
from orchestrator.process.executor import Reader

_PATIENCE = Seconds(120)
_LIMIT = 1 << 20
_ABOVE, _WITHIN, _END = "=above", "=within", "=end"


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedListing:
    """The places of a dataset: the guid of its pool, and its name, for each; the other fields as of a RenamedDataset."""

    places: tuple[tuple[int, str], ...]
    above: str
    within: str


def find_datasets_command(guid: int, pool_guid: int, former: str, host: Host | None, *, within: str = "") -> Command:
    """Build the command that looks for a dataset by its guid; `within`: only there and below."""
    words = (str(guid), str(pool_guid), former, *((within,) if within else ()))
    return scripts.script_command("process", "find-datasets.sh", *words, effect=Effect.READS, host=host)


def find_moved_dataset(guid: int, pool_guid: int, former: Location, reader: Reader) -> RenamedDataset:
    """Return where the dataset lies now.

    `guid`: 0: the pool itself is meant; `pool_guid`: of the pool that it lies in; 0: any; `former`: where it was.
    """
    pipeline = Pipeline(stages=(find_datasets_command(guid, pool_guid, former.path, former.host),))
    try:
        result = reader.read(pipeline, limit=_LIMIT, timeout=_PATIENCE)
        if not result.well:
            said = (line for text in result.last_output for line in split_lines(text) if line.strip())
            return RenamedDataset(unseen=shorten(printable_word(next(said, "the look there ended badly"))))
        told = parse_moved(text_lines(result.stdout))
    except Stopped:
        raise
    except OrchestratorError as error:
        return RenamedDataset(unseen=error.why)
    except ValueError as error:
        return RenamedDataset(unseen=str(error))
    names = [name for pool, name in told.places if pool_guid in (0, pool) and not is_set_aside(name)]
    name = names[0] if len(names) == 1 else ""
    return RenamedDataset(name=name, above=told.above, within=told.within)


def parse_moved(lines: Iterable[str]) -> MovedListing:
    """Parse where a dataset lies, and what lies above its former name. Raises: ValueError."""
    *told, last = tuple(lines) or ("",)
    end, _, within = last.partition("\t")
    if last != _END and (end != _WITHIN or not within):
        raise ValueError("the answer ended too early")
    split = [line.partition("\t") for line in told]
    above = next((name for word, _, name in split if word == _ABOVE), "")
    places = tuple((int(pool), name) for pool, _, name in split if pool != _ABOVE)
    check_zfs_names((above, within, *(name for _, name in places)))
    return MovedListing(places=places, above=above, within=within)


def explain_missing_source(
    job: Job, remembered: str, error: SourceMissing, reader: Reader, *, also: str = ""
) -> SourceMissing:
    """Return the error of a source that is not there: a SourceRenamed, where what the last good run saw has another name now.

    `remembered`: the identity of the source at that run; empty: there was none. `also`: what else is to be changed for the other name.
    """
    known = parse_identity(remembered)
    if known is None or known.root != str(job.source) or not (known.dataset or known.pool):
        return error
    found = find_moved_dataset(known.dataset, known.pool, job.source, reader)
    if not found.name:
        return error
    (before, _, below), (pool, _, rest) = job.source.path.partition("/"), found.name.partition("/")
    why = f"the source {job.source} is called {found.name} now, by its guid"
    if not below:
        why = f"the pool {before} is imported as {pool} now, by its guid"
    elif below == rest:
        why = f"the pool {before} is imported as {pool} now, so the source {job.source} is not there"
    line = f"source = {json.dumps(str(Location(path=found.name, host=job.source.host)))}"
    return SourceRenamed(
        why,
        evidence=error.evidence,
        hint=ways_on(
            job,
            found.name,
            f"write {line} into {job.file}{also}",
            give_name_back(job.source.path, found, job.source.host),
        ),
    )
