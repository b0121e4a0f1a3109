"""The keys of a job's [pool] section."""

from collections.abc import Iterator

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job, Limit, VerifyRules, config_key, parse_limit
from orchestrator.domain.place import Location
from orchestrator.domain.source_tree import SourceTree
from orchestrator.domain.units import Seconds, parse_duration
from orchestrator.engines.pool.model import ADVICE


def parse_share(text: str) -> Limit:
    """Parse a share such as "90%". Raises: ValueError."""
    try:
        limit = parse_limit(text)
    except ValueError:
        limit = None
    if limit is None or not limit.percent:
        raise ValueError('a share such as "90%"')
    return limit


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolOptions:
    """The options of a job that watches a pool: its limits, and whether it scrubs the pool."""

    scrub_every: Seconds | None = config_key(
        "start a scrub when the last one is older than this, and nothing is sent or received there; without it, only watch",
        default=None, parse=parse_duration, example="30d",
    )  # fmt: skip
    scrub_late: Seconds = config_key(
        "warn when the last whole scrub is older than this",
        default=Seconds(40 * 86400),
        parse=parse_duration,
        example="70d",
    )
    capacity_warn: Limit = config_key(
        "warn when the pool is so full", default=Limit(number=90, percent=True), parse=parse_share, example="80%"
    )
    capacity_fail: Limit = config_key(
        "fail when the pool is so full", default=Limit(number=97, percent=True), parse=parse_share, example="95%"
    )
    accept: tuple[str, ...] = config_key(
        "advice that is not given, by its word", default=(), choices=ADVICE, example='["device-names", "arc"]'
    )
    may_be_away: bool = config_key("a pool that is not imported is no failure: the run waits for it", default=False)


def mistakes(options: PoolOptions, source: SourceTree, _: Location, __: VerifyRules) -> Iterator[tuple[str, str, str]]:
    """Yield mistakes for keys that contradict each other: (key, mistake, expected value)."""
    if "/" in source.root.path:
        pool = source.root.path.partition("/")[0]
        yield "source", f'"{source.root.path}" is a dataset', f'a whole pool, such as "{pool}"'
    if options.capacity_fail.number < options.capacity_warn.number:
        what = f"{options.capacity_fail} comes before capacity-warn = {options.capacity_warn}"
        yield "pool.capacity-fail", what, "a share that is not below capacity-warn"
    if options.scrub_every is not None and options.scrub_late < options.scrub_every:
        yield "pool.scrub-late", "is before scrub-every", "more than scrub-every, as a scrub takes its time"


def options_of(job: Job) -> PoolOptions:
    """Return the job's [pool] section. Raises: TypeError when it has none, a mistake in our own code."""
    if not isinstance(job.options, PoolOptions):
        raise TypeError(f"job {job.name} watches no pool")
    return job.options
