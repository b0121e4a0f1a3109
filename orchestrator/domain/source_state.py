"""The state of a source that is lost, made anew, being restored or restored, as history remembers it."""

import json
from datetime import datetime
from enum import StrEnum

from orchestrator.domain.fast_dataclass import dataclass


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
        begun = datetime.fromisoformat(since)
        if begun.tzinfo is None or not 1000 <= begun.year <= 9000:
            return None
        return SourceStateRecord(state=SourceState(state), since=begun, why=str(why), hint=str(hint))
    except (ValueError, TypeError, RecursionError):
        return None


def next_source_state(known: str, now: SourceStateRecord) -> SourceStateRecord:
    """Return the state to remember: one that lasts keeps its first instant."""
    before = parse_source_state(known)
    if before is None or before.state is not now.state:
        return now
    return SourceStateRecord(state=now.state, since=before.since, why=now.why, hint=now.hint)
