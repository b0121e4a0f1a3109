"""A job as its owner declares it, with its restore tests; and `config_key`, which declares a key of a job file.

The declarations are the one source for the parser, the schema and the manual.
"""

from collections.abc import Callable
from datetime import time
from typing import TYPE_CHECKING, Any

from orchestrator.domain.fast_dataclass import MISSING, dataclass, field
from orchestrator.domain.place import Location, Place, parse_location
from orchestrator.domain.source_tree import SourceTree
from orchestrator.domain.units import Bytes, Seconds, parse_duration, parse_often, parse_size

if TYPE_CHECKING:  # few jobs need one
    from orchestrator.domain.permit import PermitRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeWindow:
    """A span of each day in local time, also over midnight; the end is excluded."""

    begin: time
    end: time

    def holds(self, clock: time) -> bool:
        """Return True when this time of day lies in the window."""
        if self.begin < self.end:
            return self.begin <= clock < self.end
        return clock >= self.begin or clock < self.end

    def __str__(self) -> str:
        return f"{self.begin:%H:%M}-{self.end:%H:%M}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigKey:
    """Rule for one key of a job file. `parse` turns the written text into the value. Raises: ValueError(expected)."""

    says: str
    parse: Callable[[str], object] | None = None
    choices: tuple[str, ...] = ()
    example: str = ""
    least: int | None = None


def config_key(
    says: str,
    *,
    default: Any = MISSING,
    parse: Callable[[str], object] | None = None,
    choices: tuple[str, ...] = (),
    example: str = "",
    least: int | None = None,
) -> Any:
    """Declare a dataclass field that a job file sets; the field `max_deleted` is the key `max-deleted`.

    Without `parse` the field's type rules: str, int, bool, float, tuple[str, ...]. A number is handed to `parse` as text.
    """
    rule = ConfigKey(says=says, parse=parse, choices=choices, example=example, least=least)
    return field(default=default, metadata={"key": rule})


def parse_scratch(text: str) -> str:
    """Parse an absolute path or a dataset, both on this machine. Raises: ValueError."""
    found = parse_location(text)
    if found.host is not None or text.startswith((".", "~")) or "/" not in text:
        raise ValueError('a directory such as "/srv/scratch", or for copies of datasets a dataset such as "tank/drill"')
    return found.path


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillRules:
    """Restore tests: how often a copy is restored into scratch space, and how much of it is restored."""

    every: Seconds | None = config_key(
        'with each "run", or after one that ended well when the last drill is older than this; without it, only by '
        "`poolferry drill`",
        default=None, parse=parse_often, example="7d",
    )  # fmt: skip
    files: int = config_key("files in a sample, spread over the folders", default=100, least=1)
    size: Bytes = config_key("bytes in a sample", default=Bytes(1 << 30), parse=parse_size, example="5G")
    whole_every: Seconds | None = config_key(
        "restore all of it, when the last time was longer ago than this", default=None, parse=parse_duration,
        example="90d",
    )  # fmt: skip
    scratch: str | None = config_key(
        "where to: a directory, else one in the state directory",
        default=None,
        parse=parse_scratch,
        example="/srv/scratch",
    )
    check_command: tuple[str, ...] = config_key(
        "a program that looks at what came back, in its folder; any exit but 0 is a failed drill",
        default=(), example='["/usr/local/bin/open-albums"]',
    )  # fmt: skip
    check_within: Seconds = config_key(
        "how long it may take", default=Seconds(600), parse=parse_duration, example="30m"
    )

    @property
    def requested(self) -> bool:
        """Return True when restore tests run automatically."""
        return self.every is not None or self.whole_every is not None


DIGESTS = ("xxh128", "blake3", "sha256")
TRANSPORTS = ("ssh", "mbuffer")
EVENTS = (
    "before", "done", "incomplete", "nothing-to-do", "waiting", "refused", "failed", "interrupted",
    "late", "disk-arrived", "disk-safe", "disk-overdue", "snapshot-before", "snapshot-after",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """An upper limit: a count, or a percentage of all."""

    number: float
    percent: bool
    least: int = 0  # so few are never too many; a default knows nothing of a small tree
    adapts: bool = False  # what was usual in the last runs is not too much

    def exceeded(self, count: int, of: int) -> bool:
        """Return True when `count` of `of` is above the limit."""
        return count > self.least and count > (self.number * of / 100 if self.percent else self.number)

    def __str__(self) -> str:
        return f"{self.number:g}%" if self.percent else f"{self.number:g}"


def parse_limit(text: str) -> Limit:
    """Parse a limit such as "200" or "30%". Raises: ValueError."""
    percent = text.strip().endswith("%")
    digits = text.strip().removesuffix("%").strip()
    if not digits.replace(".", "", 1).isdigit() or (percent and float(digits) > 100) or (not percent and "." in digits):
        raise ValueError('a count such as 200, or a share such as "30%"')
    return Limit(number=float(digits), percent=percent)


def parse_clock(text: str) -> time:
    """Parse a time of day such as "06:30", in the machine's local time. Raises: ValueError."""
    hour, colon, minute = text.partition(":")
    if not colon or not (
        hour.isdigit() and minute.isdigit() and int(hour) < 24 and int(minute) < 60 and len(minute) == 2
    ):
        raise ValueError('a time of day such as "06:30"')
    return time(int(hour), int(minute))


def parse_window(text: str) -> TimeWindow:
    """Parse a window such as "22:00-06:00". Raises: ValueError."""
    begin, dash, end = text.partition("-")
    try:
        window = TimeWindow(begin=parse_clock(begin.strip()), end=parse_clock(end.strip()))
    except ValueError:
        window = None
    if window is None or not dash or window.begin == window.end:
        raise ValueError('a span of the day such as "22:00-06:00"')
    return window


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRules:
    """Number of restore points to keep, per span of time; without any number all are kept."""

    hourly: int = config_key("the newest point of each of so many hours", default=0, least=0)
    daily: int = config_key("the newest point of each of so many days", default=0, least=0)
    weekly: int = config_key("the newest point of each of so many ISO weeks", default=0, least=0)
    monthly: int = config_key("the newest point of each of so many months", default=0, least=0)
    yearly: int = config_key("the newest point of each of so many years", default=0, least=0)

    @property
    def everything(self) -> bool:
        """Return True when no rule is set, so all points are kept."""
        return not (self.hourly or self.daily or self.weekly or self.monthly or self.yearly)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotRules:
    """Snapshots that sanoid takes of the source before each survey, and prunes there: number to keep of each kind."""

    frequently: int = config_key("of each so many quarters of an hour", default=0, least=0)
    hourly: int = config_key("of each so many hours", default=0, least=0)
    daily: int = config_key("of each so many days", default=0, least=0)
    weekly: int = config_key("of each so many weeks", default=0, least=0)
    monthly: int = config_key("of each so many months", default=0, least=0)
    yearly: int = config_key("of each so many years", default=0, least=0)
    recursive: bool = config_key("with all datasets below the source", default=True)
    autosnap: bool = config_key("take them; false: only prune", default=True)
    autoprune: bool = config_key("remove those that no rule keeps; false: only take", default=True)
    needs_hook: bool = config_key(
        "take none when the hook `snapshot-before` failed; false: take them all the same, with a warning", default=True
    )
    use: str | None = config_key(
        "a directory with a sanoid.conf of your own, in place of all this", default=None, example="/etc/sanoid"
    )

    @property
    def nothing(self) -> bool:
        """Return True when no rule is set."""
        rules = (self.frequently, self.hourly, self.daily, self.weekly, self.monthly, self.yearly)
        return not any(rules) and self.use is None


def parse_promise(text: str) -> Seconds:
    """Parse how often all copies are read again, such as "90d". Raises: ValueError."""
    seconds = parse_duration(text)
    if seconds < 86400:
        raise ValueError('a duration of a day or more, such as "90d"')
    return seconds


def parse_amount(text: str) -> Bytes:
    """Parse a size that is not nothing, such as "200G". Raises: ValueError."""
    if not (size := parse_size(text)):
        raise ValueError('a size above 0, such as "200G"')
    return size


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRules:
    """Settings for reading copies again and verifying them."""

    digest: str = config_key("how contents are fingerprinted", default="xxh128", choices=DIGESTS)
    every: Seconds | None = config_key(
        'read the newest point again with each "run", or when the last whole reading is older than this',
        default=None, parse=parse_often, example="7d",
    )  # fmt: skip
    workers: int = config_key("readers at once; 1 suits a spinning disk", default=4, least=1)
    read_all_within: Seconds | None = config_key(
        "all copies at the target are read again at least so often", default=None, parse=parse_promise, example="90d"
    )
    per_day: Bytes | None = config_key(
        "at most so much of them a day; without it as much as the promise needs",
        default=None, parse=parse_amount, example="200G",
    )  # fmt: skip
    window: TimeWindow | None = config_key(
        "when they are read, in the machine's local time", default=None, parse=parse_window, example="22:00-06:00"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardLimits:
    """Limits above which a run is refused before anything is written."""

    max_deleted: Limit | None = config_key(
        "entries gone from the source since the newest point",
        default=Limit(number=50, percent=True),
        parse=parse_limit,
        example="30%",
    )
    max_changed: Limit | None = config_key(
        "files changed since the newest point",
        default=Limit(number=50, percent=True, least=20, adapts=True),
        parse=parse_limit,
        example="60%",
    )
    max_deleted_per_folder: Limit | None = config_key(
        "the same, for each top folder by itself", default=None, parse=parse_limit, example="90%"
    )
    max_changed_per_folder: Limit | None = config_key(
        "the same, for each top folder by itself", default=None, parse=parse_limit, example="90%"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PipeOptions:
    """Settings of the data transfer."""

    stall_after: Seconds = config_key(
        "end a transfer in which nothing moved for so long", default=Seconds(300), parse=parse_duration, example="5m"
    )
    buffer: Bytes = config_key(
        "memory that mbuffer takes at most, on each side of a stream of datasets", default=Bytes(64 << 20), parse=parse_size,
        example="64M",
    )  # fmt: skip
    transport: str = config_key(
        "how a stream of datasets reaches another host: through ssh, or open and fast through mbuffer's own connection",
        default="ssh", choices=TRANSPORTS,
    )  # fmt: skip
    public_transport: bool = config_key("consent: mbuffer's open connection may cross a public network", default=False)
    rate_limit: Bytes | None = config_key("bytes per second at most", default=None, parse=parse_size, example="20M")
    ssh_options: tuple[str, ...] = config_key(
        'further arguments for ssh, such as ["-i", "/root/.ssh/backup"]', default=()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHooks:
    """Commands to run on events: for each event a tuple of commands, each an argv."""

    calls: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = ()
    timeout: Seconds = Seconds(60)

    def of(self, event: str) -> tuple[tuple[str, ...], ...]:
        """Return the commands of one event, in the order written."""
        return next((commands for name, commands in self.calls if name == event), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRules:
    """Automatic retries of one run after a failure that may pass."""

    attempts: int = config_key("attempts in one run, the first included", default=4, least=1)
    wait: Seconds = config_key(
        "before the second attempt; doubles each time", default=Seconds(30), parse=parse_duration, example="30s"
    )
    wait_at_most: Seconds = config_key(
        "the longest wait between attempts", default=Seconds(900), parse=parse_duration, example="15m"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job: its source, target and settings. `options` is the engine's own section, as its options.py declares it.

    `parts`: the folders below `source` that are copied, where the job names several; empty: all of it.
    """

    name: str
    file: str
    engine: str
    source: Location
    target: Place
    options: object
    parts: tuple[str, ...] = ()
    schedule: str | None = None
    late_after: Seconds | None = None
    after: tuple[str, ...] = ()
    stop_at: time | None = None
    window: TimeWindow | None = None
    min_interval: Seconds | None = None
    priority: int = 0
    known_as: str | None = None
    permit: "PermitRequest | None" = None
    keep: KeepRules = field(default_factory=KeepRules)
    snapshots: SnapshotRules | None = None
    verify: VerifyRules = field(default_factory=VerifyRules)
    guard: GuardLimits = field(default_factory=GuardLimits)
    pipe: PipeOptions = field(default_factory=PipeOptions)
    retry: RetryRules = field(default_factory=RetryRules)
    drill: DrillRules = field(default_factory=DrillRules)
    hooks: JobHooks = field(default_factory=JobHooks)

    @property
    def identity(self) -> str:
        """Return the name under which copies know the job: its first one. `poolferry rename` changes only the other."""
        return self.known_as or self.name

    @property
    def tree(self) -> SourceTree:
        """Return the source with the folders of it that are copied."""
        return SourceTree(root=self.source, parts=self.parts)

    @property
    def copies(self) -> bool:
        """Return True when the job copies data; other jobs work only on their source, which is also their target."""
        return self.source != self.target.location
