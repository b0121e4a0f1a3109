"""What to read again when there is room for some of it only: what is suspected first, then what was never read, then the oldest.

Why not by chance: a sample never reads everything; the oldest first does, with visits however short.
"""

from collections.abc import Iterable
from datetime import datetime

from orchestrator.domain.fast_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """What is read as a whole: a point, or a dataset with its snapshots. `read_at`: when it was last; None: never."""

    name: str
    read_at: datetime | None
    suspect: bool = False


def next_to_read(units: Iterable[Unit], since: datetime) -> Unit | None:
    """The unit to read next; None: all were read since then."""
    left = [unit for unit in units if unit.read_at is None or unit.read_at < since]
    return min(
        left,
        key=lambda unit: (not unit.suspect, unit.read_at or datetime.min.replace(tzinfo=since.tzinfo), unit.name),
        default=None,
    )


def oldest(units: Iterable[Unit]) -> datetime | None:
    """The instant since which all was read; None: something never was."""
    instants = [unit.read_at for unit in units]
    return None if None in instants else min((each for each in instants if each), default=None)
