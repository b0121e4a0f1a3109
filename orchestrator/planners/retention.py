"""Retention: which restore points are kept and which are removed, each with its reason.

Why: hours, days, ISO weeks, months and years are those of UTC, so that a point never changes its day with the machine's
time zone or with summer time. Only spans that hold points count: after a month switched off, "7 daily" are still the
newest seven days with a point, so time alone never removes anything.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from orchestrator.domain.fast_dataclass import dataclass
from orchestrator.domain.job import KeepRules
from orchestrator.domain.point import RestorePoint


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionDecision:
    """Decision on one point, and its reason."""

    point: RestorePoint
    keep: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _RetentionRule:
    key: str
    span: str
    label: Callable[[datetime], str]


def _week(taken: datetime) -> str:
    year, week, _ = taken.isocalendar()
    return f"{year}-W{week:02d}"


_RULES = (
    _RetentionRule(key="hourly", span="hour", label=lambda taken: taken.strftime("%Y-%m-%dT%H")),
    _RetentionRule(key="daily", span="day", label=lambda taken: taken.strftime("%Y-%m-%d")),
    _RetentionRule(key="weekly", span="week", label=_week),
    _RetentionRule(key="monthly", span="month", label=lambda taken: taken.strftime("%Y-%m")),
    _RetentionRule(key="yearly", span="year", label=lambda taken: taken.strftime("%Y")),
)

# The later of two points in one second gets the name of the next one: that is no sign of a wrong clock.
_NAMED_LATER = timedelta(minutes=1)


def decide_retention(
    points: Sequence[RestorePoint], keep: KeepRules, *, now: datetime, protected: Mapping[str, str]
) -> tuple[RetentionDecision, ...]:
    """Decide for every point, oldest first. `protected`: names of points to keep in any case, with the reason.

    A point dated well after `now` stays and does not count in any span: it was made while a clock was wrong, and would otherwise
    displace good points with correct dates. A protected point does count.
    """
    ordered = sorted(points, key=lambda point: (point.taken, point.name))
    past = [point for point in ordered if point.taken - now <= _NAMED_LATER]
    reasons: dict[str, str] = {}
    for rule in _RULES:
        reasons = _kept_by(rule, getattr(keep, rule.key), past) | reasons
    if keep.everything:
        reasons = {point.name: "no number is set under [keep]: every point stays" for point in past}
    if past:
        reasons[past[-1].name] = "the newest point"
    reasons |= {
        point.name: "dated after now: a clock was wrong" for point in ordered if point.taken - now > _NAMED_LATER
    }
    reasons |= protected
    unkept = f"beyond {_keep_text(keep)}"
    return tuple(
        RetentionDecision(point=point, keep=point.name in reasons, reason=reasons.get(point.name, unkept))
        for point in ordered
    )


def _kept_by(rule: _RetentionRule, number: int, past: Sequence[RestorePoint]) -> dict[str, str]:
    """Return the points one rule keeps, with the reason: the newest of each of the `number` newest used spans."""
    newest: dict[str, str] = {}
    for point in reversed(past):
        newest.setdefault(rule.label(point.taken.astimezone(UTC)), point.name)
    return {
        name: f"newest of {rule.span} {label} ({rule.key} {place} of {number})"
        for place, (label, name) in enumerate(list(newest.items())[:number], start=1)
    }


def _keep_text(keep: KeepRules) -> str:
    return ", ".join(f"{rule.key} {getattr(keep, rule.key)}" for rule in _RULES if getattr(keep, rule.key))
