"""The keys of a job's [rsync] section."""

from collections.abc import Iterator

from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import Job, VerifyRules, config_key
from orchestrator.domain.place import Location
from orchestrator.domain.source_tree import SourceTree
from orchestrator.domain.units import Bytes, parse_size

COMPRESSIONS = ("auto", "none", "lz4", "zstd", "zlib")


@dataclass(frozen=True, slots=True, kw_only=True)
class RsyncOptions:
    """The options of an rsync copy for one job."""

    excludes: tuple[str, ...] = config_key(
        "patterns that are left out, in rsync's own syntax", default=(), example='["*.tmp", "/cache/"]'
    )
    points: bool = config_key("each change makes a restore point; false: one plain mirror of the source", default=True)
    delete: bool = config_key("consent: a mirror removes what the source no longer has", default=False)
    in_place: bool = config_key("changed blocks are written into the file itself; only for a mirror", default=False)
    hard_links: bool = config_key("names of one file stay names of one file", default=True)
    acls: bool = config_key("access control lists", default=True)
    xattrs: bool = config_key("extended attributes", default=True)
    devices: bool = config_key("device nodes, sockets and fifos", default=True)
    owners: bool = config_key("owners and groups; false: the consent to lose them", default=True)
    modes: bool = config_key("access modes; false: the consent to lose them", default=True)
    fake_super: bool = config_key(
        "a target whose user is not root, or whose filesystem has no owners, keeps owners, modes, devices and attributes of root in attributes of users",
        default=False,
    )
    numeric_ids: bool = config_key("owners by number, so that they survive a rebuilt host", default=True)
    sparse: bool = config_key("long runs of zeros become holes", default=True)
    one_file_system: bool = config_key("stay on the source's own filesystem", default=True)
    compress: str = config_key(
        "over ssh: the first of lz4, zstd, zlib that both sides know, or the one named",
        default="auto",
        choices=COMPRESSIONS,
    )
    checksum: bool = config_key("compare contents instead of size and time; reads both sides whole", default=False)
    whole_look: int = config_key(
        "every so many runs rsync compares everything; in those between, what a listing shows as changed",
        default=10,
        least=1,
    )
    parallel: int | None = config_key(
        "rsyncs side by side; without it: as many as the two places bear, which `plan` tells", default=None, least=1
    )
    most_holes: Bytes | None = config_key(
        "so much may the holes of one owner's files that a run copies be together; those beyond are left out and named; without it: as "
        "much as the target's filesystem is large",
        default=None,
        parse=parse_size,
        example="20T",
    )
    left_out: str = (
        ""  # no key: a local file with the rules of what one run leaves out, each ended by NUL; empty: nothing
    )

    @property
    def hides(self) -> bool:
        """Return True when some of the source is left out: by the job's patterns, or by this run."""
        return bool(self.excludes or self.left_out)


def mistakes(
    options: RsyncOptions, source: SourceTree, target: Location, verify: VerifyRules
) -> Iterator[tuple[str, str, str]]:
    """Yield mistakes for keys that contradict each other: (key, mistake, expected value)."""
    if options.excludes:
        from orchestrator.engines.rsync.pattern_mistakes import find_pattern_mistakes

        for number, what, wanted in find_pattern_mistakes(options.excludes, source):
            yield f"rsync.excludes[{number}]", what, wanted
    if options.in_place and options.points:
        yield "rsync.in-place", "would write into files that older points share", "points = false, or no in-place"
    if options.in_place and options.sparse:
        yield "rsync.in-place", "together with sparse it rewrites unchanged data", "sparse = false"
    if options.delete and options.points:
        yield (
            "rsync.delete",
            "restore points never lose what the source lost; it is only for a mirror",
            "points = false, or no delete",
        )
    if options.parallel and options.parallel > 1 and not options.points:
        yield "rsync.parallel", "a mirror is written by one rsync", "parallel = 1, or points"
    if options.fake_super and target.host is None and source.root.host is not None:
        yield (
            "rsync.fake-super",
            f"is for what this machine sends: from {source.root.host} it is the sender there that would be told of it",
            "a source on this machine, a job on that one, or no fake-super",
        )
    if options.fake_super and verify.digest == "blake3":
        yield "verify.digest", "cannot be made where fake-super keeps owners and modes", "xxh128 or sha256"
    if options.fake_super and options.parallel and options.parallel > 1:
        yield (
            "rsync.parallel",
            "lists folders that rsync then gives attributes which no target with fake-super may get",
            "parallel = 1, or no fake-super",
        )
    elif verify.digest == "blake3" and target.host:
        yield (
            "verify.digest",
            f"blake3 cannot be made on {target.host}, so its points could never be verified",
            "xxh128 or sha256",
        )
    if source.root.host and target.host:
        yield (
            "source",
            "rsync carries data between this machine and one other, not between two others",
            "one side without ssh://",
        )


def as_lane(job: Job, number: int) -> Job:
    """Return the job by which parallel copy `number` is made: the first goes through the run's connection, each other through one of its own.

    Why: one core encrypts a connection, and who asks for several rsyncs asks for their speed. The owner's own ControlPath wins.
    """
    alone = (*job.pipe.ssh_options, "-oControlPath=none") if number > 1 else job.pipe.ssh_options
    return replace(job, pipe=replace(job.pipe, ssh_options=alone))


def options_of(job: Job) -> RsyncOptions:
    """Return the job's own section. Raises: TypeError for a job of another engine, a mistake in our own code."""
    if not isinstance(job.options, RsyncOptions):
        raise TypeError(f"job {job.name} is no rsync job")
    return job.options
