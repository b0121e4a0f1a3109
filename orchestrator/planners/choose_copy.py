"""Choice of the copy to restore from: the newest that is verified, sound and reachable now."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.rotation import AT_MACHINE, ATTACHED, IN_TRANSIT
from orchestrator.domain.units import Seconds, show_duration

_GAP = timedelta(days=1)
_LEAST = 1 << 20  # bytes: for less, the time is mostly the start of programs


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePoint:
    """One point at a place. `at`: when the source was last in this state; `taken`: when the point was made.

    `sound`: the result of the last reading, None: never read. `missing`: parts of the source that it lacks.
    """

    name: str
    taken: datetime
    at: datetime
    verified: bool
    sound: bool | None
    read_at: datetime | None = None
    entries: int | None = None
    bytes: int | None = None
    missing: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        """Return True when a restore may trust the point: it is verified, sound, and all of it is there."""
        return self.verified and self.sound is not False and not self.missing

    def fits(self, at: datetime | None, name: str | None) -> bool:
        """Return True when the point matches the request."""
        return (at is None or self.taken <= at) and (name is None or self.name.startswith(name))


NOT_PLUGGED_IN = "it is not plugged in"


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyCandidate:
    """All points of one job at one place, the oldest first. `away`: why it cannot be reached now; empty: it can.

    `disk`: the removable disk that it is on; `where`: where that disk is, as a person noted it.
    """

    job: str
    place: str
    points: tuple[CandidatePoint, ...]
    disk: str = ""
    away: str = ""
    where: str = ""

    def newest(self, at: datetime | None = None, name: str | None = None) -> CandidatePoint | None:
        """Return the newest good point, not later than `at`, or the one of that name."""
        fitting = [each for each in self.points if each.good and each.fits(at, name)]
        return fitting[-1] if fitting else None

    def gap(self) -> tuple[CandidatePoint, CandidatePoint] | None:
        """Return the longest time without a point, as its two points; None when it is shorter than a day."""
        pairs = zip(self.points, self.points[1:], strict=False)
        widest = max(pairs, key=_apart, default=None)
        return widest if widest and _apart(widest) >= _GAP else None


def _apart(pair: tuple[CandidatePoint, CandidatePoint]) -> timedelta:
    return pair[1].taken - pair[0].at


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyChoice:
    """Restore choice. `copy` None: no reachable copy is good. `newer`: copies elsewhere, the newest first."""

    copy: CopyCandidate | None
    point: CandidatePoint | None
    why: str
    newer: tuple[tuple[CopyCandidate, CandidatePoint], ...] = ()


def choose_copy(copies: Sequence[CopyCandidate], *, at: datetime | None = None, name: str | None = None) -> CopyChoice:
    """Choose the best copy now, and list the newer ones that must be fetched. `at`, `name`: from the restore request."""
    good = [(copy, point) for copy in copies if (point := copy.newest(at, name)) is not None]
    good.sort(key=lambda each: each[1].at, reverse=True)
    here = next((each for each in good if not each[0].away), None)
    if here is None:
        return CopyChoice(copy=None, point=None, why=_why_none(copies, at, name), newer=tuple(good))
    newer = tuple(each for each in good if each[0].away and each[1].at > here[1].at)
    same = sum(each[1].at == here[1].at for each in good)
    why = "the newest verified copy that can be reached" if newer or same > 1 else "the newest verified copy"
    return CopyChoice(copy=here[0], point=here[1], why=why, newer=newer)


def _why_none(copies: Sequence[CopyCandidate], at: datetime | None, name: str | None) -> str:
    points = [point for copy in copies for point in copy.points]
    if not points:
        return "no copy with a restore point is known, and no place that answers holds one"
    requested = f" as old as {at.isoformat()}" if at else f' that begins with "{name}"' if name else ""
    if any(copy.newest(at, name) for copy in copies):
        return "no copy that can be reached now holds a verified point" + requested
    doubtful = [point for point in points if point.fits(at, name)]
    why = ""
    if doubtful:
        last = max(doubtful, key=lambda each: each.taken)
        lacks = f"not whole: it lacks {', '.join(last.missing)}" if last.missing else "not verified"
        why = f"; {last.name} is {'damaged' if last.sound is False else lacks}, and restored only when it is named"
    return f"no copy holds a verified and sound point{requested}{why}"


def find_copies_to_fetch(
    copies: Sequence[CopyCandidate], *, since: datetime, of: datetime | None, but: tuple[str, str]
) -> tuple[tuple[CopyCandidate, CandidatePoint, bool], ...]:
    """List the copies to fetch that should hold a file in its former state, those that certainly hold it first.

    `since`: when the file was last changed; `of`: when the point was made whose manifest has it, None: unknown. A point between
    the two has the file in that state, unless its time was set back; a later one may have it. `but`: job and place of the
    damaged copy.
    """
    found = []
    for copy in copies:
        if (copy.job, copy.place) == but or not (copy.away or copy.disk):
            continue
        good = [each for each in copy.points if each.good and each.taken >= since]
        sure = [each for each in good if of is not None and each.taken <= of]
        if good:
            found.append((copy, (sure or good)[-1], bool(sure)))
    return tuple(sorted(found, key=lambda each: (not each[2], not each[0].disk, -each[1].taken.timestamp())))


def fetch_sentence(copy: CopyCandidate, point: CandidatePoint, best: CandidatePoint | None) -> str:
    """Return the sentence that says how to make an unreachable copy available."""
    newer = f", {show_duration((point.at - best.at).total_seconds())} newer" if best else ""
    if not copy.disk:
        return f"{copy.place} (job {copy.job}) holds {point.name}{newer}, and cannot be reached: {copy.away}"
    if copy.away != NOT_PLUGGED_IN:
        return f"disk {copy.disk} (job {copy.job}) holds {point.name}{newer}, and cannot be used: {copy.away}"
    place = f" from {copy.where}" if copy.where and copy.where not in (ATTACHED, IN_TRANSIT, AT_MACHINE) else ""
    return f"disk {copy.disk} (job {copy.job}) holds {point.name}{newer}: fetch it{place}, and plug it in"


@dataclass(frozen=True, slots=True, kw_only=True)
class PastTransfer:
    """Speed of one past transfer: a restore, a restore test, or a run, when nothing else is known."""

    kind: str
    run: int
    bytes: int
    took: Seconds


_TRANSFER_RUNS = ("restore", "drill", "run")


def estimate_duration(size: int | None, past: Sequence[PastTransfer]) -> tuple[Seconds, PastTransfer] | None:
    """Estimate the restore time of so many bytes, with the past transfer it is based on; None when there is none."""
    known = [each for each in past if each.bytes >= _LEAST and each.took > 0]
    if size is None or not known:
        return None
    best = min(known, key=lambda each: (_TRANSFER_RUNS.index(each.kind), -each.bytes))
    return Seconds(size * best.took / best.bytes), best
