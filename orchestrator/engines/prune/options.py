"""The keys of a job's [prune] section: the limits of the domain's rules for arrivals."""

from collections.abc import Iterator

from orchestrator.domain.arrival import ArrivalRules
from orchestrator.domain.job import Job, VerifyRules
from orchestrator.domain.place import Location
from orchestrator.domain.source_tree import SourceTree


def mistakes(
    _options: ArrivalRules, source: SourceTree, _: Location, __: VerifyRules
) -> Iterator[tuple[str, str, str]]:
    """Yield mistakes for keys that contradict each other: (key, mistake, expected value)."""
    if source.root.host is not None:
        what = f'"{source.root}" lies on another machine, which alone knows when points came there'
        yield "source", what, "a dataset or folder of this machine; let poolferry run there, too"


def options_of(job: Job) -> ArrivalRules:
    """Return the job's [prune] section. Raises: TypeError when it has none, a mistake in our own code."""
    if not isinstance(job.options, ArrivalRules):
        raise TypeError(f"job {job.name} prunes nothing that came")
    return job.options
