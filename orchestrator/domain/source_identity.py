"""The identity of a job's source, remembered after each good run: a source that was made anew has another one."""

from collections.abc import Mapping

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.place import USED, Place

SOURCE_IDENTITY = "source-identity"  # the key under which history remembers it
SOURCE_STATE = "source-state"  # the same for the state of a source; empty: it is as ever
RESTORED = "restored"  # the key under which history remembers where a finished restore went, until the next good run
RESTORE_BEGUN = (
    "restore-begun"  # the same for the last restore of datasets, its instant and where to, until it has ended
)
LAST_RESTORE = "last-restore"  # the same for a text on the last restore of a job's source, its instant and the copy that it came from
COPY_IDENTITY = "copy identity at "  # before a place's name: which copy of datasets it holds
OWED = "snapshot-after is owed"  # the same for a run that holds the source still, and since when; empty: none does

_LONGEST = 20  # digits of a guid


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceIdentity:
    """The guids of a source's dataset and of its pool, and its full name. Each is new when it is created or received anew."""

    dataset: int
    pool: int
    root: str

    def __str__(self) -> str:
        return f"{self.dataset} {self.pool} {self.root}"


def parse_identity(text: str) -> SourceIdentity | None:
    """Parse a remembered identity; None for a text that is none."""
    dataset, _, rest = text.partition(" ")
    pool, _, root = rest.partition(" ")
    if not (dataset.isdecimal() and pool.isdecimal() and root and len(dataset + pool) <= 2 * _LONGEST):
        return None
    return SourceIdentity(dataset=int(dataset), pool=int(pool), root=root)


def known_copy(remembered: Mapping[str, str], place: Place) -> int:
    """Return the guid of the copy that the last good run saw at a place; 0: none, or the configuration has named another one since."""
    known = remembered.get(COPY_IDENTITY + place.name, "")
    left = not place.disk and remembered.get(USED) not in (None, str(place.location))
    return int(known) if known.isdecimal() and len(known) <= _LONGEST and not left else 0


def is_made_anew(remembered: str, root: str, dataset: int) -> bool:
    """Return whether the dataset with this guid is not the one that was remembered under the same name."""
    known = parse_identity(remembered)
    return known is not None and known.root == root and known.dataset != dataset


def seen_restore_key(place: str) -> str:
    """Return the key under which history remembers the last restore that a good run into a place has followed."""
    return f"last-restore before {place}"
