"""A job as its owner declared it. Pure."""

from datetime import time

from orchestrator.domain.declare import key
from orchestrator.domain.drill import Drill
from orchestrator.domain.place import Location, Place
from orchestrator.domain.quick import dataclass, field
from orchestrator.domain.units import Bytes, Seconds, parse_duration, parse_often, parse_size
from orchestrator.domain.window import Window

DIGESTS = ("xxh128", "blake3", "sha256")
TRANSPORTS = ("ssh", "mbuffer")
EVENTS = (
    "before", "done", "nothing-to-do", "waiting", "refused", "failed", "interrupted",
    "late", "disk-arrived", "disk-safe", "disk-overdue",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """At most so many: a count, or a share of all in percent."""

    number: float
    percent: bool

    def exceeded(self, count: int, of: int) -> bool:
        """Whether `count` of `of` is above the limit."""
        return count > (self.number * of / 100 if self.percent else self.number)

    def __str__(self) -> str:
        return f"{self.number:g}%" if self.percent else f"{self.number:g}"


def parse_limit(text: str) -> Limit:
    """The limit that "200" or "30%" tells. Raises: ValueError."""
    percent = text.strip().endswith("%")
    digits = text.strip().removesuffix("%").strip()
    if not digits.replace(".", "", 1).isdigit() or (percent and float(digits) > 100) or (not percent and "." in digits):
        raise ValueError('a count such as 200, or a share such as "30%"')
    return Limit(number=float(digits), percent=percent)


def parse_clock(text: str) -> time:
    """The time of day that "06:30" tells, in the machine's local time. Raises: ValueError."""
    hour, colon, minute = text.partition(":")
    if not colon or not (
        hour.isdigit() and minute.isdigit() and int(hour) < 24 and int(minute) < 60 and len(minute) == 2
    ):
        raise ValueError('a time of day such as "06:30"')
    return time(int(hour), int(minute))


def parse_window(text: str) -> Window:
    """The window that "22:00-06:00" tells. Raises: ValueError."""
    begin, dash, end = text.partition("-")
    try:
        window = Window(begin=parse_clock(begin.strip()), end=parse_clock(end.strip()))
    except ValueError:
        window = None
    if window is None or not dash or window.begin == window.end:
        raise ValueError('a span of the day such as "22:00-06:00"')
    return window


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """How many restore points stay, per span of time; none told: all stay."""

    hourly: int = key("the newest point of each of so many hours", default=0, least=0)
    daily: int = key("the newest point of each of so many days", default=0, least=0)
    weekly: int = key("the newest point of each of so many ISO weeks", default=0, least=0)
    monthly: int = key("the newest point of each of so many months", default=0, least=0)
    yearly: int = key("the newest point of each of so many years", default=0, least=0)

    @property
    def everything(self) -> bool:
        """No rule was told."""
        return not (self.hourly or self.daily or self.weekly or self.monthly or self.yearly)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshots:
    """Snapshots that sanoid takes of the source before each look, and prunes there: how many of each kind stay."""

    frequently: int = key("of each so many quarters of an hour", default=0, least=0)
    hourly: int = key("of each so many hours", default=0, least=0)
    daily: int = key("of each so many days", default=0, least=0)
    weekly: int = key("of each so many weeks", default=0, least=0)
    monthly: int = key("of each so many months", default=0, least=0)
    yearly: int = key("of each so many years", default=0, least=0)
    recursive: bool = key("with all datasets below the source", default=True)
    autosnap: bool = key("take them; false: only prune", default=True)
    autoprune: bool = key("remove those that no rule keeps; false: only take", default=True)
    use: str | None = key(
        "a directory with a sanoid.conf of your own, in place of all this", default=None, example="/etc/sanoid"
    )

    @property
    def nothing(self) -> bool:
        """No rule was told."""
        rules = (self.frequently, self.hourly, self.daily, self.weekly, self.monthly, self.yearly)
        return not any(rules) and self.use is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """When and how copies are read again."""

    digest: str = key("how contents are fingerprinted", default="xxh128", choices=DIGESTS)
    every: Seconds | None = key(
        'read the newest point again with each "run", or when the last whole reading is older than this',
        default=None, parse=parse_often, example="7d",
    )  # fmt: skip
    workers: int = key("readers at once; 1 suits a spinning disk", default=4, least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Refuse above these, before anything is written."""

    max_deleted: Limit | None = key(
        "entries gone from the source since the newest point",
        default=Limit(number=50, percent=True),
        parse=parse_limit,
        example="30%",
    )
    max_changed: Limit | None = key(
        "files changed since the newest point", default=None, parse=parse_limit, example="60%"
    )
    max_deleted_per_folder: Limit | None = key(
        "the same, for each top folder by itself", default=None, parse=parse_limit, example="90%"
    )
    max_changed_per_folder: Limit | None = key(
        "the same, for each top folder by itself", default=None, parse=parse_limit, example="90%"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipe:
    """How data travels."""

    stall_after: Seconds = key(
        "end a transfer in which nothing moved for so long", default=Seconds(300), parse=parse_duration, example="5m"
    )
    buffer: Bytes = key(
        "memory that mbuffer takes on each side of a stream of datasets", default=Bytes(64 << 20), parse=parse_size,
        example="64M",
    )  # fmt: skip
    transport: str = key(
        "how a stream of datasets reaches another host: through ssh, or open and fast through mbuffer's own connection",
        default="ssh", choices=TRANSPORTS,
    )  # fmt: skip
    public_transport: bool = key("consent: mbuffer's open connection may cross a public network", default=False)
    rate_limit: Bytes | None = key("bytes per second at most", default=None, parse=parse_size, example="20M")
    ssh_options: tuple[str, ...] = key('further arguments for ssh, such as ["-i", "/root/.ssh/backup"]', default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Executables to call: per event a tuple of commands, each an argv."""

    calls: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = ()
    timeout: Seconds = Seconds(60)

    def of(self, event: str) -> tuple[tuple[str, ...], ...]:
        """The commands for one event, in the order written."""
        return next((commands for name, commands in self.calls if name == event), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying:
    """How often one run tries again by itself after a failure that may pass."""

    attempts: int = key("attempts in one run, the first included", default=4, least=1)
    wait: Seconds = key(
        "before the second attempt; doubles each time", default=Seconds(30), parse=parse_duration, example="30s"
    )
    wait_at_most: Seconds = key(
        "the longest wait between attempts", default=Seconds(900), parse=parse_duration, example="15m"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One promise: this source is carried to that target. `options` is the engine's own section, as its options.py declares it."""

    name: str
    file: str
    engine: str
    source: Location
    target: Place
    options: object
    schedule: str | None = None
    late_after: Seconds | None = None
    after: tuple[str, ...] = ()
    stop_at: time | None = None
    window: Window | None = None
    min_interval: Seconds | None = None
    priority: int = 0
    keep: Keep = field(default_factory=Keep)
    snapshots: Snapshots | None = None
    verify: Verify = field(default_factory=Verify)
    guard: Guard = field(default_factory=Guard)
    pipe: Pipe = field(default_factory=Pipe)
    retry: Retrying = field(default_factory=Retrying)
    drill: Drill = field(default_factory=Drill)
    hooks: Hooks = field(default_factory=Hooks)

    @property
    def copies(self) -> bool:
        """Whether it copies anything: others work on the source alone, which is their place too."""
        return self.source != self.target.location
