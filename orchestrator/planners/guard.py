"""Guards: the check whether a source changed so much that a person should confirm first.

Why: a source that is not mounted, was emptied or was encrypted looks like an ordinary change to any copying program.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from orchestrator.domain.answers import NOT_READ, check_count, parse_instant, parse_json
from orchestrator.domain.fast_dataclass import dataclass, field
from orchestrator.domain.job import GuardLimits, Limit
from orchestrator.domain.names import show_name
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import Changes, FolderChanges
from orchestrator.domain.units import show_count

GUARD_MEMORY = "guard memory"  # a small fact of a job
_WINDOW, _RENEWED = timedelta(days=30), timedelta(days=1)
_MOST_SEEN, _MOST_SHARES = 60, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardMemory:
    """Remembered facts of good runs. `copies`: regular files of the newest copy of each target, by `copy_name`.

    `files`: of the copy that this run is compared with; None: unknown. `seen`: (when, entries) of the last 30 days. `shares`: which
    share of the files had changed in the last runs that copied.
    """

    copies: Mapping[str, int] = field(default_factory=dict)
    files: int | None = None
    seen: tuple[tuple[datetime, int], ...] = ()
    shares: tuple[float, ...] = ()

    def most_entries(self, now: datetime) -> int:
        """Return the largest number of entries that the source had in the last 30 days."""
        return max((entries for when, entries in self.seen if now - when <= _WINDOW), default=0)

    def replaced(self, look: Changes) -> int:
        """Return how many regular files became links or other entries: rsync reports each as a new entry, and no file as gone."""
        if self.files is None or look.files_now is None or look.given_up:
            return 0
        return max(0, self.files + look.files_new - look.files_gone - look.files_now)

    def is_usual(self, share: float) -> bool:
        """Return True when so large a share changed in one of the last runs, too: as in a folder of nightly dumps."""
        return bool(self.shares) and share <= max(self.shares) * 1.1


def copy_name(target: str, point: str) -> str:
    """Return the name by which the files of a copy are remembered. `point`: empty for a mirror.

    Why: a disk that is new, or was away, and a place that is not mounted hold another copy than the one that was counted last.
    """
    return f"{target}/{point}"


def parse_guard_memory(text: str | None, copy: str = "") -> GuardMemory:
    """Parse the remembered text; what cannot be read is forgotten. `copy`: the one that this run is compared with; empty: none."""
    try:
        told = parse_json(text or "{}")
        seen = tuple((parse_instant(when), check_count(int(entries))) for when, entries in told.get("seen", ()))
        copies = {str(name): check_count(int(files)) for name, files in told.get("copies", {}).items()}
        shares = tuple(map(float, told.get("shares", ())))
        return GuardMemory(copies=copies, files=copies.get(copy), seen=seen, shares=shares)
    except NOT_READ:
        return GuardMemory()


def next_guard_memory(before: GuardMemory, look: Changes, now: datetime, *, copy: str, loss_allowed: bool) -> str:
    """Return the text to remember after a good run. `copy`: the one that is as the source now.

    `loss_allowed`: a person let a loss pass, and counting begins anew.
    """
    seen = () if loss_allowed else tuple(each for each in before.seen if now - each[0] <= _WINDOW)
    entries = look.entries_now
    same = bool(seen) and seen[-1][1] == entries
    # Renewed, or a number that stood for 30 days would be forgotten just before the first loss; but not written by each run.
    if entries is not None and not (same and now - seen[-1][0] < _RENEWED):
        seen = (*(seen[:-1] if same else seen), (now, entries))[-_MOST_SEEN:]
    shares = before.shares
    changed = look.changed + before.replaced(look)
    if changed and look.files_before:
        shares = (*shares, round(changed / max(look.files_before, changed), 3))[-_MOST_SHARES:]
    target = copy_name(copy.rpartition("/")[0], "")
    copies = [(name, files) for name, files in before.copies.items() if not name.startswith(target)]
    if look.files_now is not None:
        copies.append((copy, look.files_now))
    told = {
        "copies": dict(copies[-_MOST_SEEN:]),
        "seen": [(when.isoformat(), number) for when, number in seen],
        "shares": shares,
    }
    return json.dumps(told)


SOURCE_MOVED = "source-moved"
SOURCE_EMPTY = "source-empty"
OTHER_MACHINE = "other-machine"
GUARDS = (SOURCE_MOVED, SOURCE_EMPTY, OTHER_MACHINE, *(name.replace("_", "-") for name in GuardLimits.__annotations__))
EXAMPLES = 20
FEW = 20  # so few entries that are gone from one of several folders are never too many of it


def loses_much(look: Changes) -> bool:
    """Return True when one of several folders lost so many entries that it matters how many it had."""
    return look.by_part and any(each.deleted > FEW for each in look.folders.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _GuardAlarm:
    guard: str
    why: str
    evidence: tuple[str, ...]


def decide_guard(
    look: Changes,
    guard: GuardLimits,
    *,
    job: str,
    allowed: frozenset[str],
    memory: GuardMemory | None = None,
    now: datetime | None = None,
) -> Refusal | None:
    """Return a refusal when guards not in `allowed` find too much change; it names each of them, the most serious first.

    Why: where the number before is unknown, a percent limit is compared with the smallest possible number (entries that are
    gone plus entries known to remain): better one refusal too many.
    """
    known = memory or GuardMemory()
    alarms = [alarm for alarm in _alarms(look, guard, known, now) if alarm.guard not in allowed]
    if not alarms:
        return None
    flags = " ".join(f"--allow {guard}" for guard in dict.fromkeys(alarm.guard for alarm in alarms))
    return Refusal(
        why="; ".join(alarm.why for alarm in alarms),
        evidence=tuple(dict.fromkeys(line for alarm in alarms for line in alarm.evidence)),
        hint=f"look at the source; if this is meant: poolferry run {job} {flags}",
        guard=alarms[0].guard,
    )


def _alarms(look: Changes, guard: GuardLimits, memory: GuardMemory, now: datetime | None) -> Iterator[_GuardAlarm]:
    yield from _moved(look)
    yield from _empty(look)
    gone, edited = _show("deleted", look.deleted_examples), _show("changed", look.changed_examples)
    entries = _EntryCount(before=look.entries_before, least=_least_before(look))
    replaced = memory.replaced(look)
    # Where files became links, what rsync's counts say of the files before is wrong, and what a good run saw is right.
    files = _EntryCount(before=memory.files if replaced else look.files_before, least=look.changed)
    lost = tuple(_over("max-deleted", guard.max_deleted, look.deleted - look.moved, entries, "entries are gone", gone))
    yield from lost or (_slow_loss(look, guard.max_deleted, memory, now, gone) if now else ())
    limit, edits = guard.max_changed, look.changed + replaced
    if not (limit and limit.adapts and memory.is_usual(edits / max(files.base, 1))):
        what = "files have changed" + (f", {replaced} of them into links or other entries" if replaced else "")
        yield from _over("max-changed", limit, edits, files, what, edited)
    deleted = {name: (folder.deleted - folder.moved, folder) for name, folder in look.folders.items()}
    changed = {name: (folder.changed, folder) for name, folder in look.folders.items()}
    if look.by_part:
        much = {name: each for name, each in deleted.items() if each[0] > FEW}
        yield from _over_in("max-deleted", guard.max_deleted, much, "entries are gone", gone)
    yield from _over_in("max-deleted-per-folder", guard.max_deleted_per_folder, deleted, "entries are gone", gone)
    yield from _over_in("max-changed-per-folder", guard.max_changed_per_folder, changed, "files have changed", edited)


def _slow_loss(
    look: Changes, limit: Limit | None, memory: GuardMemory, now: datetime, gone: tuple[str, ...]
) -> Iterator[_GuardAlarm]:
    """Yield an alarm when many small losses have become a large one. What comes and goes in turn is no loss."""
    most, entries = memory.most_entries(now), look.entries_now
    if limit is None or not limit.percent or entries is None or look.deleted <= look.created:
        return
    if limit.exceeded(most - entries, most):
        why = f"{most - entries} of {show_count(most, 'entry', 'entries')} are gone in the last 30 days, a part in each run; max-deleted is {limit}"
        yield _GuardAlarm(guard="max-deleted", why=why, evidence=gone)


def _moved(look: Changes) -> Iterator[_GuardAlarm]:
    if look.device_before is None or look.device_now is None or look.device_before == look.device_now:
        return
    evidence = (f"filesystem at the newest point: {look.device_before}", f"filesystem now: {look.device_now}")
    what = ", ".join(map(show_name, look.unmounted)) or "the source"
    why = f"{what} lies on another filesystem than at the newest point: is it mounted?"
    yield _GuardAlarm(guard=SOURCE_MOVED, why=why, evidence=evidence)


def _empty(look: Changes) -> Iterator[_GuardAlarm]:
    """Yield an alarm when the source is empty and the newest point is not. Without a point nothing can be missing."""
    before = _EntryCount(before=look.entries_before, least=_least_before(look))
    for folder in look.emptied:
        why = f"the source {show_name(folder)} is empty, and its copy in the newest point is not: is it mounted?"
        yield _GuardAlarm(guard=SOURCE_EMPTY, why=why, evidence=())
    if look.entries_now == 0 and before.base:
        why = "the source is empty, or all of it is left out, and the newest point is not empty: is it mounted?"
        yield _GuardAlarm(
            guard=SOURCE_EMPTY, why=why, evidence=(f"entries in the newest point: {before}", "entries now: 0")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _EntryCount:
    """Number of entries before; `least`: the known minimum when the number is unknown."""

    before: int | None
    least: int

    @property
    def base(self) -> int:
        return self.least if self.before is None else self.before

    def __str__(self) -> str:
        return f"an unknown number, at least {self.least}" if self.before is None else f"{self.before}"


def _least_before(look: Changes) -> int:
    remaining = look.changed if look.entries_now is None else look.entries_now - look.created
    return look.deleted + remaining


def _over(
    name: str, limit: Limit | None, number: int, count: _EntryCount, what: str, examples: tuple[str, ...]
) -> Iterator[_GuardAlarm]:
    if limit is not None and limit.exceeded(number, count.base):
        why = f"{number} of {count} {_agreed(what, number, count)}; {name} is {limit}"
        yield _GuardAlarm(guard=name, why=why, evidence=examples)


def _agreed(what: str, number: int, count: _EntryCount) -> str:
    """Return words such as "entries are gone" in the singular, where they are of one."""
    if count.base == 1:
        what = what.replace("entries", "entry").replace("files", "file", 1)
    return what.replace(" are ", " is ").replace(" have ", " has ") if number == 1 else what


def _over_in(
    name: str,
    limit: Limit | None,
    folders: Mapping[bytes, tuple[int, FolderChanges]],
    what: str,
    examples: tuple[str, ...],
) -> Iterator[_GuardAlarm]:
    counts = {
        folder: (number, _EntryCount(before=changes.before, least=changes.deleted + changes.changed))
        for folder, (number, changes) in sorted(folders.items())
    }
    over = [
        f"{show_name(folder)}/: {number} of {count} {_agreed(what, number, count)}"
        for folder, (number, count) in counts.items()
        if limit is not None and limit.exceeded(number, count.base)
    ]
    if over:
        more = f" and {len(over) - 1} more" if len(over) > 1 else ""
        yield _GuardAlarm(guard=name, why=f"{over[0]}{more}; {name} is {limit}", evidence=(*over[:EXAMPLES], *examples))


def _show(word: str, names: tuple[bytes, ...]) -> tuple[str, ...]:
    return tuple(f"{word}: {show_name(name)}" for name in names[:EXAMPLES])
