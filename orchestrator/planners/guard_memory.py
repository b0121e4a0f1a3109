"""Memory of guards: what a single look cannot show, as a slow loss, files that became something else, and what is usual."""

import json
from datetime import datetime, timedelta

from orchestrator.domain.answers import NOT_READ, check_count, parse_instant, parse_json
from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.point import Changes

GUARD_MEMORY = "guard memory"  # a small fact of a job
_WINDOW = timedelta(days=30)
_MOST_SEEN, _MOST_SHARES = 60, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardMemory:
    """Remembered facts of good runs. `files`: regular files at the last one; None: unknown.

    `seen`: (when, entries) of the last 30 days. `shares`: which share of the files had changed in the last runs that copied.
    """

    files: int | None = None
    seen: tuple[tuple[datetime, int], ...] = ()
    shares: tuple[float, ...] = ()

    def most_entries(self, now: datetime) -> int:
        """Return the largest number of entries that the source had in the last 30 days."""
        return max((entries for when, entries in self.seen if now - when <= _WINDOW), default=0)

    def replaced(self, look: Changes) -> int:
        """Return how many regular files became links or other entries: rsync reports each as a new entry, and no file as gone."""
        if self.files is None or look.files_now is None:
            return 0
        return max(0, self.files + look.files_new - look.files_gone - look.files_now)

    def is_usual(self, share: float) -> bool:
        """Return True when so large a share changed in one of the last runs, too: as in a folder of nightly dumps."""
        return bool(self.shares) and share <= max(self.shares) * 1.1


def parse_guard_memory(text: str | None) -> GuardMemory:
    """Parse the remembered text; what cannot be read is forgotten."""
    try:
        told = parse_json(text or "{}")
        seen = tuple((parse_instant(when), check_count(int(entries))) for when, entries in told.get("seen", ()))
        files = None if told.get("files") is None else check_count(int(told["files"]))
        return GuardMemory(files=files, seen=seen, shares=tuple(map(float, told.get("shares", ()))))
    except NOT_READ:
        return GuardMemory()


def next_guard_memory(before: GuardMemory, look: Changes, now: datetime, *, loss_allowed: bool) -> str:
    """Return the text to remember after a good run. `loss_allowed`: a person let a loss pass, and counting begins anew."""
    seen = () if loss_allowed else tuple(each for each in before.seen if now - each[0] <= _WINDOW)
    entries = look.entries_now
    if entries is not None and (not seen or seen[-1][1] != entries):
        seen = (*seen, (now, entries))[-_MOST_SEEN:]
    shares = before.shares
    changed = look.changed + before.replaced(look)
    if changed and look.files_before:
        shares = (*shares, round(changed / max(look.files_before, changed), 3))[-_MOST_SHARES:]
    told = {"files": look.files_now, "seen": [(when.isoformat(), number) for when, number in seen], "shares": shares}
    return json.dumps(told)
