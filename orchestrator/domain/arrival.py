"""Points that other machines put here: when each came, the rules by which they are pruned, and what goes.

Why by arrival: whoever sends a point chooses its name and its date. When it came, and in which order, this machine saw itself.
"""

from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import Limit, config_key, parse_limit
from orchestrator.domain.units import Seconds, parse_duration

CLOCK, DATED_AHEAD, MOST_PER_DAY, MAX_CHANGED, SILENT_AFTER = (
    "clock", "dated-ahead", "most-per-day", "max-changed", "silent-after",
)  # fmt: skip
ARRIVAL_GUARDS = (CLOCK, DATED_AHEAD, MOST_PER_DAY, MAX_CHANGED, SILENT_AFTER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalRules:
    """The limits of a job that prunes what came here, besides its [keep]."""

    never_younger_than: Seconds = config_key(
        "nothing goes that came less long ago, by this machine's clock", default=Seconds(30 * 86400),
        parse=parse_duration, example="30d",
    )  # fmt: skip
    last: int = config_key("of each dataset so many points always stay, those that came last", default=3, least=1)
    most_per_day: int = config_key(
        "refuse to prune where more points of one dataset came in a day", default=200, least=1
    )
    max_changed: Limit = config_key(
        "refuse to prune where one point holds so much less of the one before it", default=Limit(number=60, percent=True),
        parse=parse_limit, example="60%",
    )  # fmt: skip
    silent_after: Seconds = config_key(
        "refuse to prune where nothing came for so long",
        default=Seconds(14 * 86400),
        parse=parse_duration,
        example="14d",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedPoint:
    """A point that came. `series`: where it lies, such as a dataset; points of one series follow each other.

    `identity`: by which it is destroyed, as its name may become another one's. `order`: in which this machine's storage numbered the
    points of a series as they came. `dated`: by its sender. `brought`: bytes that it does not share with the one before; `holds`: all
    of its bytes. `needed`: why it cannot go; empty: it can. `tree`: its folder, where nothing but a look into it counts its bytes, and
    the ledger of arrivals numbers it; then `record` is its mark there, and `before` what the one before it held when it came.
    """

    series: str
    name: str
    identity: str
    order: int
    dated: datetime
    brought: int = 0
    holds: int = 0
    needed: str = ""
    tree: str = ""
    record: str = ""
    before: int | None = None

    @property
    def mark(self) -> str:
        """Return the mark by which its arrival is recorded: another one when the same point is destroyed and comes again."""
        return self.record or f"{self.identity}.{self.order}"


def folder_mark(name: str, number: str | int) -> str:
    """Return the mark of a point that is a folder. `number`: of its inode."""
    return f"{name}.{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PointRemoval:
    """A point that goes, when it came, and why no rule keeps it."""

    point: ReceivedPoint
    arrived: datetime
    reason: str
