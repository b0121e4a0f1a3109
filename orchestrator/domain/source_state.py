"""The state of a source that is lost, made anew, being restored or restored, as history remembers it."""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.source_identity import SOURCE_STATE


class SourceState(StrEnum):
    """The state of a source on the day that it is lost, or has another name. The first good run after that ends it."""

    GONE = "gone"
    RENAMED = "renamed"
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
        begun = datetime.fromisoformat(since)
        if begun.tzinfo is None or not 1000 <= begun.year <= 9000:
            return None
        return SourceStateRecord(state=SourceState(state), since=begun, why=str(why), hint=str(hint))
    except (ValueError, TypeError, RecursionError):
        return None


def is_restore_known(remembered: Mapping[str, str]) -> bool:
    """Return whether history knows of a source that it is lost, or that a restore of it is not finished."""
    known = parse_source_state(remembered.get(SOURCE_STATE, ""))
    return known is not None and known.state in (SourceState.GONE, SourceState.ANEW, SourceState.RESTORING)


def next_source_state(known: str, now: SourceStateRecord) -> SourceStateRecord:
    """Return the state to remember: one that lasts keeps its first instant."""
    before = parse_source_state(known)
    if before is None or before.state is not now.state:
        return now
    return SourceStateRecord(state=now.state, since=before.since, why=now.why, hint=now.hint)
