"""The keys of a job's [zfs] section."""

from collections.abc import Iterator

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Job, VerifyRules, config_key
from orchestrator.domain.place import Location
from orchestrator.domain.source_tree import SourceTree
from orchestrator.domain.units import Seconds, parse_duration

RAW = ("auto", "yes", "no")
CATCH_UP = ("all", "kept", "newest")
TAKE_OVER = ("ask", "yes", "no")
CONSENTS = ("rollback",)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZfsOptions:
    """The options for the replication of one job's datasets."""

    name: str | None = config_key(
        "what the copy is called below the place; the source's last part when not given", default=None, example="photos"
    )
    recursive: bool = config_key("with all datasets below the source", default=True)
    exclude: tuple[str, ...] = config_key(
        "datasets below the source that are left out, with all below them; * stands for any part of a name",
        default=(), example='["scratch", "vm/*-tmp"]',
    )  # fmt: skip
    set_aside: bool = config_key("send datasets, too, that a restore set aside below the source", default=False)
    snapshots: tuple[str, ...] = config_key(
        "which snapshots are sent, by name; * stands for any part", default=("*",), example='["autosnap_*"]'
    )
    skip_snapshots: tuple[str, ...] = config_key(
        "and which of those are not", default=(), example='["autosnap_*_frequently"]'
    )
    catch_up: str = config_key(
        'far behind, send all snapshots between, only those that [keep] would keep on the target ("kept"), or the newest',
        default="all", choices=CATCH_UP,
    )  # fmt: skip
    raw: str = config_key(
        "send encrypted datasets as they lie, without their key; auto: yes", default="auto", choices=RAW
    )
    may_decrypt: bool = config_key(
        'consent: with raw = "no", encrypted datasets are stored readable on the target', default=False
    )
    properties: bool = config_key(
        "send properties too; mountpoints, quotas, checksum=off, dedup=on and the like are kept aside on the target",
        default=True,
    )
    protect: tuple[str, ...] = config_key(
        "further properties that the source's values must not change on the target",
        default=(),
        example='["compression"]',
    )
    may_destroy: tuple[str, ...] = config_key(
        'consent: "rollback" discards what was changed on the target since the newest common snapshot, its own snapshots included',
        default=(), choices=CONSENTS,
    )  # fmt: skip
    take_over: str = config_key(
        "a copy that another program made: set readonly=on and canmount=noauto there; ask: name the command, no: leave it",
        default="ask", choices=TAKE_OVER,
    )  # fmt: skip
    follow_renames: bool = config_key("a dataset that was renamed on the source: rename its copy, too", default=False)
    sudo: bool = config_key("where we are not root, run zfs as `sudo -n zfs`", default=False)
    parallel: int = config_key("datasets side by side", default=2, least=1)
    hold_for: Seconds = config_key(
        "how long a snapshot that a cut transfer needs is kept from pruning", default=Seconds(14 * 86400),
        parse=parse_duration, example="14d",
    )  # fmt: skip


def copy_location(options: ZfsOptions, source: Location, place: Location) -> Location:
    """Return the location of a copy: below the place, under the source's last part or the name in the options."""
    return place / (options.name or source.path.rpartition("/")[2])


def mistakes(
    options: ZfsOptions, source: SourceTree, target: Location, _: VerifyRules
) -> Iterator[tuple[str, str, str]]:
    """Yield mistakes for keys that contradict each other: (key, mistake, expected value)."""
    if options.raw == "yes" and options.may_decrypt:
        yield "zfs.may-decrypt", "a raw send never decrypts", 'raw = "no", or no may-decrypt'
    if options.name is not None and ("/" in options.name or "@" in options.name or "#" in options.name):
        yield "zfs.name", f'"{options.name}" is more than one part of a dataset\'s name', 'a name such as "photos"'
    if options.exclude or options.snapshots != ("*",) or options.skip_snapshots:
        yield from _pattern_mistakes(options, source.root)
    if source.root.host and target.host:
        yield "source", "nothing is carried between two other hosts", "one side without ssh://"


def _pattern_mistakes(options: ZfsOptions, source: Location) -> Iterator[tuple[str, str, str]]:
    """Yield mistakes for patterns that fit nothing: what they are to leave out would be sent, or nothing at all."""
    from orchestrator.domain.dataset_patterns import find_dataset_mistakes, find_snapshot_mistakes

    found = {
        "exclude": find_dataset_mistakes(options.exclude, source.path),
        "snapshots": find_snapshot_mistakes(options.snapshots),
        "skip-snapshots": find_snapshot_mistakes(options.skip_snapshots),
    }
    for key, mistakes_of in found.items():
        yield from ((f"zfs.{key}[{number}]", what, wanted) for number, what, wanted in mistakes_of)


def options_of(job: Job) -> ZfsOptions:
    """Return the job's own section. Raises: TypeError for a job of another engine, a mistake in our own code."""
    if not isinstance(job.options, ZfsOptions):
        raise TypeError(f"job {job.name} is no zfs job")
    return job.options
