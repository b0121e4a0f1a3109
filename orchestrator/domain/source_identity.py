"""The identity of a job's source, remembered after each good run, and the state of a source that is lost or restored."""

import json
from datetime import datetime
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass

SOURCE_IDENTITY = "source-identity"  # the key under which history remembers it
SOURCE_STATE = "source-state"  # the same for the state of a source; empty: it is as ever


class SourceState(StrEnum):
    """The state of a source on the day that it is lost. The first good run after its restore ends it."""

    GONE = "gone"
    ANEW = "made anew"
    RESTORING = "being restored"
    WAITING = "waiting in part"
    RESTORED = "restored"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStateRecord:
    """The state of a source since an instant: what it means, and the command that helps."""

    state: SourceState
    since: datetime
    why: str
    hint: str

    def __str__(self) -> str:
        return json.dumps([self.state, self.since.isoformat(), self.why, self.hint])


def parse_source_state(text: str) -> SourceStateRecord | None:
    """Parse a remembered state; None for a text that is none."""
    try:
        state, since, why, hint = json.loads(text or "null")
        return SourceStateRecord(
            state=SourceState(state), since=datetime.fromisoformat(since), why=str(why), hint=str(hint)
        )
    except (ValueError, TypeError):
        return None


def next_source_state(known: str, now: SourceStateRecord) -> SourceStateRecord:
    """Return the state to remember: one that lasts keeps its first instant."""
    before = parse_source_state(known)
    if before is None or before.state is not now.state:
        return now
    return SourceStateRecord(state=now.state, since=before.since, why=now.why, hint=now.hint)


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
    if not (dataset.isdecimal() and pool.isdecimal() and root):
        return None
    return SourceIdentity(dataset=int(dataset), pool=int(pool), root=root)


def is_made_anew(remembered: str, root: str, dataset: int) -> bool:
    """Return whether the dataset with this guid is not the one that was remembered under the same name."""
    known = parse_identity(remembered)
    return known is not None and known.root == root and known.dataset != dataset
