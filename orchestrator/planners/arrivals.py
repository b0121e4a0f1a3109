"""Pruning by arrival: which points that came here go, or why none may.

The sender may be in other hands. So names and dates of points decide nothing: a point's place in time is when this machine saw it come.
What a sender can still do is to send much, or nothing, or rubbish; then nothing goes before a person has looked.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from orchestrator.domain.age import is_older
from orchestrator.domain.arrival import (
    CLOCK,
    DATED_AHEAD,
    MAX_CHANGED,
    MOST_PER_DAY,
    SILENT_AFTER,
    ArrivalRules,
    PointRemoval,
    ReceivedPoint,
)
from orchestrator.domain.fast_dataclass import dataclass, replace
from orchestrator.domain.job import KeepRules
from orchestrator.domain.names import show_name
from orchestrator.domain.place import Location
from orchestrator.domain.plan import Refusal
from orchestrator.domain.point import RestorePoint
from orchestrator.domain.units import show_count, show_duration, show_size
from orchestrator.planners.guard import EXAMPLES
from orchestrator.planners.retention import decide_retention

Key = tuple[str, str]
_DAY, _CLOCKS_DIFFER = timedelta(days=1), timedelta(hours=1)
_ONE_RUN = timedelta(hours=12)  # in which the parts of one point come, of many datasets
_LITTLE = 1 << 20  # bytes; what is lost of less says nothing
_USUAL = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalMemory:
    """Remembered facts. `accepted`: points up to this one in order were looked at by a person; `looked`: the last run's time."""

    accepted: int = 0
    looked: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedArrival:
    """A point with the time when it came. `recorded`: the gate saw it; else it came at this time or before."""

    point: ReceivedPoint
    at: datetime
    recorded: bool

    def __str__(self) -> str:
        return f"{show_name(f'{self.point.series}@{self.point.name}')}, which came {self.at:%Y-%m-%d %H:%M} UTC"


Series = Mapping[str, Sequence[DatedArrival]]


def number_arrivals(points: Sequence[ReceivedPoint], numbers: Mapping[str, int]) -> tuple[ReceivedPoint, ...]:
    """Return the points with their order, where the ledger numbers them by their marks; those that it does not know came last."""
    last = max(numbers.values(), default=0)
    unknown = (each for each in points if each.tree and each.mark not in numbers)
    later = {each.mark: last + count for count, each in enumerate(unknown, 1)}
    return tuple(
        replace(each, order=numbers.get(each.mark) or later[each.mark]) if each.tree else each for each in points
    )


def date_arrivals(points: Sequence[ReceivedPoint], recorded: Mapping[Key, datetime], now: datetime) -> Series:
    """Return the points of each series in their order, each with its time.

    What nobody recorded came before the next one that somebody did; else it counts as come now. So it stays rather longer.
    """
    series: dict[str, list[ReceivedPoint]] = {}
    for point in sorted(points, key=lambda each: each.order):
        series.setdefault(point.series, []).append(point)
    dated: dict[str, Sequence[DatedArrival]] = {}
    for name, each in series.items():
        before, found = now, list[DatedArrival]()
        for point in reversed(each):
            at = recorded.get((point.series, point.mark))
            before = before if at is None else at
            found.append(DatedArrival(point=point, at=before, recorded=at is not None))
        dated[name] = found[::-1]
    return dated


def judge_arrivals(
    series: Series,
    keep: KeepRules,
    rules: ArrivalRules,
    *,
    job: str,
    now: datetime,
    allowed: Collection[str],
    memory: ArrivalMemory,
) -> tuple[PointRemoval, ...] | Refusal:
    """Return what goes, or a refusal when arrivals look wrong; it names each alarm that is not in `allowed`."""
    going = _going(series, keep, rules, now)
    alarms = [alarm for alarm in _alarms(series, rules, now, memory, going) if alarm.guard not in allowed]
    if not alarms:
        return going
    flags = " ".join(dict.fromkeys(f"--allow {alarm.guard}" for alarm in alarms))
    return Refusal(
        why="; ".join(dict.fromkeys(alarm.why for alarm in alarms)),
        evidence=tuple(dict.fromkeys(line for alarm in alarms for line in alarm.evidence)),
        hint=f"nothing was pruned; look at the sender and at what came; if this is meant: poolferry run {job} {flags}",
        guard=alarms[0].guard,
    )


def newest_order(series: Series) -> int:
    """Return the order of the point that came last; 0: there is none."""
    return max((each[-1].point.order for each in series.values()), default=0)


def _going(series: Series, keep: KeepRules, rules: ArrivalRules, now: datetime) -> tuple[PointRemoval, ...]:
    removals, kept = list[PointRemoval](), dict[str, list[datetime]]()
    floor = timedelta(seconds=rules.never_younger_than)
    for arrivals in series.values():
        # By its order and not by its name, which the sender chose: of two that came at once the later one is the newer.
        names = {f"{each.point.order:020d}": each for each in arrivals}
        points = [
            RestorePoint(name=name, taken=each.at, tree=Location(path=each.point.series), manifest=None)
            for name, each in names.items()
        ]
        last = dict.fromkeys(list(names)[-rules.last :], "one of the last")
        young = {name: "too young" for name, each in names.items() if now - each.at < floor}
        needed = {name: each.point.needed for name, each in names.items() if each.point.needed}
        for decision in decide_retention(points, keep, now=now, protected=last | young | needed):
            name, each = decision.point.name, names[decision.point.name]
            if not decision.keep:
                removals.append(PointRemoval(point=each.point, arrived=each.at, reason=decision.reason))
            elif name not in last and name not in needed:
                kept.setdefault(each.point.name, []).append(each.at)
    return tuple(each for each in removals if not _is_part_of_kept(each, kept))


def _is_part_of_kept(removal: PointRemoval, kept: Mapping[str, Sequence[datetime]]) -> bool:
    """Return whether another dataset keeps its part of the same point, which midnight may have parted. A name only ever keeps."""
    return any(abs(removal.arrived - at) <= _ONE_RUN for at in kept.get(removal.point.name, ()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _ArrivalAlarm:
    guard: str
    why: str
    evidence: tuple[str, ...]


def _alarms(
    series: Series, rules: ArrivalRules, now: datetime, memory: ArrivalMemory, going: Sequence[PointRemoval]
) -> Iterator[_ArrivalAlarm]:
    # An order that is beyond all points is of another pool: then nobody has looked at any of these.
    accepted = memory.accepted if memory.accepted <= newest_order(series) else 0
    yield from _clock(series, now, memory, accepted)
    found = [(name, each, [one for one in each if one.point.order > accepted]) for name, each in series.items()]
    for look in (_dated_ahead, _flood, _changed):
        seen = [alarm for name, each, fresh in found if fresh for alarm in look(each, fresh, rules)]
        if seen:
            more = f" (and {show_count(len(seen) - 1, 'more dataset')})" if len(seen) > 1 else ""
            evidence = tuple(line for alarm in seen for line in alarm.evidence)[:EXAMPLES]
            yield _ArrivalAlarm(guard=seen[0].guard, why=f"{seen[0].why}{more}", evidence=evidence)
    yield from _silence(series, rules, now) if going else ()


def _clock(series: Series, now: datetime, memory: ArrivalMemory, accepted: int) -> Iterator[_ArrivalAlarm]:
    """Yield an alarm where this machine's clock was set back: what came then is not as old, or as young, as it seems."""
    wrong = list[str]()
    if memory.looked is not None and memory.looked - now > _CLOCKS_DIFFER:
        wrong.append(f"the last run was at {memory.looked:%Y-%m-%d %H:%M} UTC, and now it is {now:%Y-%m-%d %H:%M} UTC")
    for arrivals in series.values():
        before: DatedArrival | None = None
        for each in arrivals:
            if not each.recorded:
                continue
            if each.point.order <= accepted:
                # One from a clock that was ahead, which a person has accepted, says nothing of the next one.
                before = each if memory.looked is None or each.at <= memory.looked else before
                continue
            if each.at - now > _CLOCKS_DIFFER:
                wrong.append(f"later than now: {each}")
            elif before is not None and before.at - each.at > _CLOCKS_DIFFER:
                wrong.append(f"{before}, is older than {each}")
            before = each
    if wrong:
        why = "the clock of this machine was wrong when points came, or is wrong now"
        yield _ArrivalAlarm(guard=CLOCK, why=why, evidence=tuple(wrong[:EXAMPLES]))


def _dated_ahead(_: Sequence[DatedArrival], fresh: Sequence[DatedArrival], __: ArrivalRules) -> Iterator[_ArrivalAlarm]:
    ahead = [each for each in fresh if each.point.dated - each.at > _DAY]
    if ahead:
        evidence = tuple(f"dated {each.point.dated:%Y-%m-%d %H:%M} UTC: {each}" for each in ahead[:EXAMPLES])
        many, series = len(ahead), show_name(ahead[0].point.series)
        said = (
            f"1 point of {series} is dated after it" if many == 1 else f"{many} points of {series} are dated after they"
        )
        why = f"{said} came"
        yield _ArrivalAlarm(guard=DATED_AHEAD, why=why, evidence=evidence)


def _flood(
    arrivals: Sequence[DatedArrival], fresh: Sequence[DatedArrival], rules: ArrivalRules
) -> Iterator[_ArrivalAlarm]:
    """Yield an alarm where too many came in a day. The first day brings all that the sender has; a pause may be made up for."""
    late = (at for at, each in enumerate(arrivals) if each.at - arrivals[0].at > _DAY)
    start = first = max(len(arrivals) - len(fresh), next(late, len(arrivals)))
    pause, resumed = 1.0, arrivals[0].at
    for end in range(first, len(arrivals)):
        each = arrivals[end]
        if (gap := (each.at - arrivals[end - 1].at) / _DAY) > 1:
            pause, resumed = gap, each.at
        while each.at - arrivals[start].at >= _DAY:
            start += 1
        most = rules.most_per_day * (pause if each.at - resumed < 2 * _DAY else 1)
        if end - start + 1 > most:
            begun = arrivals[start]
            many = [one for one in arrivals[start:] if one.at - begun.at < _DAY]
            why = f"{show_name(each.point.series)} got {show_count(len(many), 'point')} in a day; {MOST_PER_DAY} is {rules.most_per_day}"
            yield _ArrivalAlarm(
                guard=MOST_PER_DAY, why=why, evidence=(f"the first of them: {begun}", f"the last: {many[-1]}")
            )
            return


def _changed(
    arrivals: Sequence[DatedArrival], fresh: Sequence[DatedArrival], rules: ArrivalRules
) -> Iterator[_ArrivalAlarm]:
    """Yield an alarm where a point lacks much of the one before it, as after an encryption or a deletion.

    What was usual in the points before is none: a folder of nightly dumps changes whole each night.
    """
    shares, judged = list[float](), {each.point.order for each in fresh}
    for before, each in pairwise(arrivals):
        base = before.point.holds if each.point.before is None else each.point.before
        lost = min(base, max(0, base + each.point.brought - each.point.holds))
        share = lost / base if base > _LITTLE else 0.0
        usual = bool(shares) and share <= max(shares[-_USUAL:]) * 1.1
        if each.point.order in judged and lost > _LITTLE and not usual and rules.max_changed.exceeded(lost, base):
            why = f"{share:.0%} of {show_name(each.point.series)} changed or went at once; max-changed is {rules.max_changed}"
            evidence = (f"{show_size(lost)} of {show_size(base)} of {before}, are not in {each}",)
            yield _ArrivalAlarm(guard=MAX_CHANGED, why=why, evidence=evidence)
            return
        if share:
            shares.append(share)


def _silence(series: Series, rules: ArrivalRules, now: datetime) -> Iterator[_ArrivalAlarm]:
    last = max((each[-1] for each in series.values()), key=lambda one: one.at)
    if is_older(last.at, rules.silent_after, now):
        silent = (now - last.at).total_seconds()
        why = f"nothing came for {show_duration(silent)}; silent-after is {show_duration(rules.silent_after)}"
        yield _ArrivalAlarm(guard=SILENT_AFTER, why=why, evidence=(f"the last point: {last}",))
